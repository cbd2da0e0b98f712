"""torchtitan: checks that its configuration manager, trainer's checks, mesh and pipeline take the emitted files."""

from __future__ import annotations

from pathlib import Path

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.backends.torchtitan.config_module import MODULE_FILE
from planner.backends.torchtitan.read import read_back
from planner.backends.torchtitan.toml_config import CONFIG_FILE, MODEL_FILE
from planner.backends.torchtitan.train_script import ARGUMENTS, TRAIN_SCRIPT
from planner.backends.torchtitan.version import TORCHTITAN_VERSION
from planner.errors import DocumentInvalid

_PARTS = {
    "tyro": "1.0.17",
    "docstring-parser": "0.18.0",
    "typeguard": "4.6.0",
    "spmd-types": "0.2.3",
    "torchao": "0.18.0",
}
"""What torchtitan imports to read a configuration and to build a model; the rest is stubbed by the worker."""


def packages(version: str) -> tuple[str, ...]:
    """The overlay of a release."""
    return (f"torchtitan=={version}", *(f"{name}=={release}" for name, release in _PARTS.items()))


def arguments(files: EmittedFolder | dict[str, str]) -> list[str]:
    """The words that ``train.sh`` gives to ``torchtitan.train``.  Raises DocumentInvalid when there are none."""
    texts = files.files if isinstance(files, EmittedFolder) else files
    script = texts.get(TRAIN_SCRIPT, "")
    for words in ARGUMENTS.values():
        if f"-m torchtitan.train {' '.join(words)} " in script:
            return list(words)
    raise DocumentInvalid(f"{TRAIN_SCRIPT} starts no trainer", where=TRAIN_SCRIPT, hint="emit the plan again")


def request(folder: EmittedFolder) -> Request:
    """The files that torchtitan reads, and how many ranks are started."""
    files = {name: folder.files[name] for name in (MODULE_FILE, CONFIG_FILE, MODEL_FILE) if name in folder.files}
    if LAUNCH_SCRIPT in folder.files:
        ranks = read_world_size(folder.files[LAUNCH_SCRIPT])
    else:
        ranks = read_back(folder.files)[0].world_size
    return {"files": files, "arguments": arguments(folder), "world_size": ranks}


VALIDATOR = Validator(
    name="torchtitan",
    default_version=TORCHTITAN_VERSION,
    worker=Path(__file__).with_name("validator_worker.py"),
    applies=lambda folder: folder.backend == "torchtitan",
    request=request,
    packages=packages,
    base_modules=("torch",),
    environment=lambda overlay: {"CUDA_VISIBLE_DEVICES": ""},
    executes_files=True,
)
"""``executes_files``: the configuration of 0.3.0, and the model of 0.2.2, are Python modules."""
