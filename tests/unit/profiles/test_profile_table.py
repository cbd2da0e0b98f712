"""The profile table's identity."""

from __future__ import annotations

import pytest

from profiles.device import Provenance
from profiles.errors import DocumentInvalid
from profiles.table import MeasuredPoint, ProfileTable
from profiles.validation import read_document

SOURCE = Provenance(confidence="measured", source="test")


def point(m: int, time_s: float = 1e-3) -> MeasuredPoint:
    return MeasuredPoint(operator="matmul", dtype="bf16", shape={"m": m, "n": 2, "k": 3}, time_s=time_s, source=SOURCE)


def test_the_empty_table_has_no_identity() -> None:
    assert ProfileTable().profile_id is None


def test_identity_depends_on_content_and_not_on_order() -> None:
    one, two = point(1), point(2)
    assert ProfileTable(points=(one, two)).profile_id == ProfileTable(points=(two, one)).profile_id
    assert ProfileTable(points=(one, two)).profile_id != ProfileTable(points=(one, point(2, 2e-3))).profile_id
    assert ProfileTable(points=(one,)).profile_id != ProfileTable(device="x", points=(one,)).profile_id


def test_a_table_survives_json() -> None:
    table = ProfileTable(device="h100-sxm5-80gb", points=(point(2), point(1)))
    assert ProfileTable.model_validate_json(table.canonical_json()) == table


def test_two_answers_for_one_key_are_refused() -> None:
    data = ProfileTable(points=(point(1),)).model_dump(mode="json")
    data["points"] *= 2
    with pytest.raises(DocumentInvalid, match="given twice"):
        read_document(ProfileTable, data, "p.json")
