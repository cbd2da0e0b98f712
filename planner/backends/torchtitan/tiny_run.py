"""Runs a small plan under torchtitan: ``launch.sh`` and ``train.sh`` as emitted, with torchtitan's own trainer.

``PYTHON`` names a script that hands over to ``tiny_run_worker.py``, which puts the device, samples and initial weights
of a CPU run in place.  The reference is a second emission of the same model and samples for one rank.  torchtitan lives
in the folder of its validator, never in our process.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from planner.backends.checking.environment import make_ready
from planner.backends.ranks.launch_ranks import LOG_FILE, RanksRun, rank_interpreter, run_ranks
from planner.backends.ranks.runner import BF16_TOLERANCE, Losses, Runner, SmallRun
from planner.backends.rules.rule import mixtures
from planner.backends.torchtitan.validator import VALIDATOR
from planner.backends.torchtitan.version import PIPELINE_TORCH, TORCHTITAN_VERSION
from planner.errors import BackEndRefused
from planner.question.problem import Problem

WORKER = Path(__file__).with_name("tiny_run_worker.py")
LEARNING_RATE = "1e-2"
"""Large enough for a wrong gradient to show in the next loss."""
_WORDS = (
    "--training.mixed_precision_param float32 --training.disable_cuda_graphs --compile.backend aot_eager"
    " --lr_scheduler.warmup_steps 1 --comm.init_timeout_seconds 120 --comm.train_timeout_seconds 120"
)
_EXPERTS = "torchtitan multiplies experts in bf16 whatever the precision (models/common/moe.py:95)"
_ASYNCHRONOUS = "--compile.enable_async_tensor_parallel"


def losses(run: SmallRun) -> Losses:
    """Losses of the ranks and of one process.  Raises BackEndRefused, ValidatorUnavailable (there is no torchtitan)."""
    if run.plan.release not in ("", TORCHTITAN_VERSION):
        raise BackEndRefused(
            f"small forms run on torchtitan {TORCHTITAN_VERSION}, not on {run.plan.release}",
            where="--backend torchtitan",
            hint="`meshwright check` asks that release's own parser",
        )
    packages = make_ready(VALIDATOR, VALIDATOR.default_version)
    done = []
    for write in (run.on_ranks, run.alone):
        emitted = write()
        python = _stand_in(run.folder / f"{emitted.name}-python", packages, run.plan.problem)
        done.append((run_ranks(emitted, _variables(run, python), run.deadline), emitted))
    notes = dict.fromkeys(note for ran, _ in done for note in ran.notes)
    values = [_losses(ran, run.steps, emitted) for ran, emitted in done]
    if not mixtures(run.plan.problem.model):
        return Losses(values[0], values[1], tuple(notes))
    return Losses(values[0], values[1], (*notes, _EXPERTS), BF16_TOLERANCE)


def _variables(run: SmallRun, python: Path) -> dict[str, str]:
    asynchronous = f" {_ASYNCHRONOUS.replace('.enable', '.no-enable')}" if run.plan.chosen().overlap_tp else ""
    return {
        "PYTHON": str(python),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LEARNING_RATE": LEARNING_RATE,
        "TRAIN_ARGS": f"{_WORDS} --training.steps {run.steps}{asynchronous}",
    }


def _stand_in(script: Path, packages: Path, problem: Problem) -> Path:
    """What ``train.sh`` starts: this interpreter, on the worker."""
    numbers = (problem.model.vocab_size, problem.workload.global_batch_size)
    words = shlex.join([rank_interpreter(), str(WORKER), str(packages), *map(str, numbers)])
    # train.sh asks which torch there is; the worker puts in place what an older one lacks.
    answer = f'[ "${{1:-}}" = -c ] && {{ echo {PIPELINE_TORCH}; exit; }}'
    script.write_text(f'#!/usr/bin/env bash\n{answer}\nexec {words} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return script


def _losses(ran: RanksRun, steps: int, folder: Path) -> tuple[float, ...]:
    """The loss of every step; ranks that print the same step agree on it."""
    found: dict[int, float] = {}
    try:
        for line in ran.stdout.splitlines():
            if line.startswith("{"):
                said = json.loads(line)
                found.setdefault(int(said["step"]), float(said["loss"]))
    except (ValueError, TypeError, KeyError) as error:
        raise BackEndRefused(f"the trainer printed no losses: {error}", where=str(folder / LOG_FILE)) from error
    if sorted(found) != list(range(1, steps + 1)):
        raise BackEndRefused(f"the trainer printed {len(found)} of {steps} losses", where=str(folder / LOG_FILE))
    return tuple(found[step] for step in sorted(found))


RUNNER = Runner(
    losses=losses,
    requires=("torch",),
    install="pip install 'meshwright[torch]'",
    edits={
        "precision": ("bf16", "fp32"),
        "device": ("cuda", "cpu"),
        "compile.backend": ("inductor", "aot_eager"),
        "cuda_graphs": ("as emitted", "off"),
    },
)
