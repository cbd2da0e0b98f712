"""Checks whether every measured strategy is a point of the space of the back-end that ran it.

    python -m benchmarks.space_survey [--truth FILE]...    writes benchmarks/tables/space-survey.json

Reads the published runs of this repository and, where it lies beside it, ``../shared/ground_truth``.  A run counts
where its row names a strategy; rows of software that no back-end describes are told as such.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.backends.registry import software
from planner.errors import NotFound
from planner.evidence.runs.mapped_run import MappedRun
from planner.evidence.runs.prediction import map_rows
from planner.evidence.runs.truth import read_truth
from planner.question.problem import Constraints, Problem
from tests.membership import Membership, membership

HERE = Path(__file__).parent
SHARED = HERE.parents[1] / "shared" / "ground_truth"
RESULT = HERE / "tables" / "space-survey.json"
FILES = (
    HERE / "published" / "training_runs.csv",
    SHARED / "training_dev.csv",
    SHARED / "training_dev_2.csv",
)
OTHERS = "software that no back-end describes"


def main() -> None:
    """Survey, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, action="append", help="a table of measured runs")
    result = survey([path for path in parser.parse_args().truth or FILES if path.exists()])
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


@dataclass(slots=True)
class _Found:
    """What was found of one back-end."""

    runs: int = 0
    strategies: int = 0
    points: int = 0
    covered: Counter[str] = field(default_factory=Counter)
    outside: Counter[str] = field(default_factory=Counter)
    example: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Kind of a reason -> the reason as it was told, and the run."""


def survey(paths: Sequence[Path]) -> dict[str, Any]:
    """Runs and distinct strategies by back-end: points of its space, covered ones, those outside with the reason."""
    rows = [row for path in paths for row in read_truth(path.read_text(encoding="utf-8"), str(path))]
    runs, _ = map_rows(rows)
    found: dict[str, _Found] = {}
    known: dict[tuple[object, ...], Membership] = {}
    for run in runs:
        backend = _backend(run)
        mine = found.setdefault(backend, _Found())
        mine.runs += 1
        if backend == OTHERS:
            continue
        problem = _problem(run)
        key = backend, run.model.model_dump_json(), problem.cluster.num_devices, problem.workload, run.strategy
        if key not in known:
            mine.strategies += 1
            known[key] = membership(problem, run.strategy)
        _count(mine, known[key], run.row.id)
    return {"rows": len(rows), "runs": len(runs), "backends": dict(_told(sorted(found.items())))}


def _backend(run: MappedRun) -> str:
    """The back-end that ran it, as ``--backend`` takes it."""
    name = run.flavour.backend
    try:
        return software(name).spelled if name else OTHERS
    except NotFound:
        return OTHERS


def _problem(run: MappedRun) -> Problem:
    workload = run.workload.model_copy(update={"global_batch_size": run.strategy.global_batch_size})
    constraints = Constraints(backends=(run.flavour.backend,))
    return Problem(model=run.model, cluster=run.cluster, workload=workload, constraints=constraints)


def _count(mine: _Found, member: Membership, run_id: str) -> None:
    if not member.inside:
        kind = re.sub(r"\d[\d,]*", "N", member.reasons[0])
        mine.outside[kind] += 1
        mine.example.setdefault(kind, (member.reasons[0], run_id))
    elif member.differs_in:
        mine.covered[", ".join(member.differs_in)] += 1
    else:
        mine.points += 1


def _told(found: Iterable[tuple[str, _Found]]) -> Iterable[tuple[str, dict[str, Any]]]:
    for backend, mine in found:
        outside = [
            {"runs": count, "reason": mine.example[kind][0], "first": mine.example[kind][1]}
            for kind, count in mine.outside.most_common()
        ]
        yield (
            backend,
            {
                "runs": mine.runs,
                "strategies": mine.strategies,
                "points": mine.points,
                "covered": dict(mine.covered.most_common()),
                "outside": outside,
            },
        )


if __name__ == "__main__":
    main()
