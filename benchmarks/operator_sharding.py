"""How good is operator-level sharding on the public contest's instances?  ``python -m benchmarks.operator_sharding``.

Per instance, under the same wall limit: ours (a fresh process each, reading included), plain CP-SAT and plain HiGHS on
the unreduced problem, beside the contest's best and winner and the best value known anywhere (``best_known.json``).
Writes ``benchmarks/results/DATE-operator-sharding.md``.  Options: ``--instances ABV --seconds 60 --no-baselines``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import machine_facts
from planner.shard.instance import read_instance
from solver.selection.problem import FORBIDDEN, SelectionProblem

FOLDER = Path(__file__).parents[1].parent / "shared" / "iopddl"
RESULTS = Path(__file__).parent / "results"
SEEDS_OF_V = (0, 1, 2, 3)
SHORT_LIMITS = {"V": (3.0, 6.0), "D": (3.0, 6.0), "S": (8.0, 16.0)}
"""Limits that end a process in the middle of its work, wherever that is."""


def ours(path: Path, seconds: float, seed: int = 0) -> dict[str, Any]:
    """Our answer by the command line, and the seconds that the whole process took."""
    words = ["shard", "--instance", str(path), "--time-limit", str(seconds), "--seed", str(seed), "-o", "json"]
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "planner.cli.main", *words], capture_output=True, text=True, check=False
    )
    process_s = time.monotonic() - begin
    if done.returncode != 0:
        return {"status": f"exit {done.returncode}", "cost": None, "bound": None, "gap": None, "process_s": process_s}
    return {**json.loads(done.stdout), "process_s": process_s}


def late_by(instances: str) -> list[str]:
    """How long after its limit each answer came, and how long the process ran before and after the solve."""
    lines = []
    for name, limits in SHORT_LIMITS.items():
        for limit in limits if name in instances else ():
            answer = ours(FOLDER / f"asplos-2025-iopddl-{name}.json.gz", limit)
            line = f"{name} with --time-limit {limit:g}: {answer['status']}"
            if "wall_s" in answer:
                beside_s = answer["process_s"] - answer["wall_s"]
                line += f", {answer['wall_s'] - limit:+.2f} s after the limit, {beside_s:.2f} s of start-up and end"
            lines.append(line)
    return lines


def plain_cp_sat(problem: SelectionProblem, seconds: float) -> tuple[str, int | None]:
    """CP-SAT on one Boolean an option and one a permitted pair, two workers, model building included."""
    from ortools.sat.python import cp_model

    begin = time.monotonic()
    model = cp_model.CpModel()
    chosen: list[list[Any]] = []
    terms, weights = [], []
    for i, count in enumerate(problem.option_counts.tolist()):
        options = [model.new_bool_var("") for _ in range(count)]
        model.add_exactly_one(options)
        chosen.append(options)
        first = int(problem.option_start[i])
        for variable, cost in zip(options, problem.node_costs[first : first + count].tolist(), strict=True):
            if cost >= FORBIDDEN:
                model.add(variable == 0)
            else:
                terms.append(variable)
                weights.append(cost)
    for e, (a, b) in enumerate(problem.edge_nodes.tolist()):
        if time.monotonic() - begin > seconds:
            return "no model in time", None
        table = problem.edge_costs[problem.edge_start[e] : problem.edge_start[e + 1]].tolist()
        rows: list[list[Any]] = [[] for _ in chosen[a]]
        columns: list[list[Any]] = [[] for _ in chosen[b]]
        for cell, cost in enumerate(table):
            if cost < FORBIDDEN:
                pair = model.new_bool_var("")
                rows[cell // len(columns)].append(pair)
                columns[cell % len(columns)].append(pair)
                terms.append(pair)
                weights.append(cost)
        for groups, options in ((rows, chosen[a]), (columns, chosen[b])):
            for group, option in zip(groups, options, strict=True):
                model.add(sum(group) == option)
    for live in memory_rows(problem):
        used = [(chosen[i][k], usage) for i, usages in live for k, usage in enumerate(usages) if usage]
        model.add(cp_model.LinearExpr.weighted_sum([v for v, _ in used], [u for _, u in used]) <= problem.capacity)
        if time.monotonic() - begin > seconds:
            return "no model in time", None
    model.minimize(cp_model.LinearExpr.weighted_sum(terms, weights))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 2
    solver.parameters.max_time_in_seconds = max(1.0, seconds - (time.monotonic() - begin))
    status = solver.solve(model)
    found = status in {cp_model.OPTIMAL, cp_model.FEASIBLE}
    return solver.status_name(status), round(solver.objective_value) if found else None


def plain_highs(problem: SelectionProblem, seconds: float) -> tuple[str, int | None]:
    """HiGHS on the same model: options binary, permitted pairs continuous, two threads, model building included."""
    import highspy
    import numpy as np

    begin = time.monotonic()
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 2)
    lower, upper, costs = [], [], []
    for cost in problem.node_costs.tolist():
        lower.append(0.0)
        upper.append(0.0 if cost >= FORBIDDEN else 1.0)
        costs.append(0.0 if cost >= FORBIDDEN else float(cost))
    permitted = np.flatnonzero(problem.edge_costs < FORBIDDEN)
    num_options = problem.node_costs.size
    costs += problem.edge_costs[permitted].astype(float).tolist()
    size = num_options + permitted.size
    highs.addVars(size, np.array(lower + [0.0] * permitted.size), np.array(upper + [1.0] * permitted.size))
    highs.changeColsCost(size, np.arange(size, dtype=np.int32), np.array(costs))
    kinds = np.array([highspy.HighsVarType.kInteger] * num_options)
    highs.changeColsIntegrality(num_options, np.arange(num_options, dtype=np.int32), kinds)
    start = problem.option_start.tolist()
    for i in range(problem.num_nodes):
        columns = np.arange(start[i], start[i + 1], dtype=np.int32)
        highs.addRow(1.0, 1.0, columns.size, columns, np.ones(columns.size))
    edge = np.searchsorted(problem.edge_start, permitted, side="right") - 1
    for e, (a, b) in enumerate(problem.edge_nodes.tolist()):
        if time.monotonic() - begin > seconds:
            return "no model in time", None
        first, last = np.searchsorted(edge, [e, e + 1])
        k, m = np.divmod(permitted[first:last] - problem.edge_start[e], problem.option_counts[b])
        for end, value in ((a, k), (b, m)):
            for option in range(start[end + 1] - start[end]):
                columns = np.append(num_options + first + np.flatnonzero(value == option), start[end] + option)
                entries = np.append(np.ones(columns.size - 1), -1.0)
                highs.addRow(0.0, 0.0, columns.size, columns.astype(np.int32), entries)
    for live in memory_rows(problem):
        columns = np.concatenate([np.arange(start[i], start[i + 1]) for i, _ in live]).astype(np.int32)
        entries = np.concatenate([np.asarray(usages, float) for _, usages in live])
        highs.addRow(-highspy.kHighsInf, float(problem.capacity or 0), columns.size, columns, entries)
        if time.monotonic() - begin > seconds:
            return "no model in time", None
    highs.setOptionValue("time_limit", max(1.0, seconds - (time.monotonic() - begin)))
    highs.run()
    info = highs.getInfo()
    found = info.primal_solution_status == 2
    return highs.modelStatusToString(highs.getModelStatus()), round(info.objective_function_value) if found else None


def memory_rows(problem: SelectionProblem) -> Any:
    """Per time at which something ends, the nodes live just before it with their usages; nothing without a capacity."""
    if problem.capacity is None:
        return
    live: dict[int, list[int]] = {}
    begins = sorted(range(problem.num_nodes), key=lambda i: int(problem.live_from[i]))
    using = [i for i in begins if problem.live_from[i] < problem.live_until[i]]
    position = 0
    for end in sorted({int(problem.live_until[i]) for i in using}):
        grown = False
        while position < len(using) and problem.live_from[using[position]] < end:
            i = using[position]
            first = int(problem.option_start[i])
            live[i] = problem.usages[first : first + int(problem.option_counts[i])].tolist()
            position, grown = position + 1, True
        if grown:
            yield list(live.items())
        for i in [i for i in live if problem.live_until[i] <= end]:
            del live[i]


def rows(instances: str, seconds: float, baselines: bool) -> tuple[list[str], list[float]]:
    """The table's lines, and our cost over the best known of each instance with an answer."""
    known = json.loads((FOLDER / "best_known.json").read_text())
    lines, ratios = [], []
    for name in instances:
        path = FOLDER / f"asplos-2025-iopddl-{name}.json.gz"
        answer, best = ours(path, seconds), known[name]
        others: list[tuple[str, int | None]] = [("not run", None)] * 2
        if baselines:
            problem = read_instance(path)
            others = [plain_cp_sat(problem, seconds), plain_highs(problem, seconds)]
        ratio = answer["cost"] / best["best_known"] if answer["cost"] is not None else math.nan
        ratios.append(ratio)
        cells = [
            *(name, answer["status"], number(answer["cost"]), number(answer["bound"])),
            *("" if answer["gap"] is None else f"{answer['gap']:.4%}", f"{answer['process_s']:.1f}", f"{ratio:.4f}"),
            *(number(best["winner_team01"]), number(best["contest_best"]), number(best["best_known"])),
            *(f"{number(cost)} ({status})" for status, cost in others),
        ]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines, ratios


def machine_line() -> str:
    """Where this was measured."""
    facts = machine_facts(-1)
    return f"{facts['processor']}, {facts['cores']} cores, load {facts['load'][0]:.1f} at the end of the run"


def number(value: float | None) -> str:
    """With thousands, or a dash."""
    return "-" if value is None else f"{value:,.0f}"


def main() -> None:
    """Run, print and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--instances", default="ABDGKMPSV")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--no-baselines", action="store_true")
    asked = parser.parse_args()
    head = "instance | status | ours | bound | gap | process s | ours / best known | winner | contest best | best known"
    head += " | plain CP-SAT | plain HiGHS"
    lines, ratios = rows(asked.instances, asked.seconds, not asked.no_baselines)
    mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
    text = [f"# Operator-level sharding, {asked.seconds:g} s wall", "", machine_line(), ""]
    text += [f"| {head} |", "|" + "---|" * (head.count("|") + 1), *lines, ""]
    text.append(f"Geometric mean of cost / best known: {mean:.4f}")
    if "V" in asked.instances:
        answers = [ours(FOLDER / "asplos-2025-iopddl-V.json.gz", asked.seconds, seed) for seed in SEEDS_OF_V]
        said = [f"{number(answer['cost'])} {answer['status']} {answer['process_s']:.1f} s" for answer in answers]
        text.append("V by seed: " + ", ".join(said))
    late = late_by(asked.instances)
    text += ["", "Limits (less than 0: proved before; reading counts):", *late] if late else []
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    (RESULTS / f"{today}-operator-sharding.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    print("\n".join(text[-3 - len(late) :]))


if __name__ == "__main__":
    main()
