"""The launchers under which each back-end starts, and who checked it: ``python -m benchmarks.check_matrix``.

Random feasible plans of every back-end are emitted for every launcher.  Each folder goes through tier 1 (rules, read
back) and tier 2 (every validator that is ready).  Prints a Markdown table: ``accepted / emitted (validators)``, or why
a pair is refused.  Tier 3, real training steps, is the test suite's (``meshwright run``).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from planner.backends.checking.emitted import read_folder
from planner.backends.emission.write import write_emission
from planner.backends.folders.emit import emit_plan
from planner.backends.folders.report import Checker
from planner.backends.launch import LauncherName
from planner.backends.registry import names_with_files
from planner.errors import BackEndRefused
from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem, Workload
from planner.search.sample import random_plans
from profiles.catalogue import load_cluster

CLUSTERS: dict[str, tuple[str, int]] = {
    "mindspeed": ("ascend-910b-8", 32),
    "maxtext": ("tpu-v5p", 32),
}
"""Where a back-end runs, if not on DGX H100."""
USUAL_CLUSTER = ("dgx-h100", 32)
MODELS = ("llama-3.1-8b", "qwen3-8b", "mixtral-8x7b")


def plans(backend: str, count: int) -> list[Plan]:
    """Feasible plans of the back-end, a few of each model that it knows."""
    cluster, devices = CLUSTERS.get(backend, USUAL_CLUSTER)
    found: list[Plan] = []
    for model in MODELS:
        problem = Problem(
            model=load_model(model),
            cluster=load_cluster(cluster, devices),
            workload=Workload(global_batch_size=64, sequence_length=4096),
            constraints=Constraints(backends=(backend,)),
        )
        found += islice(random_plans(problem, 0, 400), count)
    return found


def cell(backend: str, launcher: LauncherName, wanted: list[Plan], checker: Checker, scratch: Path) -> str:
    """What happened to the plans of one back-end under one launcher."""
    accepted = 0
    asked: Counter[str] = Counter()
    for number, plan in enumerate(wanted):
        try:
            emission = emit_plan(plan, launcher)
        except BackEndRefused as error:
            return f"refused: {error.what.splitlines()[0]}"
        report = checker.check(read_folder(write_emission(emission, scratch / f"{backend}-{launcher}-{number}")))
        accepted += report.ok
        asked.update(verdict.validator for verdict in report.verdicts)
        words = [finding.message for finding in report.findings]
        words += [f"{each.validator}: {each.message}" for each in report.verdicts if not each.accepted]
        for word in words:
            print(f"{backend} {launcher}: {word}", file=sys.stderr)
    return f"{accepted} / {len(wanted)} ({', '.join(asked)})"


def main() -> int:
    """Print one row a back-end and launcher."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check_matrix", description=__doc__)
    parser.add_argument("--backend", action="append", choices=names_with_files(), help="one of them (repeat for more)")
    parser.add_argument("--count", type=int, default=2, help="plans of each model")
    chosen = parser.parse_args()
    print("| back-end | launcher | accepted / emitted (validators of tier 2) |\n| --- | --- | --- |")
    with Checker() as checker, TemporaryDirectory() as scratch:
        for backend in chosen.backend or names_with_files():
            wanted = plans(backend, chosen.count)
            for launcher in get_args(LauncherName):
                print(
                    f"| {backend} | {launcher} | {cell(backend, launcher, wanted, checker, Path(scratch))} |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
