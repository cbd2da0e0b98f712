"""The time that launch files of a large stored plan take: a fresh ``meshwright emit``, and again in one process.

Planning is not in it: the plans are made before.  A service writes files of stored plans in a warm process.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.child import ChildRun, run_meshwright
from benchmarks.measurement import Measurement, Spec
from planner.backends.asked import inside
from planner.backends.folders.emit import emit_plan
from planner.backends.launch import LauncherName
from planner.backends.registry import software
from planner.model.load import load_model
from planner.operations.plan_reference import full_document
from planner.plan.plan import Plan
from planner.question.problem import Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from profiles.catalogue import load_cluster

COLD_TARGET_S = 3.0
WARM_TARGET_S = 1.0
LAUNCHER: LauncherName = "kubernetes"
"""The launcher with the most to write: the files once more, in a ConfigMap."""


@dataclass(frozen=True, slots=True)
class Case:
    """A plan whose files are written."""

    name: str
    title: str
    model: str
    cluster: str
    devices: int
    global_batch_size: int
    sequence_length: int
    backend: str


_DEEPSEEK, _LLAMA = "DeepSeek-V3 on 2,048 H100", "Llama-3.1-405B on 16,384 H100"
CASES = (
    Case("deepseek-v3-2048", f"{_DEEPSEEK}, megatron", "deepseek-v3", "dgx-h100", 2048, 15_360, 4096, "megatron"),
    Case("llama-405b-16k", f"{_LLAMA}, native", "llama-3.1-405b", "dgx-h100", 16_384, 2048, 8192, "native"),
)


@cache
def plan_of(case: Case) -> Plan:
    """The proved plan, made once."""
    work = Workload(global_batch_size=case.global_batch_size, sequence_length=case.sequence_length)
    asked = Problem(model=load_model(case.model), cluster=load_cluster(case.cluster, case.devices), workload=work)
    return find_plan(inside(asked, software(case.backend)), SearchOptions(top_k=0))


def emission_time(repeats: int) -> list[Measurement]:
    """Cold and warm, for every case.  Raises RuntimeError when the command fails."""
    return [measure(case, repeats) for case in CASES for measure in (_cold, _warm)]


def _cold(case: Case, repeats: int) -> Measurement:
    with tempfile.TemporaryDirectory(prefix="meshwright-bench-") as folder:
        document = Path(folder) / "plan.json"
        document.write_text(json.dumps(full_document(plan_of(case))), encoding="utf-8")
        runs = [_emitted(Path(folder), document, number) for number in range(repeats)]
    wall_s, cpu_s = tuple(run.wall_s for run in runs), tuple(run.cpu_s for run in runs)
    return Measurement(f"emit-cold-{case.name}", f"emit, {case.title}", "s", COLD_TARGET_S, wall_s, cpu_s)


def _emitted(folder: Path, document: Path, number: int) -> ChildRun:
    words = ["emit", str(document), "--launcher", LAUNCHER, "--out", str(folder / str(number))]
    run = run_meshwright(words, folder / f"{number}.db")
    if run.exit_code != 0:
        raise RuntimeError(f"meshwright emit: exit code {run.exit_code}\n{run.stderr}")
    return run


def _warm(case: Case, repeats: int) -> Measurement:
    plan = plan_of(case)
    emit_plan(plan, LAUNCHER)
    wall_s, cpu_s = [], []
    for _ in range(repeats):
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        emit_plan(plan, LAUNCHER)
        wall_s.append(time.perf_counter() - start_s)
        cpu_s.append(time.process_time() - start_cpu_s)
    task = f"files again, {case.title}"
    return Measurement(f"emit-warm-{case.name}", task, "s", WARM_TARGET_S, tuple(wall_s), tuple(cpu_s))


EMISSION_TIME = Spec("emission", emission_time)
