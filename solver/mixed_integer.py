"""A mixed-integer program as arrays, and the only place that talks to its solver: HiGHS, by MathOpt of OR-Tools.

Minimise     cost x
Subject to   row_lower <= A x <= row_upper,   lower <= x <= upper,   x[c] whole where ``integer[c]``

A is given as triplets; entries of one place add up.  Infinite bounds are NumPy's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Array, Ints

SILENCE_S = 0.4
"""HiGHS may look at no limit for so long (0.45 processor seconds were seen), so that it is given less than is left."""
LOOK_EVERY_S = 0.01
"""How often the one who waits for HiGHS looks whether the answer is still wanted."""


@dataclass(frozen=True)
class Triplets:
    """Entries of a matrix: ``entries[i]`` stands at (``rows[i]``, ``columns[i]``)."""

    rows: Ints
    columns: Ints
    entries: Array


@dataclass(frozen=True)
class Program:
    """See the module's text; one entry a column, but ``row_lower`` and ``row_upper``."""

    cost: Array
    lower: Array
    upper: Array
    integer: NDArray[np.bool_]
    matrix: Triplets
    row_lower: Array
    row_upper: Array


@dataclass(frozen=True)
class Limits:
    """When to give up.

    ``interrupted`` ends the wait at once, without a point or a bound.  ``left_s``: wall seconds until the caller's
    limit, kept by ``SILENCE_S``.  ``share_s``: wall seconds after which the best so far is the answer.
    ``max_nodes``: the same for a count of nodes, which does not depend on the clock.
    """

    interrupted: Callable[[], bool]
    left_s: float
    share_s: float = np.inf
    max_nodes: int | None = None


@dataclass(frozen=True)
class Solved:
    """``values``: a feasible point, if one was found; ``bound`` <= every objective, -inf where nothing is proved."""

    values: Array | None
    bound: float
    optimal: bool
    infeasible: bool


OPTION_KINDS: tuple[tuple[type, str], ...] = ((bool, "bool"), (int, "int"), (float, "double"), (str, "string"))
"""Where an option stands in MathOpt's message, by the type of its value; a Boolean is also a whole number."""
NOTHING = Solved(None, -np.inf, optimal=False, infeasible=False)


def solve_program(program: Program, limits: Limits, options: Mapping[str, Any]) -> Solved:
    """The least objective, or the best point and bound within the limits; ``options`` are HiGHS's own words.

    MathOpt cannot stop HiGHS before its limit (``HighsSolver::Solve`` of OR-Tools 9.15 takes no notice of the
    interrupter), so that HiGHS runs on a thread of its own: who is interrupted leaves, and the thread ends by its
    limit, at the latest ``share_s`` from its start.
    """
    found: list[Solved | BaseException] = []
    finished = threading.Event()

    def run() -> None:
        try:
            found.append(_run(program, limits, options))
        except BaseException as error:  # the one who waits raises it
            found.append(error)
        finally:
            finished.set()

    threading.Thread(target=run, name="HiGHS").start()
    while not finished.wait(LOOK_EVERY_S):
        if limits.interrupted():
            return NOTHING
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def _run(program: Program, limits: Limits, options: Mapping[str, Any]) -> Solved:
    """Solve to the end or to a limit, on one thread.

    This is the call below MathOpt's Python models: it takes the program as it is, and its errors are read here since
    ``mathopt.solve`` of OR-Tools 9.15 fails on every one of them (``StatusNotOk`` has no ``canonical_code``).
    """
    from ortools.math_opt import callback_pb2, model_parameters_pb2, parameters_pb2, result_pb2
    from ortools.math_opt.core.python import solver
    from pybind11_abseil.status import StatusCode, StatusNotOk

    parameters = _parameters(limits, options)
    beside = (
        model_parameters_pb2.ModelSolveParametersProto(),
        None,
        callback_pb2.CallbackRegistrationProto(),
        None,
        None,
    )
    try:
        result = solver.solve(
            model_proto(program),
            parameters_pb2.SOLVER_TYPE_HIGHS,
            parameters_pb2.SolverInitializerProto(),
            parameters,
            *beside,
        )
    except StatusNotOk as error:
        if error.code != StatusCode.INTERNAL:
            raise ValueError(f"the program or its options: {error}") from None
        return NOTHING  # HiGHS's own word for its end was an error, so that nothing is known
    reason = result.termination.reason
    if reason in {
        result_pb2.TERMINATION_REASON_INFEASIBLE,
        result_pb2.TERMINATION_REASON_INFEASIBLE_OR_UNBOUNDED,
    }:
        return Solved(None, np.inf, optimal=False, infeasible=True)
    bound = result.termination.objective_bounds.dual_bound
    return Solved(
        _values(result, program.cost.size),
        bound if np.isfinite(bound) else -np.inf,
        optimal=reason == result_pb2.TERMINATION_REASON_OPTIMAL,
        infeasible=False,
    )


def _parameters(limits: Limits, options: Mapping[str, Any]) -> Any:
    """The limits, and HiGHS's options by name; a name or a type that it does not know is an error of ``solve``."""
    from ortools.math_opt.parameters_pb2 import SolveParametersProto

    parameters = SolveParametersProto()
    time_limit_s = min(limits.share_s, max(0.5 * limits.left_s, limits.left_s - SILENCE_S, 0.0))
    parameters.time_limit.FromNanoseconds(int(1e9 * time_limit_s))
    if limits.max_nodes is not None:
        parameters.node_limit = limits.max_nodes
    # By name: MathOpt refuses its own ``threads`` for HiGHS, which counts them once for each thread that calls it.
    for name, value in {"output_flag": False, "threads": 1, "parallel": "off", **options}.items():
        kind = next(word for each, word in OPTION_KINDS if isinstance(value, each))
        getattr(parameters.highs, f"{kind}_options")[name] = value
    return parameters


def _values(result: Any, size: int) -> Array | None:
    """The point that was found; those that are not named are 0."""
    from ortools.math_opt.solution_pb2 import SOLUTION_STATUS_FEASIBLE

    for solution in result.solutions:
        point = solution.primal_solution
        if point.feasibility_status == SOLUTION_STATUS_FEASIBLE:
            values = np.zeros(size)
            values[np.array(point.variable_values.ids, np.int64)] = point.variable_values.values
            return values
    return None


def model_proto(program: Program) -> Any:
    """The program as MathOpt's message, whose matrix stands row by row and names each place once."""
    from ortools.math_opt.model_pb2 import ModelProto

    matrix = program.matrix
    order = np.lexsort((matrix.columns, matrix.rows))
    rows, columns, entries = matrix.rows[order], matrix.columns[order], matrix.entries[order]
    first = np.flatnonzero(np.diff(rows, prepend=-1) | np.diff(columns, prepend=-1))
    proto = ModelProto()
    variables, constraints = proto.variables, proto.linear_constraints
    variables.ids.extend(range(program.cost.size))
    variables.lower_bounds.extend(program.lower.tolist())
    variables.upper_bounds.extend(program.upper.tolist())
    variables.integers.extend(program.integer.tolist())
    constraints.ids.extend(range(program.row_lower.size))
    constraints.lower_bounds.extend(program.row_lower.tolist())
    constraints.upper_bounds.extend(program.row_upper.tolist())
    objective, coefficients = proto.objective.linear_coefficients, proto.linear_constraint_matrix
    objective.ids.extend(range(program.cost.size))
    objective.values.extend(program.cost.tolist())
    coefficients.row_ids.extend(rows[first].tolist())
    coefficients.column_ids.extend(columns[first].tolist())
    coefficients.coefficients.extend((np.add.reduceat(entries, first) if first.size else entries).tolist())
    return proto
