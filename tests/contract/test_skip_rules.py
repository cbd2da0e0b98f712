"""A skip is a failure where the skipped thing has to be there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

IN_THE_TEST = """
import pytest
def test_reads_shared(): pytest.skip("../shared is absent")
"""
IN_THE_MODULE = """
import pytest
pytest.skip("../shared is absent", allow_module_level=True)
"""
IN_A_MARK = """
import pytest
@pytest.mark.skipif(True, reason="needs the shared folder")
def test_reads_shared(): pass
"""
UNRELATED = """
import pytest
def test_moon(): pytest.skip("the moon is not full")
"""


def run(folder: Path, source: str, **variables: str) -> int:
    (folder / "test_sample.py").write_text(source)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MESHWRIGHT", "PYTEST"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [*command, "--rootdir", str(folder), str(folder)],
        cwd=REPOSITORY,
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "skipped" in done.stdout or "may not skip" in done.stdout, done.stdout + done.stderr
    return done.returncode


@pytest.mark.parametrize("source", [IN_THE_TEST, IN_THE_MODULE, IN_A_MARK])
def test_required_things_may_not_be_skipped(tmp_path: Path, source: str) -> None:
    assert run(tmp_path, source) in {0, 5}
    assert run(tmp_path, source, MESHWRIGHT_REQUIRE_SHARED="1") in {1, 2}
    assert run(tmp_path, source, MESHWRIGHT_REQUIRE_POSTGRES="1") in {0, 5}


def test_other_skips_stay_skips(tmp_path: Path) -> None:
    assert run(tmp_path, UNRELATED, MESHWRIGHT_REQUIRE_SHARED="1") == 0
