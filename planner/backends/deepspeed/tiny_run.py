"""Runs a small plan under DeepSpeed: ``launch.sh`` and the script as emitted, in fp32 on the CPU accelerator.

The reference is a second emission of the same model and samples for one rank.  Two files are edited: ``ds_config.json``
(no bf16, fp32 gradients, no overlap, for which a CPU has no streams) and ``training.json`` (dtype).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from planner.backends.deepspeed.adapters import PEFT_VERSION
from planner.backends.deepspeed.config import CONFIG_FILE
from planner.backends.deepspeed.training_document import TRAINING_FILE
from planner.backends.ranks.extension_cache import ENVIRONMENT_VARIABLE, extension_folder, remove_stale_locks
from planner.backends.ranks.launch_ranks import LOG_FILE, RanksRun, run_ranks
from planner.backends.ranks.runner import Losses, Runner, SmallRun
from planner.errors import BackEndRefused, NotFound

_STEP = re.compile(r"^step (\d+) loss (\S+) ", re.MULTILINE)


def losses(run: SmallRun) -> Losses:
    """Losses of the ranks and of one process.

    Raises BackEndRefused (a launch fails), NotFound (adapters, and there is no PEFT).
    """
    if run.plan.problem.workload.trained.adapters and find_spec("peft") is None:
        raise NotFound("peft is not installed", where="--tiny", hint=f"pip install peft=={PEFT_VERSION}")
    ranks, alone = (_edited(write()) for write in (run.on_ranks, run.alone))
    compiled = extension_folder()
    remove_stale_locks(compiled)
    variables = {
        "DS_ACCELERATOR": "cpu",
        "STEPS": str(run.steps),
        "TRANSFORMERS_OFFLINE": "1",
        ENVIRONMENT_VARIABLE: str(compiled),
    }
    done = [run_ranks(each, variables, run.deadline) for each in (ranks, alone)]
    notes = tuple(dict.fromkeys(note for ran in done for note in ran.notes))
    return Losses(printed_losses(done[0], ranks, run.steps), printed_losses(done[1], alone, run.steps), notes)


def _edited(folder: Path) -> Path:
    """The emission, edited for fp32 on a CPU."""
    _edit(folder / CONFIG_FILE, fp32_config)
    _edit(folder / TRAINING_FILE, lambda data: data | {"dtype": "float32"})
    return folder


def fp32_config(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration in fp32, without overlap."""
    plain = {key: value for key, value in config.items() if key not in {"bf16", "fp16", "communication_data_type"}}
    zero = plain["zero_optimization"] | {"overlap_comm": False}
    return plain | {"zero_optimization": zero, "data_types": {"grad_accum_dtype": "fp32"}}


def _edit(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    path.write_text(json.dumps(change(json.loads(path.read_text(encoding="utf-8"))), indent=1) + "\n", encoding="utf-8")


def printed_losses(ran: RanksRun, folder: Path, steps: int) -> tuple[float, ...]:
    """The loss of every step, as rank 0 printed it."""
    found = [(int(number), float(loss)) for number, loss in _STEP.findall(ran.stdout)]
    if [number for number, _ in found] != list(range(1, steps + 1)):
        raise BackEndRefused(f"the script printed {len(found)} of {steps} losses", where=str(folder / LOG_FILE))
    return tuple(loss for _, loss in found)


RUNNER = Runner(
    losses=losses,
    requires=("torch", "deepspeed", "transformers"),
    install="pip install deepspeed==0.19.8 'transformers>=5' 'meshwright[torch]'",
    edits={"precision": ("bf16", "fp32"), "device": ("cuda", "cpu")},
)
