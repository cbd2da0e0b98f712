"""mindspeed: checks that megatron-core 0.12.1 takes the arguments that MindSpeed hands to it.

Proves: every flag is in the release's list (``flag_table``, read from the sources of Megatron-LM
core_v0.12.1 and MindSpeed core_r0.12.1), sets a field that the release has, and builds the release's own configs,
process groups at full world size, layers of every chunk and interleaved schedule.

Does not prove: that Megatron-LM's argument parser and ``validate_args`` agree (the wheel of 0.12.1 has no
``megatron.training``), nor that MindSpeed's features do (MindSpeed is in no package registry and needs CANN).  Their
rules are ours to keep (``planner.backends.mindspeed.space``).
"""

from __future__ import annotations

from pathlib import Path

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.backends.megatron.arguments import argument_vector
from planner.backends.megatron.write import DATA_FILE
from planner.backends.mindspeed.flag_table import CORE_VERSION, known_flags
from planner.backends.mindspeed.write import ARGUMENTS_FILE


def request(folder: EmittedFolder) -> Request:
    """The words that ``train.sh`` passes on, and the flags that the release knows."""
    files = folder.files
    version = str(folder.versions.get("mindspeed", CORE_VERSION))
    return question(files.get(ARGUMENTS_FILE, ""), files.get(DATA_FILE, ""), files.get(LAUNCH_SCRIPT, ""), version)


def question(arguments: str, data: str, launch: str, version: str = CORE_VERSION) -> Request:
    """What the worker is asked about the texts of these files."""
    return {
        "arguments": [*argument_vector(arguments), *argument_vector(data)],
        "flags": sorted(known_flags(version)),
        "world_size": read_world_size(launch),
    }


VALIDATOR = Validator(
    name="mindspeed",
    default_version=CORE_VERSION,
    worker=Path(__file__).with_name("validator_worker.py"),
    applies=lambda folder: folder.backend == "mindspeed",
    request=request,
    packages=lambda version: (f"megatron-core=={version.removeprefix('core_v')}",),
    base_modules=("torch", "numpy"),
)
