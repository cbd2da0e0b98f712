"""The solvers of OR-Tools on the programs that a search really gives away: ``python -m benchmarks.leaf_programs``.

Solves public instances of operator-level sharding, keeps every program that ``core_milp`` states on the way, and gives
each to HiGHS, SCIP and CP-SAT by MathOpt: one thread, no gap, the same cut-off, a process of its own for each solver.
Writes ``benchmarks/results/DATE-leaf-programs.md``.  Options: ``--instances ABDPSV --seconds 60 --limit 8``.
"""

from __future__ import annotations

import argparse
import datetime
import multiprocessing
import pickle
import statistics
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.operator_sharding import FOLDER, RESULTS, machine_line
from planner.shard.instance import read_instance
from solver.mixed_integer import Limits, Program, Solved, model_proto, solve_program
from solver.selection import core_milp
from solver.selection.solve import solve

SOLVERS = ("HiGHS", "SCIP", "CP-SAT")


@dataclass(frozen=True)
class Leaf:
    """One program as the search stated it."""

    instance: str
    program: Program
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What a solver made of a leaf; ``word``: optimal, infeasible, limit or refused."""

    word: str
    bound: float
    processor_s: float


def record(name: str, seconds: float) -> list[Leaf]:
    """The programs of one solve."""
    leaves: list[Leaf] = []

    def kept(program: Program, limits: Limits, options: Mapping[str, Any]) -> Solved:
        leaves.append(Leaf(name, program, dict(options)))
        return solve_program(program, limits, options)

    with mock.patch.object(core_milp, "solve_program", kept):
        solve(read_instance(FOLDER / f"asplos-2025-iopddl-{name}.json.gz"), time_limit_s=seconds)
    return leaves


def outcomes(solver: str, leaves: bytes, limit_s: float) -> list[Outcome]:
    """What one solver makes of all of them, in processor seconds with stating the program."""
    found = []
    for leaf in pickle.loads(leaves):
        begin = time.process_time()
        word, bound = _by_highs(leaf, limit_s) if solver == "HiGHS" else _by_mathopt(solver, leaf, limit_s)
        found.append(Outcome(word, bound, time.process_time() - begin))
    return found[1:]


def _by_highs(leaf: Leaf, limit_s: float) -> tuple[str, float]:
    solved = solve_program(leaf.program, Limits(lambda: False, np.inf, limit_s), leaf.options)
    return "optimal" if solved.optimal else "infeasible" if solved.infeasible else "limit", solved.bound


def _by_mathopt(solver: str, leaf: Leaf, limit_s: float) -> tuple[str, float]:
    """CP-SAT and SCIP know no options of HiGHS: gaps and the cut-off are said in MathOpt's common words."""
    from ortools.math_opt import callback_pb2, model_parameters_pb2, parameters_pb2, result_pb2
    from ortools.math_opt.core.python import solver as mathopt
    from pybind11_abseil.status import StatusNotOk

    parameters = parameters_pb2.SolveParametersProto(
        threads=1, relative_gap_tolerance=0.0, absolute_gap_tolerance=leaf.options["mip_abs_gap"]
    )
    parameters.time_limit.FromNanoseconds(int(1e9 * limit_s))
    if "objective_bound" in leaf.options:
        parameters.cutoff_limit = leaf.options["objective_bound"]
    kind = {"SCIP": parameters_pb2.SOLVER_TYPE_GSCIP, "CP-SAT": parameters_pb2.SOLVER_TYPE_CP_SAT}[solver]
    beside = (
        model_parameters_pb2.ModelSolveParametersProto(),
        None,
        callback_pb2.CallbackRegistrationProto(),
        None,
        None,
    )
    try:
        result = mathopt.solve(
            model_proto(leaf.program), kind, parameters_pb2.SolverInitializerProto(), parameters, *beside
        )
    except StatusNotOk:
        return "refused", -np.inf
    words = {
        result_pb2.TERMINATION_REASON_OPTIMAL: "optimal",
        result_pb2.TERMINATION_REASON_INFEASIBLE: "infeasible",
    }
    word = words.get(result.termination.reason, "limit")
    if result.termination.limit == result_pb2.LIMIT_CUTOFF:
        word = "infeasible"
    return word, float(result.termination.objective_bounds.dual_bound)


def alone(call: Any, *words: Any) -> Any:
    """A call in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(call, *words).result()


def table(leaves: list[Leaf], found: Mapping[str, list[Outcome]]) -> list[str]:
    """A line for each instance and solver."""
    lines = []
    for name in sorted({leaf.instance for leaf in leaves}):
        at = [i for i, leaf in enumerate(leaves) if leaf.instance == name]
        for solver, each in found.items():
            mine = [each[i] for i in at]
            words = [sum(one.word == word for one in mine) for word in ("optimal", "infeasible", "limit", "refused")]
            both = [i for i in at if each[i].word == found["HiGHS"][i].word == "optimal"]
            off = max((_apart(each[i].bound, found["HiGHS"][i].bound) for i in both), default=0.0)
            times = [one.processor_s for one in mine if one.word != "refused"]
            said = (
                [f"{statistics.median(times):.3f}", f"{sum(times):.1f}", f"{off:.0e}"] if times else ["-", "0.0", "-"]
            )
            lines.append("| " + " | ".join([name, str(len(at)), solver, *map(str, words), *said]) + " |")
    return lines


def _apart(one: float, other: float) -> float:
    return abs(one - other) / max(1.0, abs(other))


def main() -> None:
    """Record, solve, print and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--instances", default="ABDPSV")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--limit", type=float, default=8.0)
    asked = parser.parse_args()
    leaves = [leaf for name in asked.instances for leaf in alone(record, name, asked.seconds)]
    # The first leaf is given twice: the first time pays for loading the library.
    sent = pickle.dumps([leaves[0], *leaves])
    found = {solver: alone(outcomes, solver, sent, asked.limit) for solver in SOLVERS}
    head = (
        "instance | leaves | solver | optimal | infeasible | limit | refused | median processor s | all | bounds apart"
    )
    text = [f"# Programs of the search, {asked.limit:g} s wall each", "", machine_line(), "", f"| {head} |"]
    text += ["|" + "---|" * (head.count("|") + 1), *table(leaves, found), ""]
    text.append(
        "Bounds apart: the largest difference from HiGHS's over the larger of it and 1, where both say optimal."
    )
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    (RESULTS / f"{today}-leaf-programs.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
