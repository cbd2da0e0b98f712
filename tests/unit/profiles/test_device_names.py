"""A device is recognised from what drivers and tools print, and never mistaken for another."""

from __future__ import annotations

import pytest

from profiles.catalogue import builtin_devices
from profiles.device_names import catalogue_device


@pytest.mark.parametrize(
    ("reported", "device"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", "h100-pcie-80gb"),
        ("NVIDIA H200", "h200-sxm-141gb"),
        ("h200_sxm", "h200-sxm-141gb"),
        ("NVIDIA GH200 120GB", "gh200-96gb"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA B200", "b200-sxm-180gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"),
        ("Tesla V100-SXM2-32GB", "v100-sxm2-32gb"),
        ("AMD Instinct MI300X", "mi300x"),
        ("Ascend910B2", "ascend-910b2"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("NVIDIA RTX A6000", "rtx-a6000"),
        ("NVIDIA RTX A5000", "rtx-a5000"),
        ("NVIDIA A40", "a40"),
        ("NVIDIA A10G", "a10g"),
    ],
)
def test_a_name_as_printed_is_recognised(reported: str, device: str) -> None:
    assert catalogue_device(reported) == device


@pytest.mark.parametrize(
    "reported",
    [
        "Tesla V100-PCIE-32GB",
        "Tesla V100-SXM2-16GB",
        "NVIDIA H200 NVL",
        "NVIDIA GeForce RTX 5090",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA A10",
        "NVIDIA A40-48Q",
        "cpu",
        "",
        "GH200 144G",
    ],
)
def test_an_uncertain_name_is_no_catalogue_device(reported: str) -> None:
    assert catalogue_device(reported) is None


def test_every_rule_names_a_device_of_the_catalogue() -> None:
    from profiles.device_names import device_rules

    assert {name for _, name in device_rules()} <= set(builtin_devices())
