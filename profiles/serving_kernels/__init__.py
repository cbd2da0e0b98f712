"""Measured kernels of serving engines, and times looked up in them.

times = kernel_times("h100-sxm5-80gb", "vllm")
times.matmul_s(rows=[1, 64, 4096], columns=6144, inner=4096, number_format="fp8")
"""

from __future__ import annotations

import math
from functools import cache, partial

from profiles.catalogue.device_files import load_device
from profiles.device import Device
from profiles.errors import DocumentInvalid
from profiles.serving_kernels.grid import Table
from profiles.serving_kernels.kernel_times import KernelTimes
from profiles.serving_kernels.lookup import ENGINES, TableTimes
from profiles.serving_kernels.roofline import Links, Rates, rates_of
from profiles.shipped_tables import shipped_table


@cache
def kernel_times(device: str, engine: str) -> KernelTimes:
    """Kernel times of one engine on one catalogue device.

    A device without tables has the roofline with the efficiencies of the nearest device that has them: of the same
    architecture if there is one, then by peak rate and memory bandwidth.  Raises NotFound for an unknown device,
    DocumentInvalid for an unknown engine.
    """
    if engine not in ENGINES:
        raise DocumentInvalid(f"'{engine}' is no engine with kernel times", where="engine", hint=", ".join(ENGINES))
    wanted = load_device(device)
    systems = _by_nearness(wanted)
    return TableTimes(
        wanted.name,
        engine,
        rates_of(wanted, _links(systems[0])),
        tuple(partial(_table, system) for system in systems),
        own_device=_systems()[systems[0]]["device"] == wanted.name,
    )


def _table(system: str, place: str, key: str) -> Table | None:
    return _tables(system, place, key.split("/", maxsplit=1)[0]).get(key)


def _systems() -> dict[str, dict[str, object]]:
    systems: dict[str, dict[str, object]] = shipped_table(__name__, "systems.toml")["systems"]
    return systems


def _links(system: str) -> Links:
    return Links(**{name: value for name, value in _systems()[system].items() if name != "device"})  # type: ignore[arg-type]


@cache
def _rates(system: str) -> Rates:
    return rates_of(load_device(str(_systems()[system]["device"])), _links(system))


@cache
def _tables(system: str, engine: str, kernel: str) -> dict[str, Table]:
    from profiles.serving_kernels import wheel

    return wheel.tables(system, engine, _rates(system), {kernel})


def _by_nearness(wanted: Device) -> list[str]:
    def apart(system: str) -> tuple[bool, bool, float]:
        device = load_device(str(_systems()[system]["device"]))
        peaks = [max(each.peak_flops_per_s.get("bf16", 0.0), 1e12) for each in (device, wanted)]
        bandwidths = [each.memory_bandwidth_bytes_per_s for each in (device, wanted)]
        distance = abs(math.log(peaks[0] / peaks[1])) + abs(math.log(bandwidths[0] / bandwidths[1]))
        return device.name != wanted.name, device.architecture != wanted.architecture, distance

    return sorted(_systems(), key=apart)
