"""The table of Megatron-Bridge's recipes is what the installed release gives, where it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.backends.checking.environment import overlays_folder
from planner.backends.megatron_bridge.version import BRIDGE_VERSION

REPOSITORY = Path(__file__).parents[2]
TABLE = REPOSITORY / "planner/backends/megatron_bridge" / f"recipes_{BRIDGE_VERSION.replace('.', '_')}.jsonl"


def test_the_table_is_what_the_release_gives(tmp_path: Path) -> None:
    python = f"py{sys.version_info.major}.{sys.version_info.minor}"
    overlay = overlays_folder(dict(os.environ)) / f"megatron-bridge-{BRIDGE_VERSION}-{python}"
    if not overlay.is_dir():
        pytest.skip(f"needs megatron-bridge {BRIDGE_VERSION}: meshwright check --with megatron-bridge installs it")
    made = tmp_path / "recipes.jsonl"
    words = [sys.executable, "-m", "tests.contract.bridge_recipes", str(overlay), str(made)]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert made.read_text(encoding="utf-8") == TABLE.read_text(encoding="utf-8")
