"""A file's name is data: whatever it is, files are read the same, and nothing is written outside of their folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from api.uploads.completing import completed
from api.uploads.received import received_files
from api.wire.uploads import CompletionQuestion, UploadedFile
from profiles.catalogue import load_cluster
from tests.uploads import SLURM, TOPO_M, uploaded

BASE = load_cluster("dgx-h200").model_dump(mode="json")
PARTS = st.sampled_from(["..", ".", "/", "\\", "~", "C:", "a", "\u202e", "é", "%2e%2e", "$HOME", " ", "con", ".gz"])
NAMES = st.one_of(st.lists(PARTS, min_size=1, max_size=20).map("".join), st.text(min_size=1, max_size=255))


def read_as(names: tuple[str, str]) -> tuple[dict[str, object], Path]:
    files = tuple(
        UploadedFile.model_validate(uploaded(sample, name)) for sample, name in zip((SLURM, TOPO_M), names, strict=True)
    )
    with received_files(files) as places:
        folder = Path(places[0]["path"]).parent
        assert sorted(path.name for path in folder.iterdir()) == ["0", "1"]
        assert folder.stat().st_mode & 0o077 == 0, "nobody else reads them"
        payload = {"files": places, "format": None, "facts": {}, "findings": [], "base": BASE}
        found = completed({**payload, "device": None, "name": "x"})
    assert tuple(each.name for each in found.files) == names
    return found.cluster.model_dump(), folder


EXPECTED, _ = read_as(("topology.conf", "topo.txt"))


@given(NAMES, NAMES)
@example("../../x", "../../x")
@example("/etc/passwd", "..")
@example("x" * 255, "/")
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_names_change_nothing(first: str, second: str) -> None:
    try:
        cluster, folder = read_as((first, second))
    except ValidationError:
        assert any(ord(each) < 32 or ord(each) == 127 or 0xD800 <= ord(each) < 0xE000 for each in first + second)
        return
    assert cluster == EXPECTED
    assert not folder.exists()


@pytest.mark.parametrize("name", ["", "a\0b", "a\nb", "x" * 256, "x" * 300])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(ValidationError):
        CompletionQuestion.model_validate({"files": [uploaded(TOPO_M, name)]})
