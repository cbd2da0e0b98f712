"""Runs a small plan under Accelerate: ``launch.sh`` and the script as emitted, in fp32 on CPU ranks.

The reference is a second emission of the same model and samples for one rank.  Edited: ``training.json`` (dtype),
``ds_config.json`` where there is one (no bf16, no overlap), and one line of the script, which imports
``tiny_run_worker.py``.  Accelerate lives in the folder of its validator, never in our process.
"""

from __future__ import annotations

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from planner.backends.accelerate.training_document import TRAINING_FILE
from planner.backends.accelerate.validator import VALIDATOR
from planner.backends.accelerate.write import TRAIN_SCRIPT
from planner.backends.checking.environment import make_ready
from planner.backends.deepspeed.config import CONFIG_FILE as DEEPSPEED_FILE
from planner.backends.deepspeed.tiny_run import fp32_config, printed_losses
from planner.backends.ranks.extension_cache import ENVIRONMENT_VARIABLE, extension_folder, remove_stale_locks
from planner.backends.ranks.launch_ranks import run_ranks
from planner.backends.ranks.runner import Losses, Runner, SmallRun
from planner.errors import ValidatorUnavailable

WORKER = Path(__file__).with_name("tiny_run_worker.py")
MODULE = "accelerate_on_cpu"
_FIRST_IMPORT = "import contextlib\n"
_WITHOUT_CONTEXT_PARALLELISM = "torch 2.13's context parallelism knows attention kernels of CUDA only"
"""distributed/tensor/experimental/_context_parallel/_attention.py: no strategy of the flash kernel of a CPU."""


def losses(run: SmallRun) -> Losses:
    """Losses of the ranks and of one process.

    Raises BackEndRefused (a launch fails), ValidatorUnavailable (there is no Accelerate).
    """
    if run.plan.problem.model.denoiser is not None and find_spec("diffusers") is None:
        raise ValidatorUnavailable("diffusers is not installed", where="--tiny", hint="pip install 'diffusers>=0.42'")
    packages = make_ready(VALIDATOR, VALIDATOR.default_version)
    compiled = extension_folder()
    remove_stale_locks(compiled)
    variables = {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")])),
        "DS_ACCELERATOR": "cpu",
        "STEPS": str(run.steps),
        "TRANSFORMERS_OFFLINE": "1",
        ENVIRONMENT_VARIABLE: str(compiled),
    }
    folders = [_edited(write()) for write in (run.on_ranks, run.alone)]
    done = [run_ranks(folder, variables, run.deadline) for folder in folders]
    notes = tuple(dict.fromkeys(note for ran in done for note in ran.notes))
    values = [printed_losses(ran, folder, run.steps) for ran, folder in zip(done, folders, strict=True)]
    return Losses(values[0], values[1], notes)


def _edited(folder: Path) -> Path:
    """The emission, edited for fp32 on a CPU."""
    _edit(folder / TRAINING_FILE, {"dtype": "float32", "reduce_dtype": "float32"})
    if (folder / DEEPSPEED_FILE).exists():
        config = json.loads((folder / DEEPSPEED_FILE).read_text(encoding="utf-8"))
        (folder / DEEPSPEED_FILE).write_text(json.dumps(fp32_config(config), indent=1) + "\n", encoding="utf-8")
    shutil.copy(WORKER, folder / f"{MODULE}.py")
    script = folder / TRAIN_SCRIPT
    text = script.read_text(encoding="utf-8")
    edited = text.replace(_FIRST_IMPORT, f"import {MODULE}  # CPU ranks\n{_FIRST_IMPORT}", 1)
    script.write_text(edited, encoding="utf-8")
    return folder


def _edit(path: Path, changes: dict[str, Any]) -> None:
    data = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


RUNNER = Runner(
    losses=losses,
    requires=("torch", "transformers"),
    install="pip install 'transformers>=5' 'meshwright[torch]'",
    edits={"precision": ("bf16", "fp32"), "device": ("cuda", "cpu")},
    without_context_parallelism=_WITHOUT_CONTEXT_PARALLELISM,
)
