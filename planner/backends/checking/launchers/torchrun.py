"""torchrun: checks that its argument parser and launch configuration take the words of ``launch.sh``."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, node_kinds
from planner.errors import DocumentInvalid

TORCH_VERSION = "2.13.0"
_ASSIGNMENT = re.compile(r"^(NUM_NODES|DEVICES_PER_NODE)=(\d+)$", re.MULTILINE)
_STAND_INS = {"NODE_RANK": "0", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"}
"""What the launcher sets on each node."""


def torchrun_words(text: str) -> list[str]:
    """The words that ``launch.sh`` gives to torchrun on the first node.  Raises DocumentInvalid when there are none."""
    _, found, command = text.partition("exec torchrun ")
    if not found:
        raise DocumentInvalid(f"{LAUNCH_SCRIPT} starts no torchrun", where=LAUNCH_SCRIPT, hint="emit the plan again")
    values = {**_STAND_INS, **dict(_ASSIGNMENT.findall(text))}
    for _, devices in node_kinds(text)[:1]:
        values["DEVICES_PER_NODE"] = str(devices)
    line = command.replace("\\\n", " ").splitlines()[0]
    for name, value in values.items():
        line = re.sub(rf"\$\{{?{name}\b\}}?", value, line)
    return shlex.split(line)


def request(folder: EmittedFolder) -> Request:
    """The words, as the first node would see them."""
    return {"arguments": torchrun_words(folder.files[LAUNCH_SCRIPT])}


VALIDATOR = Validator(
    name="torchrun",
    default_version=TORCH_VERSION,
    worker=Path(__file__).with_name("torchrun_worker.py"),
    applies=lambda folder: "exec torchrun " in folder.files.get(LAUNCH_SCRIPT, ""),
    request=request,
    base_modules=("torch",),
    of_interpreter="torch",
)
