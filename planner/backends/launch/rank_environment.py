"""The variables that the ranks of an emitted folder see: what ``launch.sh`` exports, or Ray Train's list."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping

from planner.backends.launch.ray import JOB_FILE
from planner.backends.launch.ray_train import DRIVER
from planner.backends.launch.torchrun import LAUNCH_SCRIPT

_EXPORT = re.compile(r"^export ([A-Za-z_]\w*)=(.*)$", re.MULTILINE)


def rank_environment(files: Mapping[str, str]) -> dict[str, str]:
    """Literal values only; a list that is not readable gives none, so that a checker misses what it needs.

    Ray Train starts the ranks itself, with the variables of ``launch.json``; every other launcher runs ``launch.sh``.
    """
    if DRIVER in files:
        try:
            listed = json.loads(files.get(JOB_FILE, ""))["environment"]
            return {str(name): str(value) for name, value in listed.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}
    exports = _EXPORT.findall(files.get(LAUNCH_SCRIPT, ""))
    return {name: " ".join(_words(value)) for name, value in exports if "$" not in value}


def _words(text: str) -> list[str]:
    """As the shell would take them; a broken quotation stays as it is."""
    try:
        return shlex.split(text)
    except ValueError:
        return [text]
