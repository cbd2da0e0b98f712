"""Documents from plain data: all findings at once, each with a pointer and a repair."""

from __future__ import annotations

from typing import Any

import pytest

from planner.question.problem import Workload
from profiles.cluster import Cluster, FabricLevel
from profiles.device import Device
from profiles.errors import DocumentInvalid
from profiles.spelling import nearest_name, typing_slip
from profiles.validation import FindingsInvalid, pointer_to, read_document


def cluster_data() -> dict[str, Any]:
    return {
        "name": "mine",
        "pools": [
            {
                "device": {
                    "name": "x",
                    "vendor": "other",
                    "architecture": "x",
                    "memory_bytes": "80 GiB",
                    "memory_bandwidth_bytes_per_s": "3 TB/s",
                    "peak_flops_per_s": {"bf16": "900 TFLOP/s"},
                    "provenance": {"memory_bytes": {"confidence": "D", "source": "80 GiB"}},
                },
                "num_nodes": 2,
                "devices_per_node": 8,
                "scale_up": {
                    "kind": "switch", "domain_size": 8, "bandwidth_bytes_per_s": "400 GB/s", "latency_s": "2 us",
                },
                "nics_per_node": 8,
                "nic_bandwidth_bytes_per_s": "400 Gbit/s",
                "host": {"memory_bytes": "2 TiB", "link_bandwidth_bytes_per_s": "60 GB/s"},
            }
        ],
    }  # fmt: skip


def test_units_are_understood_where_the_name_has_one() -> None:
    pool = read_document(Cluster, cluster_data(), "c.yaml", human_units=True).pools[0]
    assert pool.device.memory_bytes == 80 * 2**30
    assert pool.device.peak_flops_per_s == {"bf16": 900e12}
    assert pool.nic_bandwidth_bytes_per_s == 50e9
    assert pool.scale_up.latency_s == 2e-6
    assert pool.device.provenance["memory_bytes"].source == "80 GiB"


def test_all_findings_come_at_once() -> None:
    data = cluster_data()
    pool = data["pools"][0]
    pool["num_node"] = pool.pop("num_nodes")
    pool["devices_per_node"] = 0
    pool["scale_up"]["kind"] = "hypercube"
    pool["nic_bandwidth_bytes_per_s"] = "400 gbps"
    with pytest.raises(FindingsInvalid) as caught:
        read_document(Cluster, data, "c.yaml", human_units=True)
    found = {finding.pointer: finding for finding in caught.value.findings}
    assert set(found) == {
        "/pools/0/num_node",
        "/pools/0/num_nodes",
        "/pools/0/devices_per_node",
        "/pools/0/scale_up/kind",
        "/pools/0/nic_bandwidth_bytes_per_s",
    }
    assert found["/pools/0/num_node"].hint == "did you mean 'num_nodes'?"
    assert found["/pools/0/num_nodes"].what == "'num_nodes' is missing"
    assert "greater than 0" in found["/pools/0/devices_per_node"].what
    assert "'switch'" in found["/pools/0/scale_up/kind"].what
    assert "Gbit/s" in found["/pools/0/nic_bandwidth_bytes_per_s"].hint
    assert caught.value.where == "c.yaml"
    assert all(pointer in str(caught.value) for pointer in found)


def test_one_finding_is_placed_by_its_pointer() -> None:
    with pytest.raises(DocumentInvalid) as caught:
        read_document(FabricLevel, {"name": "leaf", "num_nodes": 4, "oversubscriptions": 2}, "f.yaml#/fabric/0")
    assert caught.value.where == "f.yaml#/fabric/0#/oversubscriptions"
    assert caught.value.hint == "did you mean 'oversubscription'?"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 0])
def test_impossible_numbers_are_refused(value: float) -> None:
    data = cluster_data()
    data["pools"][0]["scale_up"]["bandwidth_bytes_per_s"] = value
    with pytest.raises(FindingsInvalid) as caught:
        read_document(Cluster, data, "c", human_units=True)
    assert caught.value.findings[0].pointer == "/pools/0/scale_up/bandwidth_bytes_per_s"


@pytest.mark.parametrize("data", [None, [], "text", 3])
def test_a_document_must_be_a_mapping(data: object) -> None:
    with pytest.raises(DocumentInvalid, match="a mapping is expected") as caught:
        read_document(Device, data, "d.yaml")
    assert "memory_bytes" in str(caught.value.hint)


def test_text_is_no_number_without_units_allowed() -> None:
    with pytest.raises(DocumentInvalid):
        read_document(Cluster, cluster_data(), "c")


def test_a_rule_of_the_whole_document_points_at_its_key() -> None:
    with pytest.raises(DocumentInvalid) as caught:
        read_document(Workload, {"global_batch_size": 8, "sequence_length": 64, "fp8_recipe": "mxfp8"}, "w")
    assert "w#/fp8_recipe" in str(caught.value)
    assert "found {" not in str(caught.value)


def test_long_lists_of_findings_are_cut() -> None:
    with pytest.raises(FindingsInvalid) as caught:
        read_document(FabricLevel, {f"key{index}": 1 for index in range(40)}, "f")
    assert len(caught.value.findings) == 42
    assert "and 22 more" in str(caught.value)


def test_pointers_are_escaped() -> None:
    assert pointer_to("a/b", 0, "c~d") == "/a~1b/0/c~0d"


def test_nearest_name_ignores_case_and_dashes() -> None:
    known = ("dgx-h100", "dgx-a100-80g", "mi300x-8")
    assert nearest_name("DGX_H100", known) == "dgx-h100"
    assert nearest_name("mi300x", known) == "mi300x-8"
    assert nearest_name("zzz", known) is None


MODEL_TYPES = ("llama", "llava", "mistral", "deepseek_v3", "gemma3", "glm4_moe", "mpt", "opt", "qwen2_5_vl", "qwen3")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("LLaMA", "llama"),
        ("deepseek-v3", "deepseek_v3"),
        ("DeepSeekV3", "deepseek_v3"),
        ("qwen2.5_vl", "qwen2_5_vl"),
        ("lama", "llama"),
        ("lllama", "llama"),
        ("mistrel", "mistral"),
        ("mitsral", "mistral"),
        ("deepsek_v3", "deepseek_v3"),
    ],
)
def test_a_typing_slip_is_told(typed: str, meant: str) -> None:
    assert typing_slip(typed, MODEL_TYPES) == meant


@pytest.mark.parametrize(
    "name",
    [
        "deepseek_v32",
        "deepseek_v4",
        "qwen3_next",
        "llama4",
        "mllama",
        "gemma3n",
        "gemma",
        "glm4v_moe",
        "dpt",
        "ministral",
    ],
)
def test_a_near_name_of_another_model_is_no_slip(name: str) -> None:
    assert typing_slip(name, MODEL_TYPES) is None


def test_a_slip_of_two_names_is_neither() -> None:
    assert typing_slip("llaka", MODEL_TYPES) is None
