from __future__ import annotations

import errno
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from planner.backends.emission.emission import BackEndFiles, Emission
from planner.backends.emission.write import write_emission
from planner.backends.folders.emit import assemble
from planner.errors import Conflict, DocumentInvalid
from planner.plan.plan import Plan
from planner.strategy.strategy import Strategy
from planner.version import __version__
from tests.plan_factory import make_plan


def make_emission(content: str = "hello\n") -> Emission:
    plan = make_plan(Strategy(dp_shard=2))
    made = BackEndFiles(
        {"train.sh": content, "deep/er.txt": "ä\n"},
        "train.sh",
        {"thing": "1.2"},
        "1.2",
        executables=frozenset({"train.sh"}),
        assumptions=("it rains",),
    )
    return assemble("megatron", plan, "slurm", made)


def leftovers(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_everything_is_on_disk_and_in_the_manifest(tmp_path: Path) -> None:
    emission = make_emission()
    out = write_emission(emission, tmp_path / "made" / "out")
    manifest = json.loads((out / "manifest.json").read_text())
    assert set(manifest["files"]) == set(emission.files)
    for name, entry in manifest["files"].items():
        data = (out / name).read_bytes()
        assert data.decode() == emission.files[name]
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
        assert entry["executable"] == os.access(out / name, os.X_OK) == (name in {"train.sh", "launch.sh"})
    assert manifest["plan_id"] == emission.plan.plan_id
    assert (manifest["schema_version"], manifest["backend"], manifest["release"]) == (2, "megatron", "1.2")
    assert manifest["launcher"] == "slurm"
    assert manifest["versions"] == {"meshwright": __version__, "thing": "1.2"}
    assert manifest["assumptions"] == ["it rains"]
    assert leftovers(tmp_path / "made") == ["out"]


def test_the_plan_can_be_loaded_again(tmp_path: Path) -> None:
    emission = make_emission()
    out = write_emission(emission, tmp_path / "out")
    assert Plan.model_validate_json((out / "plan.json").read_text()) == emission.plan


def test_an_untouched_emission_is_replaced_whole(tmp_path: Path) -> None:
    write_emission(make_emission("old\n"), tmp_path / "out")
    second = make_emission("new\n")
    without = replace(second, files={name: text for name, text in second.files.items() if name != "deep/er.txt"})
    write_emission(without, tmp_path / "out")
    assert (tmp_path / "out" / "train.sh").read_text() == "new\n"
    assert not (tmp_path / "out" / "deep").exists()
    assert leftovers(tmp_path) == ["out"]


def test_an_empty_directory_is_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_emission(make_emission(), tmp_path / "out")
    assert (tmp_path / "out" / "manifest.json").is_file()


def _edit(out: Path) -> None:
    (out / "train.sh").write_text("mine\n")


def _add(out: Path) -> None:
    (out / "checkpoint.pt").write_text("weights")


def _remove(out: Path) -> None:
    (out / "train.sh").unlink()


@pytest.mark.parametrize(("change", "word"), [(_edit, "edited"), (_add, "added"), (_remove, "missing")])
def test_a_changed_emission_is_not_overwritten(tmp_path: Path, change: object, word: str) -> None:
    out = write_emission(make_emission(), tmp_path / "out")
    change(out)  # type: ignore[operator]
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(Conflict, match=word) as caught:
        write_emission(make_emission("new\n"), out)
    assert caught.value.hint
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert leftovers(tmp_path) == ["out"]


@pytest.mark.parametrize("text", ["{}", "[1]", "not json", '{"kind": "meshwright-emission", "files": {"../x": {}}}'])
def test_a_foreign_directory_is_not_overwritten(tmp_path: Path, text: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "manifest.json").write_text(text)
    with pytest.raises(Conflict, match="not an emission"):
        write_emission(make_emission(), out)
    assert leftovers(out) == ["manifest.json"]


def test_a_file_or_a_link_is_not_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("file", "link"):
        with pytest.raises(Conflict, match="not a plain directory"):
            write_emission(make_emission(), tmp_path / name)
    with pytest.raises(DocumentInvalid, match="a part of the path is a file"):
        write_emission(make_emission(), tmp_path / "file" / "out")


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "disk is full"), (errno.EROFS, "read-only"), (errno.EACCES, "permission denied")],
)
def test_a_failing_disk_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    old = write_emission(make_emission("old\n"), tmp_path / "out")

    def fail(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    for name in ("out", "fresh"):
        with pytest.raises(DocumentInvalid, match=words):
            write_emission(make_emission("new\n"), tmp_path / name)
    assert leftovers(tmp_path) == ["out"]
    assert (old / "train.sh").read_text() == "old\n"


def test_a_failing_rename_brings_the_old_one_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = write_emission(make_emission("old\n"), tmp_path / "out")
    rename = os.rename
    calls: list[str] = []

    def second_fails(source: Path, target: Path) -> None:
        calls.append(str(target))
        if len(calls) == 2:
            raise OSError(errno.EIO, "input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", second_fails)
    with pytest.raises(DocumentInvalid, match="input/output error"):
        write_emission(make_emission("new\n"), tmp_path / "out")
    assert len(calls) == 3
    assert (old / "train.sh").read_text() == "old\n"
    assert leftovers(tmp_path) == ["out"]
