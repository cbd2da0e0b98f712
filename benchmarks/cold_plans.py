"""Time from process start to a stored, proved plan, with a fresh process and a fresh database every time.

On two cores: the command searches parts of a question in child processes (docs/decisions/0041).  CPU time and memory
are those of all its processes together.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.child import ChildRun, run_meshwright
from benchmarks.machine import two_cores
from benchmarks.measurement import Measurement, Spec

MOST_MEMORY_BYTES = 1024.0**3
LARGEST_GAP = 0.01
NEMOTRON = str(Path(__file__).parent / "models" / "nemotron-4-340b.yaml")


@dataclass(frozen=True, slots=True)
class Job:
    """A planning question and the time that it may take; ``backend``: whose space, ``any`` = all of them take part."""

    name: str
    title: str
    model: str
    cluster: str
    devices: int
    global_batch_size: int
    sequence_length: int
    target_s: float
    backend: str = "any"

    def words(self) -> list[str]:
        """The command line."""
        return [
            *("plan", "--model", self.model, "--cluster", self.cluster, "--devices", str(self.devices)),
            *("--global-batch-size", str(self.global_batch_size), "--sequence-length", str(self.sequence_length)),
            *("--backend", self.backend, "--quiet", "-o", "json"),
        ]


def _single(backend: str, target_s: float) -> Job:
    """Llama-3.1-70B on 64 H100 in one back-end."""
    title = f"Llama-3.1-70B on 64 H100, {backend}"
    return Job(f"llama-70b-64-{backend}", title, "llama-3.1-70b", "dgx-h100", 64, 1024, 8192, target_s, backend)


JOBS = (
    Job("llama-70b-64", "Llama-3.1-70B on 64 H100, all back-ends", "llama-3.1-70b", "dgx-h100", 64, 1024, 8192, 2.0),
    *(_single(name, 1.2) for name in ("megatron", "megatron-bridge", "deepspeed", "torchtitan", "native")),
    Job(
        "llama-405b-1k",
        "Llama-3.1-405B on 1,024 H100, all back-ends",
        "llama-3.1-405b",
        "dgx-h100",
        1024,
        512,
        8192,
        2.5,
    ),
    Job(
        "llama-405b-16k",
        "Llama-3.1-405B on 16,384 H100, all back-ends",
        "llama-3.1-405b",
        "dgx-h100",
        16_384,
        2048,
        8192,
        3.5,
    ),
    Job("deepseek-v3-512", "DeepSeek-V3 on 512 H800, all back-ends", "deepseek-v3", "dgx-h800", 512, 4096, 4096, 3.0),
    Job(
        "deepseek-v3-2048",
        "DeepSeek-V3 on 2,048 H800, all back-ends",
        "deepseek-v3",
        "dgx-h800",
        2048,
        15_360,
        4096,
        5.0,
    ),
    Job(
        "gpt-oss-64",
        "gpt-oss-120b on 64 H100, Megatron-Bridge",
        "gpt-oss-120b",
        "dgx-h100",
        64,
        1024,
        8192,
        2.5,
        "megatron-bridge",
    ),
    Job(
        "glm-4.5-512",
        "GLM-4.5 on 512 H100, Megatron-Bridge",
        "glm-4.5",
        "dgx-h100",
        512,
        1024,
        8192,
        2.5,
        "megatron-bridge",
    ),
    Job(
        "qwen3-235b-256",
        "Qwen3-235B on 256 H100, Megatron-Bridge",
        "qwen3-235b-a22b",
        "dgx-h100",
        256,
        1024,
        4096,
        2.5,
        "megatron-bridge",
    ),
    Job(
        "nemotron-340b-6144",
        "Nemotron-4-340B on 6,144 H100, Megatron-LM",
        NEMOTRON,
        "dgx-h100",
        6144,
        2304,
        4096,
        3.0,
        "megatron",
    ),
    Job("gpt3-4096", "GPT-3 175B on 4,096 A100, all back-ends", "gpt3-175b", "dgx-a100-80g", 4096, 1536, 2048, 5.0),
    # 100,000 has the factor 5 five times; a batch of 10,000 samples is one that data parallelism can divide.
    Job(
        "llama-405b-100k",
        "Llama-3.1-405B on 100,000 H100, all back-ends",
        "llama-3.1-405b",
        "dgx-h100",
        100_000,
        10_000,
        8192,
        15.0,
    ),
)


def cold_plan(job: Job, repeats: int) -> list[Measurement]:
    """Time and peak memory of the whole command.  Raises RuntimeError when it fails: nothing is measured then."""
    with two_cores():
        runs = [_run_once(job) for _ in range(repeats)]
    answer: dict[str, Any] = json.loads(runs[-1].stdout)
    details = {
        "command": "meshwright " + " ".join(job.words()),
        "plan_id": answer["plan_id"],
        "status": answer["status"],
        "gap": answer["gap"],
        "gap_allowed": _is_proved(answer) or answer["gap"] < LARGEST_GAP,
        "backend": answer["backend"],
        "step_time_s": answer["step_time_s"],
        "strategies": answer["search"]["enumerated"],
        "solved_exactly": answer["search"]["evaluated"],
    }
    proof = "proved" if _is_proved(answer) else f"gap {answer['gap']:.2%}"
    cpu_s = tuple(run.cpu_s for run in runs)
    title = f"cold plan, {job.title} ({proof})"
    peak = tuple(float(run.peak_bytes) for run in runs)
    return [
        Measurement(job.name, title, "s", job.target_s, tuple(run.wall_s for run in runs), cpu_s, details=details),
        Measurement(f"{job.name}.memory", f"peak memory, {job.title}", "bytes", MOST_MEMORY_BYTES, peak),
    ]


def _is_proved(answer: dict[str, Any]) -> bool:
    """Whether the fastest plan is proved: the plan itself, or the one that stands beside a recommended plan."""
    fastest = answer.get("fastest") or answer
    return "optimal" in (answer["status"], fastest["status"])


def _run_once(job: Job) -> ChildRun:
    with tempfile.TemporaryDirectory(prefix="meshwright-bench-") as folder:
        database = Path(folder) / "plans.db"
        run = run_meshwright(job.words(), database, together=True)
        if run.exit_code != 0 or not database.exists():
            raise RuntimeError(f"{job.name}: exit code {run.exit_code}\n{run.stderr}")
    return run


def cold_plan_specs() -> list[Spec]:
    """One spec a job."""
    return [Spec(job.name, lambda repeats, job=job: cold_plan(job, repeats)) for job in JOBS]  # type: ignore[misc]
