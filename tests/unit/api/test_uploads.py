"""Files of a request: what they are called, how much of them is read, which place a refusal has."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from api.uploads import reading
from api.uploads.answers import topology_words
from api.uploads.reading import base_name, findings_of, read_uploads
from profiles.errors import DocumentInvalid
from profiles.topology import NetworkTier, NodeTopology, Topology
from tests.uploads import SAMPLES, TOPO_M


def payload(folder: Path, *files: tuple[str, bytes]) -> dict[str, Any]:
    places = []
    for number, (name, content) in enumerate(files):
        (folder / str(number)).write_bytes(content)
        places.append({"name": name, "path": str(folder / str(number))})
    return {"files": places, "format": None, "facts": {}}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("topology.conf", "topology.conf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\topo.txt", "topo.txt"),
        ("/", "file"),
        ("a/..", ".."),
    ],
)
def test_a_name_without_its_folders(name: str, expected: str) -> None:
    assert base_name(name) == expected


def test_what_the_files_unfold_to_is_limited_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_UNPACKED_BYTES", 100_000)
    sample = (SAMPLES / TOPO_M).read_bytes()
    asked = payload(tmp_path, ("topo.txt", sample), ("big.gz", gzip.compress(b"x" * 100_000)), ("again.txt", sample))
    outcomes = read_uploads(asked)
    assert [outcome.error is None for outcome in outcomes] == [True, False, True]
    (found,) = findings_of(outcomes)
    assert (found.pointer, "100,000 bytes" in found.what) == ("/files/1", True)


def test_files_that_are_read_together_are_one_outcome(tmp_path: Path) -> None:
    parts = [SAMPLES / "topology" / f"topograph_netq_{part}.json" for part in ("computeNodes", "topologyGraph")]
    first, second = ((part.name, part.read_bytes()) for part in parts)
    outcomes = read_uploads(payload(tmp_path, first, ("notes.txt", b"nothing"), second))
    assert [reading.positions(outcome) for outcome in outcomes] == [(0, 2), (1,)]
    assert [found.pointer for found in findings_of(outcomes)] == ["/files/1"]


def test_equal_names_stay_apart(tmp_path: Path) -> None:
    outcomes = read_uploads(payload(tmp_path, ("a.txt", b"nothing"), ("a.txt", (SAMPLES / TOPO_M).read_bytes())))
    assert [(reading.positions(outcome), outcome.usable) for outcome in outcomes] == [((0,), False), ((1,), True)]


def test_a_format_that_needs_what_is_not_installed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(*_: object, **__: object) -> None:
        raise ImportError("No module named 'pandas'", name="pandas")

    monkeypatch.setattr(reading, "read_sources", lacks)
    with pytest.raises(DocumentInvalid, match="lacks pandas"):
        read_uploads(payload(tmp_path, ("a.txt", b"a")))


def test_a_wiring_in_words() -> None:
    tier = NetworkTier(name="leaf", groups=((0,),))
    assert topology_words(Topology(num_nodes=1, tiers=(tier,))) == "1 node, 1 network level"
    assert topology_words(Topology(node=NodeTopology(num_devices=8))) == "a node of 8 devices"
    assert topology_words(Topology()) == "wiring"
