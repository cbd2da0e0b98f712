"""Entry points are those that ``importlib.metadata`` finds, read without it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from planner.backends.entry_points import EntryPoint, entry_points

GROUP = "meshwright.tried"


def installed(folder: Path, name: str, text: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(text, encoding="utf-8")


def test_every_group_of_this_environment_is_read_as_importlib_metadata_reads_it() -> None:
    groups = set(metadata.entry_points().groups)
    assert {"meshwright.commands", "console_scripts"} <= groups
    for group in groups:
        theirs = {(each.name, each.value) for each in metadata.entry_points(group=group)}
        assert {(each.name, each.value) for each in entry_points(group)} == theirs
    assert entry_points("meshwright.nobody") == ()


def test_of_a_distribution_that_is_there_twice_the_first_one_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path / "a", "Tried_it", f"[other]\nx = y:z\n\n[{GROUP}]\n# said\none = json : loads\n")
    installed(tmp_path / "b", "tried.it", f"[{GROUP}]\ntwo = json:dumps\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "a"), str(tmp_path / "none"), str(tmp_path / "b"), *sys.path])
    (point,) = entry_points(GROUP)
    assert (point.name, point.module, point.load()) == ("one", "json", __import__("json").loads)
    assert EntryPoint("whole", "json.decoder").load().JSONDecoder


def test_archives_on_the_path_are_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("packed-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: packed\nVersion: 1.0\n")
        packed.writestr("packed-1.0.dist-info/entry_points.txt", f"[{GROUP}]\none = json:loads\n")
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    assert [(each.name, each.value) for each in entry_points(GROUP)] == [("one", "json:loads")]


def test_the_help_does_not_import_it() -> None:
    code = "import sys, planner.cli.main as m; m.build_app(); print('importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
