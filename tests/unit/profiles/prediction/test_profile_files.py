"""A profile's file goes to another machine whole, and what arrives damaged is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid, ProfileMissing
from profiles.prediction.profile_folder import file_content, keep_file, referenced_profile
from tests.measured_problems import random_profile
from tests.sweep_cells import cells_of, small_question


def test_what_was_sent_is_what_is_loaded(tmp_path: Path) -> None:
    (cell,) = cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8,)))
    assert cell.problem is not None
    reference = random_profile(cell.problem, seed=5)
    with pytest.raises(ProfileMissing):
        referenced_profile(reference, tmp_path)
    content = file_content(reference.profile_id)
    keep_file(reference.profile_id, content, tmp_path)
    keep_file(reference.profile_id, b"what is there stays", tmp_path)
    assert file_content(reference.profile_id, tmp_path) == content
    assert referenced_profile(reference, tmp_path).profile_id == reference.profile_id


def test_damage_is_noticed_and_absence_is_said(tmp_path: Path) -> None:
    (cell,) = cells_of(small_question(models=("llama-3.2-1b",), device_counts=(8,)))
    assert cell.problem is not None
    reference = random_profile(cell.problem, seed=6)
    with pytest.raises(ProfileMissing, match=r"is not here"):
        file_content(reference.profile_id, tmp_path)
    keep_file(reference.profile_id, file_content(reference.profile_id)[:-100], tmp_path)
    with pytest.raises(DocumentInvalid):
        referenced_profile(reference, tmp_path)
