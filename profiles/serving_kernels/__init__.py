"""Measured kernels of serving engines, and times looked up in them.

times = kernel_times("h100-sxm5-80gb", "vllm")
times.matmul_s(rows=[1, 64, 4096], columns=6144, inner=4096, number_format="fp8")
"""

from __future__ import annotations

import math
from dataclasses import fields
from functools import cache, partial
from typing import Any

from profiles.catalogue.device_files import load_device
from profiles.device import Device
from profiles.errors import DocumentInvalid
from profiles.serving_kernels import shipped
from profiles.serving_kernels.kernel_times import KernelTimes
from profiles.serving_kernels.lookup import ENGINES, TableTimes
from profiles.serving_kernels.roofline import Links, Rates, rates_of
from profiles.shipped_tables import shipped_table


@cache
def kernel_times(device: str, engine: str, links: Links | None = None) -> KernelTimes:
    """Kernel times of one engine on one catalogue device.

    A device without tables has the roofline with the efficiencies of the nearest device that has them: of the same
    architecture if there is one, then by peak rate and memory bandwidth.  Its collectives are over ``links``, or over
    links like that device's; a device with tables has its links as measured.  Raises NotFound for an unknown device,
    DocumentInvalid for an unknown engine.
    """
    if engine not in ENGINES:
        raise DocumentInvalid(f"'{engine}' is no engine with kernel times", where="engine", hint=", ".join(ENGINES))
    wanted = load_device(device)
    nearest = by_nearness(wanted)
    own = systems()[nearest[0]]["device"] == wanted.name
    rates = shipped.rates(nearest[0]) if own else rates_of(wanted, links or _links(nearest[0]))
    reads = tuple(partial(shipped.table, system) for system in nearest)
    return TableTimes(wanted.name, engine, rates, reads, own_device=own)


def systems() -> dict[str, dict[str, Any]]:
    """Systems with tables: device and links of each."""
    known: dict[str, dict[str, Any]] = shipped_table(__name__, "systems.toml")["systems"]
    return known


def _links(system: str) -> Links:
    about = systems()[system]
    return Links(**{each.name: about[each.name] for each in fields(Links)})


@cache
def rates_of_system(system: str) -> Rates:
    """Rates of a system by the catalogue: what ``build`` makes tables relative to."""
    return rates_of(load_device(systems()[system]["device"]), _links(system))


def by_nearness(wanted: Device) -> list[str]:
    """All systems: that of the device, of its architecture, with links, by peak rate and bandwidth."""

    def apart(system: str) -> tuple[bool, bool, bool, float]:
        device = load_device(systems()[system]["device"])
        peaks = [max(each.peak_flops_per_s.get("bf16", 0.0), 1e12) for each in (device, wanted)]
        bandwidths = [each.memory_bandwidth_bytes_per_s for each in (device, wanted)]
        distance = abs(math.log(peaks[0] / peaks[1])) + abs(math.log(bandwidths[0] / bandwidths[1]))
        foreign = device.architecture != wanted.architecture
        return device.name != wanted.name, foreign, "card" in systems()[system], distance

    return sorted(systems(), key=apart)
