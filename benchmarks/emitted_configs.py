"""Emitted configs that back-ends refuse: ``python -m benchmarks.emitted_configs --backend megatron --count 2000``.

Random feasible plans over every built-in model and every cluster of the catalogue are emitted and shown to the own
validators of the back-end and the launcher.  Prints how many were refused (the goal is none), and a validator's time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.machine import machine_facts
from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.environment import is_ready
from planner.backends.checking.worker import Worker
from planner.backends.emission.emission import Emission
from planner.backends.emission.write import manifest
from planner.backends.folders.catalogue import applicable
from planner.backends.folders.emit import emit_plan
from planner.backends.folders.report import release_of
from planner.backends.launch import LauncherName
from planner.backends.registry import software
from planner.errors import BackEndRefused, DocumentInvalid, ValidatorUnavailable
from planner.model.builtin import builtin_models
from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem, Workload
from planner.question.work_kind import Precision
from planner.search.sample import random_plans
from profiles.catalogue import builtin_clusters, load_cluster

RESULTS = Path(__file__).parent / "results"
NUM_NODES = (1, 2, 4, 8, 16, 32, 128)
TRIES_A_PROBLEM = 60
PLANS_A_PROBLEM = 15
ANSWER_TIMEOUT_S = 60.0


@dataclass(slots=True)
class Tally:
    """What happened so far."""

    plans: int = 0
    models: Counter[str] = field(default_factory=Counter)
    clusters: Counter[str] = field(default_factory=Counter)
    launchers: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    wall_s: dict[str, list[float]] = field(default_factory=dict)
    refused: list[dict[str, Any]] = field(default_factory=list)
    unanswered: list[dict[str, Any]] = field(default_factory=list)
    """What a validator did not finish in time: torch builds tables of some pipelines for minutes."""
    largest_world: int = 0


def problems(backend: str, seed: int) -> Iterator[Problem]:
    """Random questions without end: a model, a cluster of some size, a batch that fits it."""
    draw = random.Random(seed)
    models, clusters = sorted(builtin_models()), sorted(builtin_clusters())
    while True:
        model = load_model(draw.choice(models))
        name = draw.choice(clusters)
        whole = load_cluster(name, None)
        devices = whole.pools[0].devices_per_node * draw.choice(NUM_NODES)
        rates = whole.pools[0].device.peak_flops_per_s
        precision: Precision = "fp8" if "fp8" in rates and draw.random() < 1 / 3 else "bf16"
        length = min(draw.choice([2048, 4096, 8192]), model.learned_positions or 8192)
        try:
            yield Problem(
                model=model,
                cluster=load_cluster(name, devices),
                workload=Workload(
                    global_batch_size=devices * draw.choice([1, 2, 4]), sequence_length=length, precision=precision
                ),
                constraints=Constraints(backends=(backend,)),
            )
        except DocumentInvalid:
            continue


def folder_of(emission: Emission) -> EmittedFolder:
    """The emission as ``check`` would read it from disk."""
    return EmittedFolder(Path("emission"), manifest(emission), dict(emission.files))


def survey(backend: str, count: int, seed: int, launchers: list[LauncherName]) -> Tally:
    """Emit ``count`` random feasible plans and ask everybody who is ready."""
    wanted, draw, tally = software(backend), random.Random(seed), Tally()
    workers: dict[str, Worker] = {}
    try:
        for number, problem in enumerate(problems(wanted.spelled, seed)):
            drawn = random_plans(problem, seed + number, TRIES_A_PROBLEM)
            for _, plan in zip(range(min(PLANS_A_PROBLEM, count - tally.plans)), drawn, strict=False):
                launcher = draw.choice(launchers)
                try:
                    emission = emit_plan(plan, launcher)
                except BackEndRefused as error:
                    if error.where and error.where.startswith("--launcher"):
                        continue
                    tally.refused.append(_refusal(plan, "our own emitter", "emit", error.what))
                    continue
                _ask(emission, workers, tally)
            if tally.plans >= count:
                return tally
            if number % 20 == 0:
                print(
                    f"{backend}: {tally.plans} plans, {len(tally.refused)} refused, {len(tally.unanswered)} unanswered",
                    file=sys.stderr,
                    flush=True,
                )
    finally:
        for worker in workers.values():
            worker.close()
    return tally


def _ask(emission: Emission, workers: dict[str, Worker], tally: Tally) -> None:
    folder = folder_of(emission)
    tally.plans += 1
    tally.models[emission.plan.problem.model.name] += 1
    tally.clusters[emission.plan.problem.cluster.name] += 1
    tally.launchers[emission.launcher] += 1
    tally.largest_world = max(tally.largest_world, emission.plan.chosen().world_size)
    for validator in applicable(folder):
        version = release_of(validator, folder)
        if not is_ready(validator, version):
            continue
        worker = workers.setdefault(validator.name, Worker(validator, version, ANSWER_TIMEOUT_S))
        try:
            verdict = worker.ask(validator.request(folder))
        except ValidatorUnavailable as error:
            worker.close()
            tally.unanswered.append(_refusal(emission.plan, validator.name, "no answer", error.what))
            continue
        tally.asked[validator.name] += 1
        tally.wall_s.setdefault(validator.name, []).append(verdict.wall_s)
        if not verdict.accepted:
            tally.refused.append(_refusal(emission.plan, validator.name, verdict.stage, verdict.message))


def _refusal(plan: Plan, who: str, stage: str, message: str) -> dict[str, Any]:
    problem = plan.problem
    where = {"model": problem.model.name, "cluster": problem.cluster.name, "strategy": plan.strategy}
    return {"validator": who, "stage": stage, "message": message[:500], **where}


def summary(backend: str, tally: Tally, seed: int, wall_s: float) -> dict[str, Any]:
    """Plain data of a survey."""
    return {
        "backend": backend,
        "seed": seed,
        "plans": tally.plans,
        "models": len(tally.models),
        "clusters": len(tally.clusters),
        "launchers": dict(sorted(tally.launchers.items())),
        "largest_world_size": tally.largest_world,
        "asked": dict(tally.asked),
        "refused": tally.refused,
        "unanswered": tally.unanswered,
        # The first answer carries the worker's imports.
        "validator_wall_s": {
            name: {"median": round(median(times[1:]), 4), "p90": round(quantiles(times[1:], n=10)[-1], 4)}
            for name, times in tally.wall_s.items()
            if len(times) > 2
        },
        "wall_s": round(wall_s, 1),
    }


def main() -> int:
    """Survey one back-end; exit status 1 when anything was refused."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.emitted_configs", description=__doc__)
    parser.add_argument("--backend", required=True, help="NAME or NAME==VERSION")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--launcher", action="append", default=[], help="one of several to draw from")
    parser.add_argument("--write", action="store_true", help="keep the figures in benchmarks/results")
    chosen = parser.parse_args()
    begin = time.perf_counter()
    tally = survey(chosen.backend, chosen.count, chosen.seed, chosen.launcher or ["torchrun"])
    found = summary(chosen.backend, tally, chosen.seed, time.perf_counter() - begin)
    print(json.dumps(found, indent=1))
    if chosen.write:
        facts = machine_facts(min(os.sched_getaffinity(0)))
        stamp = {"measured_at": datetime.now(UTC).isoformat(timespec="seconds"), "machine": facts}
        path = RESULTS / "emitted-configs" / f"{chosen.backend}-seed-{chosen.seed}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**stamp, **found}, indent=1) + "\n", encoding="utf-8")
    return 1 if tally.refused else 0


if __name__ == "__main__":
    sys.exit(main())
