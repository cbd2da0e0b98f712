"""Axes become cells: every combination once, in order, and what cannot be is a cell with its reason."""

from __future__ import annotations

import pytest

from planner.answers.sweep.question import SweepQuestion
from planner.errors import DocumentInvalid, NotFound
from profiles.validation import read_document
from tests.sweep_cells import cells_of, small_question


def test_cells_are_the_product_in_the_order_given() -> None:
    question = small_question(device_counts=(16, 8), sequence_lengths=(4096, 2048), global_batch_sizes=(64, 32))
    cells = cells_of(question)
    assert len(cells) == question.num_cells == 2 * 2 * 2 * 2
    assert [cell.index for cell in cells] == list(range(16))
    first = cells[0]
    assert (first.model, first.num_devices, first.sequence_length, first.global_batch_size) == (
        "llama-3.2-1b",
        16,
        4096,
        64,
    )
    assert [cell.global_batch_size for cell in cells[:4]] == [64, 32, 64, 32]
    assert [cell.sequence_length for cell in cells[:4]] == [4096, 4096, 2048, 2048]
    for cell in cells:
        assert cell.problem is not None
        assert cell.problem.cluster.num_devices == cell.num_devices
        assert cell.problem.workload.sequence_length == cell.sequence_length
        assert cell.problem.workload.global_batch_size == cell.global_batch_size
    assert len({cell.problem.problem_id for cell in cells if cell.problem}) == 16


def test_a_value_given_twice_is_one_cell() -> None:
    question = small_question(device_counts=(8, 8), sequence_lengths=(2048, 2048))
    assert len(cells_of(question)) == question.num_cells == 2


def test_without_device_counts_a_cluster_stays_as_it_is() -> None:
    cells = cells_of(small_question(device_counts=()))
    assert {cell.num_devices for cell in cells} == {cells[0].problem.cluster.num_devices if cells[0].problem else 0}


def test_a_count_that_is_no_whole_number_of_nodes_is_a_cell_with_its_reason() -> None:
    eight, twelve, sixteen = cells_of(small_question(models=("llama-3.2-1b",)))
    assert eight.problem is not None
    assert sixteen.problem is not None
    assert twelve.problem is None
    assert isinstance(twelve.refusal, DocumentInvalid)
    assert "12 devices" in twelve.refusal.what


def test_a_name_that_leads_nowhere_ends_the_sweep() -> None:
    with pytest.raises(NotFound, match=r"llama-3\.2-1c"):
        cells_of(small_question(models=("llama-3.2-1c",)))


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"models": []}, "#/models"),
        ({"device_counts": [8, 0]}, "#/device_counts/1"),
        ({"framework": "tunned"}, "#/framework"),
        ({"sequence_length": [4096]}, "#/sequence_length"),
        ({"constraints": {"pins": {"tp": [1]}}}, "#/constraints/pins/tp"),
    ],
)
def test_a_wrong_document_names_the_place(change: dict[str, object], pointer: str) -> None:
    data = {**small_question().model_dump(mode="json"), **change}
    with pytest.raises(DocumentInvalid) as raised:
        read_document(SweepQuestion, data, "sweep.yaml")
    assert pointer in str(raised.value)
