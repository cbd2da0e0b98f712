"""The keys that were edited by hand, file by file: the plan is emitted again and compared, key by key.

A key is what a reader of the format would name: a flag of an argument file, a JSON pointer, a YAML path, a line number
of anything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.folders.emit import emit_plan
from planner.backends.launch.settings import LaunchSettings
from planner.errors import MeshwrightError

_MOST_KEYS = 8
_ABSENT = "absent"


def expected_files(folder: EmittedFolder) -> Mapping[str, str]:
    """What ``emit`` writes today for the plan of the folder; empty where its plan or names are no longer readable."""
    try:
        plan = folder.plan()
        settings = LaunchSettings.from_dict(folder.manifest.get("launch") or {})
        return emit_plan(plan, folder.manifest["launcher"], settings).files
    except (MeshwrightError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def edited_keys(name: str, expected: str, found: str) -> tuple[str, ...]:
    """``--micro-batch-size: 2, emitted as 1`` for every key that differs; the first few of many."""
    was, now = keyed(name, expected), keyed(name, found)
    changed = [
        f"{key}: {now.get(key, _ABSENT)}, emitted as {was.get(key, _ABSENT)}"
        for key in dict.fromkeys((*was, *now))
        if was.get(key) != now.get(key)
    ]
    more = len(changed) - _MOST_KEYS
    return (*changed[:_MOST_KEYS], *([f"and {more} more"] if more > 0 else []))


def keyed(name: str, text: str) -> dict[str, str]:
    """Every key of a file with its value in words; by line where the format has no keys or is broken."""
    suffix = PurePosixPath(name).suffix
    try:
        if suffix == ".json":
            return dict(_leaves(json.loads(text), ""))
        if suffix in (".yaml", ".yml"):
            return dict(_documents(text))
        if suffix == ".toml":
            import tomllib

            return dict(_leaves(tomllib.loads(text), ""))
        if suffix == ".args":
            return {words[0]: " ".join(words[1:]) or "set" for line in text.splitlines() if (words := _words(line))}
    except (ValueError, RecursionError, MeshwrightError):
        pass
    return {f"line {number}": line for number, line in enumerate(text.splitlines(), start=1)}


def _words(line: str) -> list[str]:
    words = line.split()
    return [] if not words or words[0].startswith("#") else words


def _documents(text: str) -> Iterator[tuple[str, str]]:
    """All documents of a YAML stream; a single one has no number in its keys."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        documents = list(YAML(typ="safe", pure=True).load_all(text))
    except YAMLError as error:
        raise ValueError(str(error)) from error
    for number, document in enumerate(documents):
        yield from _leaves(document, f"#{number}" if len(documents) > 1 else "")


def _leaves(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """JSON pointers of all scalars (and empty containers)."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{pointer}/{key}")
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{pointer}/{index}")
    else:
        yield pointer or "/", json.dumps(value, default=str)
