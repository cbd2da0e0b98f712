"""The signature of the software: the release and a hash of every source that decides a plan's numbers.

A constant to be bumped by hand would be forgotten once, and then a stored plan would answer with yesterday's cost
model.  Hashing the sources cannot be forgotten; it reads about a megabyte, in milliseconds.  Doors, the native runtime,
the store and what a back-end writes, reads and checks do not decide numbers and are left out, so a fix there keeps
stored plans.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

import planner
import profiles
import solver
from planner.version import __version__

DECIDING_ROOMS = frozenset({"backends", "model", "plan", "predict", "question", "search", "strategy"})
"""Rooms of ``planner`` that decide a plan; what calibrates it and modules directly in ``planner/`` do so too."""
SOURCES = (".py", ".yaml", ".json")
"""Code, and the data that it reads beside the question."""
IN_THE_QUESTION = ("profiles/catalogue/devices/", "profiles/catalogue/clusters/", "planner/model/catalogue/")
"""Data that a question holds in full."""
UNDECIDING_BACKEND_PARTS = frozenset(
    {
        *("checking", "folders", "operator_sharding", "ranks", "trainer"),
        *("write.py", "read.py", "validator.py", "tiny_run.py"),
    }
)
"""Folders and files of ``planner/backends`` that search nothing: they write, read, check and train what was found."""


@cache
def software_signature() -> str:
    """``<release>+<first 16 hex digits of the sources' SHA-256>``; one per process (sources do not change under it)."""
    digest = hashlib.sha256()
    for name, path in deciding_sources():
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"{__version__}+{digest.hexdigest()[:16]}"


def deciding_sources() -> list[tuple[str, Path]]:
    """Every hashed file with its name inside the house, in a fixed order."""
    found: list[tuple[str, Path]] = []
    for package in (planner, profiles, solver):
        for root in package.__path__:
            for folder, _, files in os.walk(root):  # three times as fast as Path.rglob
                room = "/".join((package.__name__, *Path(folder).relative_to(root).parts))
                found += [(f"{room}/{name}", Path(folder, name)) for name in files if name.endswith(SOURCES)]
    return sorted((name, path) for name, path in found if _decides(name))


def _decides(name: str) -> bool:
    parts = name.split("/")
    if name.startswith(IN_THE_QUESTION):
        return False
    if parts[0] != "planner" or len(parts) == 2:
        return True
    if parts[1] == "backends" and (UNDECIDING_BACKEND_PARTS.intersection(parts) or parts[-1].endswith("_worker.py")):
        return False
    return parts[1] in DECIDING_ROOMS or parts[1:3] == ["evidence", "calibration"]
