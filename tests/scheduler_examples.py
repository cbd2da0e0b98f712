"""Run the scripts of ``examples/schedulers`` as a scheduler would: real processes against a real service."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.command_line import REPOSITORY
from tests.running_service import SMALL_MODEL, WORKLOAD

FOLDER = REPOSITORY / "examples" / "schedulers"
LONGEST_S = 600


def small_question(**changes: Any) -> dict[str, Any]:
    """A question without devices that is answered in a fraction of a second."""
    return {
        "model": SMALL_MODEL,
        "cluster": "dgx-a100-80g",
        "workload": WORKLOAD,
        "constraints": {"backends": ["megatron"]},
        **changes,
    }


def environment(address: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a scheduler's scripts see: the service, this interpreter and the repository."""
    ours = {"MESHWRIGHT_SERVER": address, "PYTHONPATH": str(REPOSITORY), "PYTHON": sys.executable}
    return {**os.environ, **ours, **(extra or {})}


def run_script(
    script: str,
    *words: str,
    address: str,
    given: str = "",
    extra: Mapping[str, str] | None = None,
    program: str = sys.executable,
) -> subprocess.CompletedProcess[str]:
    """One script, to its end."""
    return subprocess.run(
        [program, str(FOLDER / script), *words],
        input=given,
        capture_output=True,
        text=True,
        env=environment(address, extra),
        timeout=LONGEST_S,
        check=False,
    )


def write_program(path: Path, text: str) -> None:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
