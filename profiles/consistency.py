"""Plausibility checks of devices and clusters: small and named, each with a repair.

Types and signs are the documents' own business; here are the mistakes that pass them: a memory of 80 (bytes), a NIC of
400e9 (bits), NVLink counted in both directions, domains that split a node, fabric tiers out of order.
``check_cluster`` and ``check_device`` return every finding; an empty list means consistent.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from profiles.cluster import Cluster, Pool
from profiles.device import Device
from profiles.spelling import nearest_name
from profiles.units import format_bytes_per_s
from profiles.validation import Finding, pointer_to

DTYPES = ("bf16", "fp16", "fp32", "tf32", "fp8", "fp4", "int8")
ONE_WAY_SCALE_UP_BYTES_PER_S = {"volta": 150e9, "ampere": 300e9, "hopper": 450e9, "blackwell": 900e9, "rubin": 1800e9}
"""Largest one-way NVLink rate of a generation; marketing pages print twice that.  Source: the catalogue's devices."""
PLAUSIBLE_MEMORY_BYTES = (2**28, 2**44)
PLAUSIBLE_HOST_MEMORY_BYTES = (2**30, 2**50)
PLAUSIBLE_MEMORY_BANDWIDTH = (1e9, 1e14)
PLAUSIBLE_FLOPS = (1e9, 1e18)
PLAUSIBLE_SCALE_UP_BANDWIDTH = (1e8, 5e12)
PLAUSIBLE_NIC_BANDWIDTH = (1e7, 2.5e11)
PLAUSIBLE_HOST_LINK_BANDWIDTH = (1e8, 2e12)
LONGEST_LATENCY_S = 0.05


def check_device(device: Device, pointer: str = "") -> list[Finding]:
    """All inconsistencies of one device."""
    return [
        *_implausible_bytes(pointer + "/memory_bytes", device.memory_bytes, PLAUSIBLE_MEMORY_BYTES),
        *_implausible_rate(
            pointer + "/memory_bandwidth_bytes_per_s", device.memory_bandwidth_bytes_per_s, PLAUSIBLE_MEMORY_BANDWIDTH
        ),
        *_peaks(device, pointer),
        *_achievable(device, pointer),
    ]


def check_cluster(cluster: Cluster) -> list[Finding]:
    """All inconsistencies of a cluster, its pools and its devices."""
    findings: list[Finding] = []
    for index, pool in enumerate(cluster.pools):
        pointer = f"/pools/{index}"
        declared = "scale_up.bandwidth_bytes_per_s" in cluster.provenance
        findings += check_device(pool.device, f"{pointer}/device")
        findings += _domain_splits_nodes(pool, pointer)
        findings += _mesh(pool, pointer)
        findings += _torus(pool, pointer)
        findings += _scale_up_rates(pool, pointer, declared)
        findings += _nics(pool, pointer)
        findings += _host(pool, pointer)
        findings += _latencies(pool, pointer)
        findings += _tiers_split_domains(cluster, pool)
    return findings + list(_pool_names(cluster)) + list(_fabric(cluster))


def _peaks(device: Device, pointer: str) -> Iterator[Finding]:
    where = pointer + "/peak_flops_per_s"
    if not any(name in device.peak_flops_per_s for name in ("bf16", "fp16", "fp32")):
        yield Finding(where, "no peak rate for bf16, fp16 or fp32", "give at least one of them, dense")
    low, high = PLAUSIBLE_FLOPS
    for name, peak in device.peak_flops_per_s.items():
        place = where + pointer_to(name)
        if name not in DTYPES:
            match = nearest_name(name, DTYPES)
            yield Finding(place, f"unknown dtype '{name}'", f"did you mean '{match}'?" if match else ", ".join(DTYPES))
        if peak < low:
            yield Finding(place, f"{peak:g} FLOP/s is too little", f"did you mean {peak:g} TFLOP/s?")
        elif peak > high:
            yield Finding(place, f"{peak:g} FLOP/s is too much", "the unit is FLOP/s of one device")


def _achievable(device: Device, pointer: str) -> Iterator[Finding]:
    for name, fraction in device.achievable_matmul_fraction.items():
        place = pointer + "/achievable_matmul_fraction" + pointer_to(name)
        if not 0 < fraction <= 1:
            yield Finding(
                place, f"{fraction:g} is not a fraction of the peak", "give measured rate / peak, above 0 to 1"
            )
        if name not in device.peak_flops_per_s:
            yield Finding(place, f"there is no peak for {name}", f"add {name} to peak_flops_per_s")


def _domain_splits_nodes(pool: Pool, pointer: str) -> Iterator[Finding]:
    domain, node = pool.scale_up.domain_size, pool.devices_per_node
    if pool.scale_up.kind != "none" and domain % node and node % domain:
        yield Finding(
            f"{pointer}/scale_up/domain_size",
            f"a scale-up domain of {domain} does not fit nodes of {node}",
            "a domain holds whole nodes, or a node whole domains",
        )


def _mesh(pool: Pool, pointer: str) -> Iterator[Finding]:
    scale_up = pool.scale_up
    if scale_up.kind != "mesh":
        return
    place = f"{pointer}/scale_up/pair_bandwidth_bytes_per_s"
    if scale_up.pair_bandwidth_bytes_per_s is None:
        fair = scale_up.bandwidth_bytes_per_s / max(1, scale_up.domain_size - 1)
        yield Finding(place, "a mesh needs the bandwidth of a pair", f"add it; an even split is {_rate(fair)}")
        return
    links = scale_up.pair_bandwidth_bytes_per_s * (scale_up.domain_size - 1)
    if not 0.8 <= links / scale_up.bandwidth_bytes_per_s <= 1.25:
        yield Finding(
            place,
            f"{scale_up.domain_size - 1} links of {_rate(scale_up.pair_bandwidth_bytes_per_s)} are {_rate(links)}, "
            f"not {_rate(scale_up.bandwidth_bytes_per_s)}",
            "both are one-way; bandwidth = (domain_size - 1) * pair bandwidth",
        )


def _torus(pool: Pool, pointer: str) -> Iterator[Finding]:
    scale_up = pool.scale_up
    place = f"{pointer}/scale_up/torus_shape"
    if scale_up.kind != "torus":
        if scale_up.torus_shape is not None:
            yield Finding(place, f"a {scale_up.kind} has no torus shape", "remove it, or set kind: torus")
        return
    if scale_up.torus_shape is None:
        yield Finding(place, "a torus needs its shape", f"add it; the product is {scale_up.domain_size}")
    elif any(length < 1 for length in scale_up.torus_shape) or prod(scale_up.torus_shape) != scale_up.domain_size:
        shape = " x ".join(str(length) for length in scale_up.torus_shape)
        yield Finding(place, f"{shape} is not {scale_up.domain_size} devices", "the product must equal domain_size")


def _scale_up_rates(pool: Pool, pointer: str, declared: bool) -> Iterator[Finding]:
    scale_up = pool.scale_up
    place = f"{pointer}/scale_up/bandwidth_bytes_per_s"
    rate, pair = scale_up.bandwidth_bytes_per_s, scale_up.pair_bandwidth_bytes_per_s
    yield from _implausible_rate(place, rate, PLAUSIBLE_SCALE_UP_BANDWIDTH)
    if pair is not None and pair > rate:
        yield Finding(
            f"{pointer}/scale_up/pair_bandwidth_bytes_per_s",
            f"a pair cannot have {_rate(pair)} when a device has {_rate(rate)} in all",
            "pair bandwidth is one-way between two devices",
        )
    one_way = ONE_WAY_SCALE_UP_BYTES_PER_S.get(pool.device.architecture)
    if one_way and not declared and 1.9 <= rate / one_way <= 2.1:
        yield Finding(
            place,
            f"{_rate(rate)} looks like both directions together",
            f"one-way is {_rate(one_way)}; if it is meant, say so in provenance: scale_up.bandwidth_bytes_per_s",
        )


def _nics(pool: Pool, pointer: str) -> Iterator[Finding]:
    needs_nics = pool.num_nodes > 1 and pool.num_devices > pool.scale_up.domain_size
    if pool.nics_per_node == 0:
        if needs_nics:
            yield Finding(
                f"{pointer}/nics_per_node",
                f"{pool.num_nodes} nodes have no NIC to reach each other",
                "give nics_per_node and nic_bandwidth_bytes_per_s",
            )
        return
    place = f"{pointer}/nic_bandwidth_bytes_per_s"
    rate = pool.nic_bandwidth_bytes_per_s
    if rate > PLAUSIBLE_NIC_BANDWIDTH[1]:
        gbit = f"{rate / 1e9:g} Gbit/s"
        yield Finding(place, f"{_rate(rate)} is too fast for one NIC", f"did you mean {gbit}? Write '{gbit}'")
    else:
        yield from _implausible_rate(place, rate, PLAUSIBLE_NIC_BANDWIDTH, "Gbit/s")


def _host(pool: Pool, pointer: str) -> Iterator[Finding]:
    yield from _implausible_bytes(f"{pointer}/host/memory_bytes", pool.host.memory_bytes, PLAUSIBLE_HOST_MEMORY_BYTES)
    place = f"{pointer}/host/link_bandwidth_bytes_per_s"
    yield from _implausible_rate(place, pool.host.link_bandwidth_bytes_per_s, PLAUSIBLE_HOST_LINK_BANDWIDTH)


def _latencies(pool: Pool, pointer: str) -> Iterator[Finding]:
    for name, latency_s in (("scale_up/latency_s", pool.scale_up.latency_s), ("nic_latency_s", pool.nic_latency_s)):
        if latency_s > LONGEST_LATENCY_S:
            yield Finding(
                f"{pointer}/{name}", f"a latency of {latency_s:g} s is too long", f"did you mean '{latency_s:g} us'?"
            )


def _pool_names(cluster: Cluster) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, pool in enumerate(cluster.pools):
        if pool.name in seen:
            yield Finding(f"/pools/{index}/name", f"two pools are called '{pool.name}'", "give each pool its own name")
        seen.add(pool.name)


def _fabric(cluster: Cluster) -> Iterator[Finding]:
    names: set[str] = set()
    for index, tier in enumerate(cluster.fabric):
        place = f"/fabric/{index}"
        below = cluster.fabric[index - 1] if index else None
        if below is not None and tier.num_nodes <= below.num_nodes:
            yield Finding(
                f"{place}/num_nodes",
                f"tier {tier.name} joins {tier.num_nodes} nodes, no more than {below.name} below it",
                "list the tiers from the innermost, each larger than the one before",
            )
        elif below is not None and tier.num_nodes % below.num_nodes:
            yield Finding(
                f"{place}/num_nodes",
                f"{tier.num_nodes} nodes do not hold whole groups of {below.num_nodes} ({below.name})",
                f"use a multiple of {below.num_nodes}",
            )
        if tier.name in names:
            yield Finding(f"{place}/name", f"two tiers are called '{tier.name}'", "give each tier its own name")
        names.add(tier.name)
        if tier.latency_s > LONGEST_LATENCY_S:
            hint = f"did you mean '{tier.latency_s:g} us'?"
            yield Finding(f"{place}/latency_s", f"a latency of {tier.latency_s:g} s is too long", hint)


def _tiers_split_domains(cluster: Cluster, pool: Pool) -> Iterator[Finding]:
    domain = pool.scale_up.domain_size
    for index, tier in enumerate(cluster.fabric):
        devices = tier.num_nodes * pool.devices_per_node
        if pool.scale_up.kind != "none" and devices > domain and devices % domain:
            yield Finding(
                f"/fabric/{index}/num_nodes",
                f"tier {tier.name} joins {devices} devices, which splits scale-up domains of {domain}",
                f"use a multiple of {domain} devices",
            )


def _implausible_bytes(place: str, size_bytes: int, limits: tuple[int, int]) -> Iterator[Finding]:
    low, high = limits
    if size_bytes < low:
        unit = "MiB" if size_bytes >= 10_000 else "GiB"
        yield Finding(place, f"{size_bytes:,} bytes is too little", f"did you mean '{size_bytes} {unit}'?")
    elif size_bytes > high:
        yield Finding(place, f"{size_bytes:,} bytes is too much", "the unit is bytes")


def _implausible_rate(place: str, rate: float, limits: tuple[float, float], unit: str = "GB/s") -> Iterator[Finding]:
    low, high = limits
    if rate < low:
        yield Finding(place, f"{rate:g} bytes/s is too slow", f"did you mean '{rate:g} {unit}'?")
    elif rate > high:
        yield Finding(place, f"{_rate(rate)} is too fast", "the unit is bytes per second, one-way, one device")


def _rate(value: float) -> str:
    return format_bytes_per_s(value)
