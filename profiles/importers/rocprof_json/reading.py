"""Kernels and copies of each process, joined with their symbols and devices, from records typed for fast decoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from profiles.errors import DocumentInvalid
from profiles.importing.copy_links import copy_link
from profiles.importing.duration_statistics import Durations
from profiles.importing.environments import environment_of
from profiles.importing.format import ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.json_document import decode_json
from profiles.importing.kernel_groups import KernelGroups
from profiles.importing.source_file import SourceFile
from profiles.observations.records import LinkKind

_NANOSECONDS_PER_S = 1e9
_GPU = 2
_MAX_SIZES = 20_000
_LINKS: dict[tuple[bool, bool], LinkKind] = {
    (True, True): "device_to_device", (True, False): "device_to_host", (False, True): "host_to_device",
    (False, False): "host_memory",
}  # fmt: skip


class _Handle(msgspec.Struct, gc=False):
    handle: int = -1


class _Size(msgspec.Struct, gc=False):
    x: int = 1
    y: int = 1
    z: int = 1


class _Dispatch(msgspec.Struct, gc=False):
    agent_id: _Handle
    kernel_id: int
    workgroup_size: _Size | None = None
    grid_size: _Size | None = None


class _Kernel(msgspec.Struct, gc=False):
    start_timestamp: int
    end_timestamp: int
    dispatch_info: _Dispatch


class _Copy(msgspec.Struct, gc=False):
    start_timestamp: int
    end_timestamp: int
    src_agent_id: _Handle | None = None
    dst_agent_id: _Handle | None = None
    bytes: int | None = None


class _Records(msgspec.Struct):
    kernel_dispatch: list[_Kernel] = []
    memory_copy: list[_Copy] = []


class _Agent(msgspec.Struct):
    id: _Handle
    type: int = 0
    name: str = ""
    product_name: str = ""
    logical_node_type_id: int = 0


class _Symbol(msgspec.Struct, gc=False):
    kernel_id: int
    formatted_kernel_name: str = ""
    demangled_kernel_name: str = ""
    kernel_name: str = ""


class _Process(msgspec.Struct):
    agents: list[_Agent] = []
    kernel_symbols: list[_Symbol] = []
    buffer_records: _Records | None = None


class _Document(msgspec.Struct):
    processes: list[_Process] = msgspec.field(name="rocprofiler-sdk-tool")


def read_document(file: SourceFile, options: ReadOptions) -> Imported:
    """All processes of one file.  Raises DocumentInvalid without a kernel or a copy."""
    document: Any = decode_json(file, _Document)
    imported = Imported(tool="rocprofv3")
    batches: dict[str, tuple[Batch, KernelGroups, dict[tuple[str, str, LinkKind, int], Durations]]] = {}
    for process in document.processes:
        _read_process(process, batches, imported, options)
    for batch, kernels, copies in batches.values():
        kernels.store(batch, imported, _NANOSECONDS_PER_S)
        _store_copies(copies, batch, imported)
    imported.batches = [batch for batch, _, _ in batches.values() if batch.num_observations]
    if not imported.batches:
        found = imported.bad_rows[0].what if imported.bad_rows else "no kernel and no copy was recorded"
        hint = "record with: rocprofv3 --kernel-trace --memory-copy-trace --output-format json -- COMMAND"
        raise DocumentInvalid(f"nothing to import: {found}", where=file.where, hint=hint)
    return imported


_Groups = tuple[Batch, KernelGroups, dict[tuple[str, str, LinkKind, int], Durations]]


def _read_process(process: _Process, batches: dict[str, _Groups], imported: Imported, options: ReadOptions) -> None:
    if process.buffer_records is None:
        return
    agents = {agent.id.handle: agent for agent in process.agents}
    names = {symbol.kernel_id: _plain_name(symbol) for symbol in process.kernel_symbols}
    used: dict[str, set[int]] = {}
    unknown = 0
    for kernel in process.buffer_records.kernel_dispatch:
        info = kernel.dispatch_info
        product = _product(agents.get(info.agent_id.handle))
        used.setdefault(product, set()).add(info.agent_id.handle)
        name = names.get(info.kernel_id, "")
        duration = kernel.end_timestamp - kernel.start_timestamp
        if not name or duration < 0 or duration >= 2**62:
            unknown += 1
            continue
        groups = _of(product, batches, options)
        groups[1].add(name, _text(info.grid_size), _text(info.workgroup_size), duration)
    if unknown:
        imported.bad("kernel_dispatch", f"{unknown} dispatches without a known kernel, or that end before they start")
    main = max(used, key=lambda product: len(used[product]), default=_first_gpu(process.agents))
    _read_copies(process.buffer_records.memory_copy, agents, _of(main, batches, options), imported)
    for product, handles in used.items():
        batch = _of(product, batches, options)[0]
        known = batch.environment.num_devices or 0
        batch.environment = batch.environment.model_copy(update={"num_devices": known + len(handles)})


def _of(product: str, batches: dict[str, _Groups], options: ReadOptions) -> _Groups:
    if product not in batches:
        batches[product] = (Batch(environment_of(options, product)), KernelGroups(), {})
    return batches[product]


def _read_copies(records: Sequence[_Copy], agents: dict[int, _Agent], groups: _Groups, imported: Imported) -> None:
    copies = groups[2]
    for copy in records:
        duration = copy.end_timestamp - copy.start_timestamp
        if duration < 0 or duration >= 2**62 or (copy.bytes is not None and copy.bytes < 0):
            imported.bad("memory_copy", "a copy ends before it starts, or has a negative size")
            continue
        source, target = (_end(handle, agents) for handle in (copy.src_agent_id, copy.dst_agent_id))
        if not copy.bytes or not duration or not source or not target:
            imported.skip("copies without bytes, time or ends")
            continue
        kind = _LINKS[source.startswith("device"), target.startswith("device")]
        if source == target and kind == "device_to_device":
            kind = "device_memory"
        key = (source, target, kind, copy.bytes)
        if key not in copies and len(copies) >= _MAX_SIZES:
            imported.skip(f"copies beyond {_MAX_SIZES:,} distinct sizes")
            continue
        copies.setdefault(key, Durations()).add(duration)


def _store_copies(copies: dict[tuple[str, str, LinkKind, int], Durations], batch: Batch, imported: Imported) -> None:
    for (source, target, kind, size), durations in copies.items():
        timing = durations.timing(_NANOSECONDS_PER_S)
        batch.links.append(copy_link(kind, (source, target), size, timing))


def _end(handle: _Handle | None, agents: dict[int, _Agent]) -> str:
    agent = agents.get(handle.handle) if handle is not None else None
    if agent is None:
        return ""
    return f"{'device' if agent.type == _GPU else 'host'}:{agent.logical_node_type_id}"


def _product(agent: _Agent | None) -> str:
    return "" if agent is None else (agent.product_name or agent.name)[:100]


def _first_gpu(agents: Sequence[_Agent]) -> str:
    return next((_product(agent) for agent in agents if agent.type == _GPU), "")


def _plain_name(symbol: _Symbol) -> str:
    name = symbol.formatted_kernel_name or symbol.demangled_kernel_name or symbol.kernel_name
    return "" if name == "0" else name.removesuffix(" [clone .kd]").removesuffix(".kd")


def _text(size: _Size | None) -> str:
    return "" if size is None else f"{size.x} {size.y} {size.z}"
