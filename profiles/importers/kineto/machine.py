"""The machine of one rank: devices, software versions and the place of the rank in the job."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from profiles.importers.kineto.events import Document
from profiles.importing.environments import environment_of, given_whole
from profiles.importing.format import ReadOptions
from profiles.observations.environment import Environment

_RANK_IN_NAME = re.compile(r"rank[-_]?(\d{1,7})(?!\d)", re.IGNORECASE)
_VERSION = re.compile(r"[\w.+-]{1,40}")


@dataclass(frozen=True, slots=True)
class Machine:
    """What the head of one trace says."""

    rank: int | None
    world_size: int | None
    backend: str
    library_version: str
    devices: tuple[str, ...]
    runtime_version: str
    driver_version: str
    framework_version: str
    is_rocm: bool


def machine_of(document: Document, file_name: str) -> Machine:
    """Read the head; unknown parts stay None or empty."""
    properties = document.device_properties if isinstance(document.device_properties, list) else []
    names = tuple(str(each.get("name", ""))[:120] for each in properties if isinstance(each, dict))
    job = document.distributed_info if isinstance(document.distributed_info, dict) else {}
    rank = _whole(job.get("rank"))
    if rank is None and (found := _RANK_IN_NAME.search(file_name)):
        rank = int(found.group(1))
    is_rocm = document.hip_runtime_version is not None or any("AMD" in name or "MI3" in name for name in names)
    return Machine(
        rank=rank,
        world_size=_whole(job.get("world_size")) or None,
        backend=_text(job.get("backend")),
        library_version=_text(job.get("nccl_version")),
        devices=names,
        runtime_version=_hip(document.hip_runtime_version) or _cuda(document.cuda_runtime_version),
        driver_version=_hip(document.hip_driver_version) or _cuda(document.cuda_driver_version),
        framework_version=_text(document.torch_version) or _text(document.pytorch_version),
        is_rocm=is_rocm,
    )


def node_size(machine: Machine, options: ReadOptions) -> int | None:
    """Ranks of one node: what the user says, else the devices that a rank sees where they divide the job evenly.

    A rank that sees one device only (its visible devices are restricted) tells nothing about its node.
    """
    given = given_whole(options, "devices_per_node")
    if given is not None:
        return given
    seen = len(machine.devices)
    if machine.world_size is None or seen < 2 or machine.world_size % seen != 0:
        return None
    return seen


def environment(
    machine: Machine, device_index: int | None, options: ReadOptions, captured_ns: int | None
) -> Environment:
    """The environment of one rank, the same for all ranks of a uniform job."""
    per_node = node_size(machine, options)
    world = machine.world_size
    library = machine.backend.split(":")[-1]
    if library == "nccl" and machine.is_rocm:
        library = "rccl"
    index = device_index if device_index is not None and device_index < len(machine.devices) else 0
    known = {
        "num_devices": world,
        "devices_per_node": per_node,
        "num_nodes": world // per_node if world and per_node and world % per_node == 0 else None,
    }
    return environment_of(
        options,
        machine.devices[index] if machine.devices else "",
        runtime_version=machine.runtime_version,
        driver_version=machine.driver_version,
        framework="pytorch",
        framework_version=machine.framework_version,
        communication_library=library,
        communication_library_version=machine.library_version if library else "",
        captured_at=_date(captured_ns),
        **known,
    )


def _date(time_ns: int | None) -> str:
    """ISO date and minute, where the time counts from the epoch (2001 to 2100)."""
    if time_ns is None or not 10**18 < time_ns < 4 * 10**18:
        return ""
    return datetime.fromtimestamp(time_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%MZ")


def _cuda(value: object) -> str:
    """12040 is CUDA 12.4."""
    if not isinstance(value, int) or not 1000 <= value < 1_000_000:
        return ""
    return f"CUDA {value // 1000}.{value % 1000 // 10}"


def _hip(value: object) -> str:
    """60342134 is HIP 6.3.42134."""
    if not isinstance(value, int) or not 1_000_000 <= value < 10**10:
        return ""
    return f"HIP {value // 10_000_000}.{value // 100_000 % 100}.{value % 100_000}"


def _text(value: object) -> str:
    """A short version or name; empty for anything else, and for "unknown"."""
    plain = value if isinstance(value, str) else ""
    return plain if _VERSION.fullmatch(plain.replace(":", "")) and plain.casefold() != "unknown" else ""


def _whole(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else None
