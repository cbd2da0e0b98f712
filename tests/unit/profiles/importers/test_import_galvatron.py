"""Galvatron's profiles: every kind of its files, a plan refused, broken entries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.galvatron import FORMAT
from profiles.observations.timing import Timing
from tests.importing import read, read_anyway, sample, written


def test_computation() -> None:
    imported = read(FORMAT, sample("galvatron/computation_profiling_bf16_llama2-7b_seqlen2048_all.json"))
    (found,) = imported.batches[0].operators
    assert found.timing == Timing(24.49601128522087 * 1e-3, "mean")
    assert found.shape == {"batch_size": 1, "query_length": 2048, "num_layers": 2, "tensor_parallel": 1}
    assert (found.dtype, found.detail["model"], found.phase) == ("bf16", "llama2-7b", "forward")


def test_times_a_layer_and_sample_become_times_a_layer(tmp_path: Path) -> None:
    text = json.dumps({
        "layernum[2]_bsz8_seq4096": 85.25, "layernum[4]_bsz8_seq4096": 147.25,
        "layertype_0_bsz8_seq4096": 3.875, "layertype_other_bsz8_seq4096": 2.9, "layertype_other_bsz1_seq4096": 0,
    })  # fmt: skip
    imported = read(FORMAT, written(tmp_path, "computation_profiling_fp16_llama-7b_all.json", text))
    two, four, layer, rest = imported.batches[0].operators
    # (147.25 - 85.25) / 2 = 31 ms a layer of 8 samples = 8 x 3.875.
    assert layer.timing is not None
    assert layer.timing.time_s == pytest.approx(31e-3)
    assert (layer.shape["num_layers"], layer.shape["batch_size"], layer.dtype) == (1, 8, "fp16")
    assert rest.name == "embedding and head"
    assert rest.timing is not None
    assert rest.timing.time_s == pytest.approx(23.2e-3)
    assert two.shape["num_layers"] == 2
    assert four.timing == Timing(0.14725, "mean")
    assert sum(imported.skipped.values()) == 1


def test_memory() -> None:
    imported = read(FORMAT, sample("galvatron/memory_profiling_bf16_llama2-7b_all.json"))
    assert imported.bad_rows == []
    first, last = imported.batches[0].iterations[:2]
    assert (first.rank, last.rank, first.timing) == (0, 7, None)
    assert first.strategy == {
        "pp": 1, "tp": 1, "dp": 8, "sp": True, "recompute": "none", "vocabulary_parallel": False,
    }  # fmt: skip
    assert first.allocated_bytes == 904.3330078125 * 2**20
    assert first.peak_allocated_bytes == (904.3330078125 + 1357.1357421875) * 2**20
    assert first.detail["activation_bytes"] == 828.607421875 * 2**20
    assert (first.global_batch_size, first.sequence_length, first.num_devices) == (8, 2048, 8)
    assert any(each.strategy["vocabulary_parallel"] for each in imported.batches[0].iterations)


def test_bandwidths_are_mib_a_millisecond_unless_the_user_knows_better() -> None:
    file = sample("galvatron/p2p_bandwidth_2nodes_8gpus_per_node.json")
    imported = read(FORMAT, file)
    (batch,) = imported.batches
    assert (batch.environment.num_nodes, batch.environment.devices_per_node) == (2, 8)
    first = batch.links[0]
    assert (first.kind, first.detail) == ("network", {"pipeline_stages": 2})
    assert first.bandwidth_bytes_per_s == pytest.approx(7.65998 * 1.048576e9)
    assert [flag.code for flag in imported.flags] == ["unit-by-convention"]
    known = read(FORMAT, file, given={"bandwidth_unit": "GB/s"})
    assert known.batches[0].links[0].bandwidth_bytes_per_s == pytest.approx(7.65998e9)
    with pytest.raises(DocumentInvalid, match="furlongs"):
        read(FORMAT, file, given={"bandwidth_unit": "furlongs"})


def test_bandwidth_and_time_of_collectives(tmp_path: Path) -> None:
    text = json.dumps({
        "allreduce_size_8_consec_1": 160.0, "allreduce_size_4_consec_0": 150.0,
        "allreduce_size_8_2MB_time": 0.125, "all2all_size_4_1MB_time": 0.0625,
    })  # fmt: skip
    (batch,) = read(FORMAT, written(tmp_path, "sp_time_1nodes_8gpus_per_node.json", text)).batches
    assert [each.detail for each in batch.links] == [
        {"group_size": 8, "consecutive": True},
        {"group_size": 4, "consecutive": False},
    ]
    assert {each.kind for each in batch.links} == {"device_to_device"}
    first, second = batch.collectives
    assert (first.operation, first.size_bytes, first.group_size, first.timing) == (
        "all_reduce",
        2**21,
        8,
        Timing(0.000125, "mean"),
    )
    assert (second.operation, second.size_bytes, second.group_size) == ("all_to_all", 2**20, 4)


def test_overlap_is_a_fact() -> None:
    imported = read(FORMAT, sample("galvatron/overlap_coefficient.json"))
    assert imported.facts == {"overlap_slowdown": 1.125552573612729}
    assert imported.num_observations == 0


def test_a_plan_is_refused() -> None:
    with pytest.raises(DocumentInvalid, match="a plan, no measurement"):
        read(FORMAT, sample("galvatron/galvatron_config_llama2-7b_1nodes_8gpus_per_node_36GB_bf16.json"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("layernum[2]_bsz1_seq2048", -1.0),
        ("layernum[2]_bsz1_seq2048", 0),
        ("layernum[2]_bsz1_seq2048", "x"),
        ("layernum[2]_bsz1_seq2048", None),
        ("pp_size_2", -3.0),
        ("overlap_coe", 0.5),
        ("nonsense", 3.0),
        ("1_1_8", {"layernum[1]_bsz8_seq2048_rank0_ms": -4.0}),
        ("1_1_8", {"something": 4.0}),
        ("one_two", {}),
    ],
)
def test_broken_entries_are_reported(tmp_path: Path, key: str, value: object) -> None:
    text = json.dumps({"layernum[4]_bsz1_seq2048": 3.0, key: value})
    imported = read(FORMAT, written(tmp_path, "x.json", text))
    assert len(imported.bad_rows) == 1
    assert imported.num_observations == 1


@pytest.mark.parametrize("text", ["[]", "{", "{}", '{"pp_size_2": "x"}'])
def test_other_documents_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "x.json", text)])


def test_older_keys_lengths_in_names_and_noise(tmp_path: Path) -> None:
    text = """{"layernum[2]_bsz2": 27.188, "layertype_0_bsz2": 4.745, "layertype_other_0_bsz2": 4.104,
               "layertype_0_bsz1": -2.37, "layertype_0": 4.3}"""
    name = "computation_profiling_bf16_hidden4096_head32_seqlen2048.json"
    imported = read(FORMAT, written(tmp_path, name, text))
    model, layer, rest = imported.batches[0].operators
    assert (model.shape["query_length"], layer.shape["query_length"]) == (2048, 2048)
    assert (rest.name, "num_layers" in rest.shape) == ("embedding and head", False)
    assert rest.timing is not None
    assert rest.timing.time_s == pytest.approx(8.208e-3)
    assert imported.bad_rows == []
    assert sum(imported.skipped.values()) == 2
    assert model.detail["model"] == "hidden4096_head32"


def test_memory_takes_the_length_of_the_name(tmp_path: Path) -> None:
    text = '{"1_1_8": {"layernum[1]_bsz8_rank0_ms": 100, "layernum[1]_bsz8_rank0_act_peak": 50}}'
    name = "memory_profiling_bf16_hidden4096_head32_seqlen2048.json"
    (found,) = read(FORMAT, written(tmp_path, name, text)).batches[0].iterations
    assert (found.sequence_length, found.detail["num_layers"]) == (2048, 1)
    assert found.peak_allocated_bytes == 150 * 2**20


def test_groups_inside_a_node_of_several_are_no_network(tmp_path: Path) -> None:
    text = '{"allreduce_size_8_consec_1": 155.6, "allreduce_size_8_consec_0": 20.7, "allreduce_size_16_consec_1": 44.6}'
    name = "allreduce_bandwidth_2nodes_8gpus_per_node.json"
    links = read(FORMAT, written(tmp_path, name, text)).batches[0].links
    assert [link.kind for link in links] == ["device_to_device", "network", "network"]


def test_times_of_one_node(tmp_path: Path) -> None:
    text = '{"allreduce_size_4_1MB_time": 0.0798, "all2all_size_8_2MB_time": 0.1135}'
    found = read(FORMAT, written(tmp_path, "sp_time_1nodes_8gpus_per_node.json", text)).batches[0].collectives
    assert [(each.num_nodes, each.devices_per_node) for each in found] == [(1, 4), (1, 8)]
    found = read(FORMAT, written(tmp_path, "sp_time_2nodes_8gpus_per_node.json", text)).batches[0].collectives
    assert [(each.num_nodes, each.devices_per_node) for each in found] == [(None, None), (None, None)]
