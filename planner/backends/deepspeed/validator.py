"""deepspeed: checks that its parser, AutoTP, AutoEP and Ulysses arithmetic and its engine take the files.

The overlay always brings its own DeepSpeed, so that the answer is that of the named release: the sdist builds nothing
by itself (``DS_BUILD_OPS`` is 0 unless set) and installs in seconds.  Its dependencies come at exact versions;
torch and pydantic are those of the interpreter.  A source distribution is built, which runs its ``setup.py``.
"""

from __future__ import annotations

from pathlib import Path

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.deepspeed.config import CONFIG_FILE
from planner.backends.deepspeed.training_document import TRAINING_FILE
from planner.backends.deepspeed.version import DEEPSPEED_VERSION
from planner.backends.deepspeed.write import MODEL_CONFIG_FILE
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.backends.rules.foreign_names import foreign_names
from planner.errors import DocumentInvalid

_DEPENDENCIES = foreign_names(
    """
    hjson==3.1.0 msgpack==1.2.4 py-cpuinfo==9.0.0 einops==0.8.2 psutil==7.2.2 tqdm==4.70.1 packaging==26.3
    """
)


def request(folder: EmittedFolder) -> Request:
    """The three JSON files as they are, and the ranks that ``launch.sh`` starts: 0 = unsaid, None = no such file."""
    try:
        world_size = read_world_size(folder.files[LAUNCH_SCRIPT]) if LAUNCH_SCRIPT in folder.files else None
    except DocumentInvalid:
        world_size = 0
    return {
        "config": folder.files.get(CONFIG_FILE, ""),
        "training": folder.files.get(TRAINING_FILE, ""),
        "model": folder.files.get(MODEL_CONFIG_FILE, ""),
        "world_size": world_size,
    }


VALIDATOR = Validator(
    name="deepspeed",
    default_version=DEEPSPEED_VERSION,
    worker=Path(__file__).with_name("validator_worker.py"),
    applies=lambda folder: folder.backend == "deepspeed",
    request=request,
    packages=lambda version: (f"deepspeed=={version}", *_DEPENDENCIES),
    base_modules=("torch", "pydantic", "numpy"),
)
