"""Reads the emitted files: ``overrides.txt`` and ``launch.sh`` -> ``Strategy`` and layout; the recipe's adapters."""

from __future__ import annotations

from collections.abc import Mapping

from planner.backends.emission.layout import Layout
from planner.backends.megatron.arguments import ARGUMENTS_FILE, Section, write_arguments
from planner.backends.megatron.read import read_back as read_arguments_files
from planner.backends.megatron_bridge.adapters import read_adapters
from planner.backends.megatron_bridge.overrides import OVERRIDES_FILE, arguments_of, parse_overrides
from planner.backends.megatron_bridge.write import RECIPE_FILE
from planner.errors import DocumentInvalid
from planner.strategy.strategy import Strategy


def read_back(files: Mapping[str, str]) -> tuple[Strategy, Layout]:
    """Strategy and layout of an emission's files.  Raises DocumentInvalid when they do not hold together."""
    if OVERRIDES_FILE not in files:
        raise DocumentInvalid(f"{OVERRIDES_FILE} is missing", where=OVERRIDES_FILE, hint="emit the plan again")
    if RECIPE_FILE in files:
        read_adapters(files[RECIPE_FILE], RECIPE_FILE)
    said, _ = parse_overrides(files[OVERRIDES_FILE])
    text = write_arguments((Section("Overrides", arguments_of(said)),))
    try:
        return read_arguments_files({**files, ARGUMENTS_FILE: text})
    except DocumentInvalid as error:
        where = (error.where or "").replace(ARGUMENTS_FILE, OVERRIDES_FILE)
        raise DocumentInvalid(error.what, where=where, hint=error.hint) from error
