"""Facts of the machine and the software on which was measured, and one core for everything but cold plans."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from planner.store import software_signature


def use_one_core() -> int:
    """Bind this process and its children to one core; returns its number."""
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


@contextmanager
def two_cores() -> Iterator[None]:
    """Let children have a second core: a plan of the command line is searched by two processes at a time."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core % (os.cpu_count() or 1) for core in (max(before), max(before) + 1)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def machine_facts(core: int) -> dict[str, Any]:
    """What a reader needs to judge the figures.  ``load`` above 1 a core means that others were running too."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "core_used": core,
        "cores_of_cold_plans": min(2, os.cpu_count() or 1),
        "load": list(os.getloadavg()),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "meshwright": software_signature(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"
