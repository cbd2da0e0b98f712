"""megatron-core: checks that Megatron-LM's parser, checks and process groups take the folder's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.launch.rank_environment import rank_environment
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.backends.megatron.arguments import ARGUMENTS_FILE
from planner.backends.megatron.environment import is_blackwell_or_later
from planner.backends.megatron.version import MEGATRON_CORE_VERSION
from planner.backends.megatron.write import DATA_FILE
from planner.errors import MeshwrightError


def shell_words(text: str) -> list[str]:
    """The words that ``train.sh`` passes on: every line that is neither empty nor a comment, split at blanks.

    Not ``parse_arguments``: a hand-edited file that our reader refuses still has to reach Megatron's parser.
    """
    lines = (line.split() for line in text.splitlines())
    return [word for words in lines if words and not words[0].startswith("#") for word in words]


def world_size(folder: EmittedFolder) -> int | None:
    """Ranks that the folder starts; from the plan beside it where there is no ``launch.sh``, None when nobody knows."""
    try:
        if LAUNCH_SCRIPT in folder.files:
            return read_world_size(folder.files[LAUNCH_SCRIPT])
        return folder.plan().chosen().world_size
    except (MeshwrightError, ValueError, KeyError, TypeError, RecursionError):
        return None


def request(folder: EmittedFolder) -> Request:
    """Everything that the first rank would see."""
    ranks = world_size(folder) or 1
    environment = rank_environment(folder.files) if LAUNCH_SCRIPT in folder.files else folder.environment
    arguments = [word for name in (ARGUMENTS_FILE, DATA_FILE) for word in shell_words(folder.files.get(name, ""))]
    return arguments_request(
        arguments,
        ranks,
        environment,
        _architecture(folder),
    )


def arguments_request(
    arguments: list[str], world_size: int, environment: Mapping[str, str], architecture: str
) -> dict[str, object]:
    """What the worker is asked about words that came from anywhere."""
    return {
        "arguments": arguments,
        "world_size": world_size,
        "environment": dict(environment),
        "compute_capability_major": 10 if is_blackwell_or_later(architecture) else 9,
    }


def _architecture(folder: EmittedFolder) -> str:
    """The kind of device is in no file that Megatron reads; it asks the device itself."""
    try:
        return folder.plan().problem.cluster.pools[0].device.architecture
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


VALIDATOR = Validator(
    name="megatron-core",
    default_version=MEGATRON_CORE_VERSION,
    worker=Path(__file__).with_name("validator_worker.py"),
    applies=lambda folder: (
        folder.backend == "megatron" and ARGUMENTS_FILE in folder.files and world_size(folder) is not None
    ),
    request=request,
    packages=lambda version: (f"megatron-core=={version}",),
    base_modules=("torch",),
)
