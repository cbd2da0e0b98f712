"""Runs a small plan under MaxText: ``launch.sh`` and ``train.sh`` as emitted, with MaxText's own trainer.

One process drives all devices, which are made of the CPU by XLA.  Words behind the config change what needs a TPU or a
GPU: the device, the attention kernel, the precision.  Samples (MaxText's synthetic ones) do not depend on the mesh;
``tiny_run_worker.py`` makes the first weights independent of it too.  The reference is a second emission of the same
model and samples for one device.

Compared is the loss of the words without what balances experts: MaxText prints the balancing loss of one shard, though
its gradient is the mean over all (maxtext 0.2.5 layers/moe.py:1524 reckons it on a shard's tokens, :3344 gives it out
as replicated).  A pipeline balances with another weight than one device (``write.balancing_weight``): there it is off.

MaxText wants Python 3.12 and a JAX that our own Python may not have, so it is run by an interpreter of its own.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.backends.maxtext.version import MAXTEXT_VERSION
from planner.backends.ranks.launch_ranks import CLIENT_VARIABLE, LOG_FILE, run_ranks
from planner.backends.ranks.runner import Losses, Runner, SmallRun
from planner.backends.rules.rule import mixtures
from planner.errors import BackEndRefused, NotFound

WORKER = Path(__file__).with_name("tiny_run_worker.py")
INTERPRETER_VARIABLE = "MESHWRIGHT_MAXTEXT_PYTHON"
"""A Python with MaxText and everything that it imports."""
METRICS_FILE = "metrics.json"
_INSTALL = (
    f"python3.12 -m venv M; M/bin/pip install --no-deps maxtext=={MAXTEXT_VERSION}; M/bin/pip install jax flax optax"
    " orbax-checkpoint grain aqtp qwix tokamax drjax pathwaysutils jaxtyping omegaconf pydantic tensorboardX"
    f" transformers sentencepiece pillow tiktoken sympy ml_collections; {INTERPRETER_VARIABLE}=M/bin/python"
)
_WORDS = (
    "hardware=cpu attention=dot_product use_tokamax_splash=false context_parallel_strategy=all_gather dtype=float32"
    " learning_rate=0.01 run_name=tiny skip_jax_distributed_system=true enable_goodput_recording=false"
)
"""The learning rate is large enough for a wrong gradient to show in the next loss."""
_QUICK_COMPILE = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
"""Two steps of a tiny model are not worth LLVM's time; XLA's partitioner and its collectives stay as they are."""
_WITHOUT_CONTEXT_PARALLELISM = "MaxText's ring and ulysses attention are kernels of TPUs and GPUs"
"""maxtext 0.2.5 configs/types.py:5253 and layers/attention_op.py:1626."""
_UNBALANCED = "load_balance_loss_weight=0.0"


def losses(run: SmallRun) -> Losses:
    """Losses of the devices and of one.  Raises BackEndRefused (a launch fails), NotFound (there is no MaxText)."""
    python = interpreter()
    values, notes, settings = [], dict[str, None](), _WORDS
    if run.plan.chosen().pp > 1 and mixtures(run.plan.problem.model):
        settings += f" {_UNBALANCED}"
        notes[f"{_UNBALANCED}: a pipeline of MaxText balances experts with another weight"] = None
    for write in (run.on_ranks, run.alone):
        emitted = write()
        script = _stand_in(run.folder / f"{emitted.name}-python", python, emitted)
        words = (
            f"{settings} steps={run.steps} base_output_directory={emitted}/out metrics_file={emitted / METRICS_FILE}"
        )
        ran = run_ranks(emitted, {"PYTHON": str(script), "TRAIN_ARGS": words}, run.deadline)
        notes |= dict.fromkeys(ran.notes)
        values.append(_losses(emitted, run.steps))
    return Losses(values[0], values[1], tuple(notes))


def interpreter() -> str:
    """The Python with MaxText.  Raises NotFound."""
    named = os.environ.get(INTERPRETER_VARIABLE, "")
    if not named or not Path(named).is_file():
        raise NotFound("no Python with MaxText is named", where=f"${INTERPRETER_VARIABLE}", hint=_INSTALL)
    return named


def _stand_in(script: Path, python: str, emitted: Path) -> Path:
    """What ``train.sh`` starts: that interpreter, on as many devices of a CPU as the plan has."""
    warm = os.environ.get(CLIENT_VARIABLE)
    words = shlex.quote(str(Path(warm) / "python") if warm else python)
    devices = read_world_size((emitted / LAUNCH_SCRIPT).read_text(encoding="utf-8"))
    lines = (
        "#!/usr/bin/env bash",
        # The flags of the plan's own hardware mean nothing here; XLA ends on one that it does not know.
        f"export JAX_PLATFORMS=cpu XLA_FLAGS='--xla_force_host_platform_device_count={devices} {_QUICK_COMPILE}'",
        f'exec {words} {shlex.quote(str(WORKER))} "$@"',
    )
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    script.chmod(0o755)
    return script


def _losses(folder: Path, steps: int) -> tuple[float, ...]:
    """The loss of every step, as MaxText's metrics file has it."""
    try:
        said = [json.loads(line) for line in (folder / METRICS_FILE).read_text(encoding="utf-8").splitlines()]
        found = {int(line["step"]): float(line["learning/lm_loss"]) for line in said}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BackEndRefused(f"the trainer left no losses: {error}", where=str(folder / LOG_FILE)) from error
    if sorted(found) != list(range(steps)):
        raise BackEndRefused(f"the trainer left {len(found)} of {steps} losses", where=str(folder / LOG_FILE))
    return tuple(found[step] for step in range(steps))


RUNNER = Runner(
    losses=losses,
    requires=(),
    install=_INSTALL,
    edits={
        "precision": ("bf16", "fp32"),
        "hardware": ("as emitted", "cpu"),
        "attention": ("as emitted", "dot_product"),
    },
    without_context_parallelism=_WITHOUT_CONTEXT_PARALLELISM,
)
