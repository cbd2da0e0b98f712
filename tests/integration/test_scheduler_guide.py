"""The page for schedulers runs as it is written, on a service of its own: only the address is another one."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.board_in_memory import MemoryBoard
from tests.listening_service import listening

REPOSITORY = Path(__file__).parents[2]
GUIDE = (REPOSITORY / "docs" / "how-to" / "schedulers.md").read_text(encoding="utf-8")
WRITTEN = "http://127.0.0.1:8642"


def blocks(language: str) -> list[str]:
    """The page's blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    database = f"sqlite:///{tmp_path_factory.mktemp('guide') / 'plans.db'}"
    with listening(database, MemoryBoard(database)) as found:
        yield found


@pytest.mark.slow
def test_the_page_for_schedulers_runs_as_written(address: str, tmp_path: Path) -> None:
    (code,), (lines,) = blocks("python"), blocks("sh")
    settings = os.environ | {"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True, check=False)

    told = code + '    print(chosen.num_devices, plan.backend, *(file.name for file in Path("out").iterdir()))\n'
    ran = run("-c", told.replace(WRITTEN, address))
    assert ran.returncode == 0, ran.stderr
    devices, backend, *files = ran.stdout.split()
    assert int(devices) in (8, 16, 32, 64)
    assert backend == "megatron"
    assert "manifest.json" in files
    commands = [line for line in lines.replace("\\\n", " ").splitlines() if line.startswith("meshwright ")]
    assert len(commands) >= 5
    for command in commands:
        words = shlex.split(command.replace(WRITTEN, address))[1:]
        ran = run("-m", "planner.cli.main", *words)
        assert ran.returncode == 0, f"{command}\n{ran.stderr}"
        assert ran.stdout.strip(), command
