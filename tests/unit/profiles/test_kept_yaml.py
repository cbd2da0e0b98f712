"""What the catalogue keeps of its YAML files is what the reader gives of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.catalogue.device_files import DEVICE_FOLDER, builtin_devices
from profiles.catalogue.kept_yaml import load_catalogue_file
from profiles.safe_yaml import load_document_file


def _kept(path: Path) -> Path:
    return path.parent / "__pycache__" / f"{path.stem}.json"


@pytest.fixture
def a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    path = tmp_path / "device.yaml"
    path.write_bytes((DEVICE_FOLDER / f"{builtin_devices()[0]}.yaml").read_bytes())
    return path


def test_what_is_kept_reads_the_same(a_device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_catalogue_file(a_device)
    monkeypatch.setattr("profiles.safe_yaml.load_yaml_text", None)

    assert load_catalogue_file(a_device) == first
    monkeypatch.undo()
    assert first == load_document_file(a_device)


def test_a_file_that_changes_is_read_again(a_device: Path) -> None:
    load_catalogue_file(a_device)
    a_device.write_text("name: another\n", encoding="utf-8")

    assert load_catalogue_file(a_device) == {"name": "another"}


@pytest.mark.parametrize("damaged", [b"", b"{}", b"x" * 64 + b"\n{}"])
def test_what_is_damaged_is_read_again(a_device: Path, damaged: bytes) -> None:
    whole = load_catalogue_file(a_device)
    _kept(a_device).write_bytes(damaged)

    assert load_catalogue_file(a_device) == whole


def test_a_folder_that_cannot_be_written_is_read_each_time(a_device: Path) -> None:
    (a_device.parent / "__pycache__").write_text("a file where the folder would be", encoding="utf-8")

    assert load_catalogue_file(a_device) == load_document_file(a_device)
    assert [each.name for each in a_device.parent.iterdir() if each.is_dir()] == []
