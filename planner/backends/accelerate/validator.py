"""accelerate: checks that ``accelerate launch`` takes the config file and sets the environment that we give ranks.

A light overlay: Accelerate and what its import needs at exact versions, without torch, which is the interpreter's.
For plans through DeepSpeed, the folder's ``ds_config.json`` is DeepSpeed's own business (validator ``deepspeed``);
here only Accelerate's plugin reads it.
"""

from __future__ import annotations

import json
from pathlib import Path

from planner.backends.accelerate.config import CONFIG_FILE
from planner.backends.accelerate.training_document import TRAINING_FILE
from planner.backends.accelerate.version import ACCELERATE_VERSION
from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.deepspeed.adapters import ADAPTER_FILE, PEFT_VERSION
from planner.backends.deepspeed.config import CONFIG_FILE as DEEPSPEED_FILE
from planner.backends.deepspeed.write import MODEL_CONFIG_FILE
from planner.backends.launch.rank_environment import rank_environment
from planner.backends.launch.torchrun import LAUNCH_SCRIPT
from planner.errors import DocumentInvalid
from planner.model.diffusers_config import is_diffusers_config, model_from_diffusers_config
from planner.model.parameters import total_parameters

_DEPENDENCIES = (
    "huggingface_hub==2.4.0",
    "safetensors==0.8.0",
    "psutil==7.2.2",
    "packaging==26.3",
    "PyYAML==6.0.3",
    "tqdm==4.70.1",
)


def request(folder: EmittedFolder) -> Request:
    """The config files, the planned mesh, and the variables that the launcher really exports."""
    environment = rank_environment(folder.files) if LAUNCH_SCRIPT in folder.files else dict(folder.environment)
    return {
        "config": CONFIG_FILE,
        "files": {name: folder.files.get(name, "") for name in (CONFIG_FILE, DEEPSPEED_FILE)},
        "adapters": folder.files.get(ADAPTER_FILE, ""),
        "model": folder.files.get(MODEL_CONFIG_FILE, ""),
        "training": folder.files.get(TRAINING_FILE, ""),
        "parameters": _parameters(folder),
        "environment": environment,
    }


def _parameters(folder: EmittedFolder) -> int:
    """Learned scalars that the class of a diffusion transformer must have; 0 for other models."""
    try:
        data = json.loads(folder.files.get(MODEL_CONFIG_FILE, ""))
        return (
            total_parameters(model_from_diffusers_config(data, "m", MODEL_CONFIG_FILE))
            if is_diffusers_config(data)
            else 0
        )
    except (ValueError, DocumentInvalid):  # the worker's diffusers says what is wrong with it
        return 0


VALIDATOR = Validator(
    name="accelerate",
    default_version=ACCELERATE_VERSION,
    worker=Path(__file__).with_name("validator_worker.py"),
    applies=lambda folder: folder.backend == "accelerate",
    request=request,
    packages=lambda version: (f"accelerate=={version}", f"peft=={PEFT_VERSION}", *_DEPENDENCIES),
    base_modules=("torch", "numpy"),
)
