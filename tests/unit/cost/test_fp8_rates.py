"""The rate of 8-bit products where only bf16 was measured: what holds a device back in one holds it back in both."""

from __future__ import annotations

from statistics import median

import pytest

from planner.predict.cost.efficiency import DEFAULT_MATMUL_FRACTION, device_rates, matmul_fraction
from profiles.catalogue import builtin_devices, load_device
from profiles.catalogue.architectures import architectures


@pytest.mark.parametrize("name", ["l4", "l40s", "rtx-4090", "h20-96gb", "h800-sxm5-80gb", "h100-pcie-80gb", "mi355x"])
def test_fp8_follows_a_measured_bf16(name: str) -> None:
    device = load_device(name)
    peaks, rates = device.peak_flops_per_s, device_rates(device, "fp8")
    gain = rates.matmul_flops_per_s / rates.wide_matmul_flops_per_s
    # No device gains more than its peaks say, and none that was measured loses more than an eighth of that.
    assert 0.875 <= gain / (peaks["fp8"] / peaks["bf16"]) <= 1.0


def test_the_ratios_are_the_medians_of_the_devices_that_have_both() -> None:
    both = [
        device
        for name in builtin_devices()
        if {"bf16", "fp8"} <= set((device := load_device(name)).achievable_matmul_fraction)
    ]
    ratios = {
        each.name: each.achievable_matmul_fraction["fp8"] / each.achievable_matmul_fraction["bf16"] for each in both
    }
    known = architectures().fp8_over_bf16_matmul_fraction
    assert known.other == pytest.approx(median(ratios.values()), abs=0.005)
    of_hopper = [ratios[each.name] for each in both if each.architecture == "hopper"]
    assert known.values["hopper"] == pytest.approx(median(of_hopper), abs=0.005)


def test_what_is_measured_stays_and_what_nothing_was_measured_of_keeps_the_prior() -> None:
    h100, unknown = load_device("h100-sxm5-80gb"), load_device("rtx-6000-ada")
    assert matmul_fraction(h100, "fp8") == h100.achievable_matmul_fraction["fp8"]
    assert matmul_fraction(unknown, "fp8") == matmul_fraction(unknown, "bf16") == DEFAULT_MATMUL_FRACTION
    assert matmul_fraction(load_device("b200-sxm-180gb"), "fp4") == DEFAULT_MATMUL_FRACTION
    assert matmul_fraction(load_device("tpu-v5p"), "bf16") == 0.85
