"""Ascend profiler folders: everything that torch_npu or msprof wrote for one rank, or for several below one parent.

Recognised by ``ASCEND_PROFILER_OUTPUT/`` (in ``*_ascend_pt/``) or ``mindstudio_profiler_output/`` (in ``PROF_*/``) with
tables inside, by those tables in the folder itself, or by ``cluster_analysis_output/``.  Where a rank has both, only
torch_npu's output is read: msprof's below it describes the same kernels.

Ranks are merged: kernels are pooled, communication is taken at the slowest rank.  A rank's number comes from
``profiler_info_N.json``, else ranks are numbered in order of their folders.  ``op_statistic`` is a summary of
``kernel_details`` and is only read where that is missing.  ``trace_view.json`` and databases are not read.
Source: Ascend/pytorch (torch_npu) profiler; Ascend/msprof-analyze documentation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from profiles.errors import DocumentInvalid
from profiles.importers.msprof_communication import Communication, add_document, store
from profiles.importers.msprof_csv import read_table
from profiles.importers.msprof_csv.kernels import KernelGroups
from profiles.importing.environments import environment_of
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.json_document import decode_json
from profiles.importing.source_file import Head, SourceFile

_OUTPUTS = ("ASCEND_PROFILER_OUTPUT", "mindstudio_profiler_output", "cluster_analysis_output")
_TABLES = re.compile(
    r"(?:(?P<kernels>kernel_details|op_summary)|(?P<statistic>op_statistic)|(?P<tasks>task_time)"
    r"|(?P<other>operator_details|step_trace_time|memory_record|cluster_step_trace_time))(?:_\w+)?\.csv"
)
_COMMUNICATION = re.compile(r"(?:cluster_)?communication(?:_matrix)?\.json")
_RANK = re.compile(r"profiler_info_(\d{1,7})\.json")
_MAX_RANKS = 10_000
_MAX_JSON_BYTES = 1 << 30
_INFO_BYTES = 16 << 20


@dataclass(slots=True)
class _Rank:
    """The files of one rank."""

    folder: PurePath
    tables: dict[str, list[SourceFile]] = field(default_factory=dict)
    communication: list[SourceFile] = field(default_factory=list)
    number: int | None = None


def matches(head: Head) -> bool:
    """Whether the folder holds output of the Ascend profiler."""
    if not head.is_folder:
        return False
    paths = [PurePath(entry) for entry in head.entries]
    below = any(any(part in _OUTPUTS for part in path.parts[:-1]) and _is_read(path.name) for path in paths)
    itself = {path.name for path in paths if len(path.parts) == 1}
    return (
        below
        or (head.name in _OUTPUTS and any(map(_is_read, itself)))
        or {"kernel_details.csv", "step_trace_time.csv"} <= itself
    )


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """All ranks below the folder.  Raises DocumentInvalid where none holds anything usable."""
    folder = files[0]
    ranks = _ranks(folder)
    if not ranks:
        hint = "give the folder *_ascend_pt or PROF_* after the profiler's analysis has run"
        raise DocumentInvalid("there are no tables of the Ascend profiler", where=folder.where, hint=hint)
    imported = Imported(tool="torch_npu profiler")
    imported.facts["num_ranks"] = len(ranks)
    batch = Batch(environment_of(options, num_devices=len(ranks), **_versions(folder, imported)))
    kernels, communication = KernelGroups(), Communication()
    for position, rank in enumerate(ranks):
        number = rank.number if rank.number is not None else position
        for file in _chosen_tables(rank, imported):
            # The path holds the name of the host.
            where = f"rank {number}, {file.name}"
            read_table(file, batch, kernels, imported, rank=number, num_devices=len(ranks), where=where)
        for file in rank.communication:
            if file.size_bytes:
                add_document(decode_json(file, dict, _MAX_JSON_BYTES), communication, imported, number)
    kernels.store(batch, imported)
    store(communication, batch, imported)
    if not batch.num_observations:
        reasons = [row.what for row in imported.bad_rows] or list(imported.skipped) or ["the tables have no rows"]
        hint = "record with an active schedule and call step() on the profiler"
        raise DocumentInvalid(f"nothing to import: {reasons[0]}", where=folder.where, hint=hint)
    if not batch.environment.device:
        imported.flag("device-unknown", "the tables do not name the device; give it with --set device=NAME")
    imported.batches = [batch]
    return imported


def _ranks(folder: SourceFile) -> list[_Rank]:
    """Output folders with their files; msprof's are left out where torch_npu's are there."""
    found: dict[PurePath, _Rank] = {}
    numbers: dict[PurePath, int] = {}
    for child in folder.children():
        relative = child.path.relative_to(folder.path)
        info = _RANK.fullmatch(relative.name)
        if info:
            numbers[relative.parent] = int(info.group(1))
        elif _is_read(relative.name):
            rank = found.setdefault(relative.parent, _Rank(relative.parent))
            table = _TABLES.fullmatch(relative.name)
            if table:
                rank.tables.setdefault(table.lastgroup or "other", []).append(child)
            else:
                rank.communication.append(child)
    for path, rank in found.items():
        rank.number = numbers.get(path, numbers.get(path.parent))
    preferred = [rank for path, rank in found.items() if path.name == "ASCEND_PROFILER_OUTPUT"]
    if not preferred:
        preferred = [rank for path, rank in found.items() if path.name == "mindstudio_profiler_output"]
    return (preferred or list(found.values()))[:_MAX_RANKS]


def _chosen_tables(rank: _Rank, imported: Imported) -> list[SourceFile]:
    """Tables of one rank that do not say the same twice; empty files are left out."""
    order = ["other", "kernels"]
    if "kernels" not in rank.tables:
        order.append("statistic" if "statistic" in rank.tables else "tasks")
    for kind in rank.tables:
        if kind not in order:
            imported.skip("summaries of kernels that are read one by one", len(rank.tables[kind]))
    files = [file for kind in order for file in rank.tables.get(kind, [])]
    full = [file for file in files if file.size_bytes]
    if len(full) < len(files):
        imported.skip("empty files", len(files) - len(full))
    return full


def _versions(folder: SourceFile, imported: Imported) -> dict[str, str]:
    """Versions that torch_npu writes beside its output; none where it does not."""
    info = next((child for child in folder.children() if _RANK.fullmatch(child.path.name)), None)
    if info is None:
        return {}
    try:
        document = decode_json(info, dict, _INFO_BYTES)
    except DocumentInvalid:
        imported.skip("profiler_info files that cannot be read")
        return {}
    versions = {
        "runtime_version": document.get("cann_version"),
        "framework_version": document.get("torch_npu_version"),
    }
    known = {name: value[:60] for name, value in versions.items() if isinstance(value, str)}
    return {**known, "framework": "torch_npu"}


def _is_read(name: str) -> bool:
    return bool(_TABLES.fullmatch(name) or _COMMUNICATION.fullmatch(name))


FORMAT = Format("torch-npu-folder", "Ascend profiler folder (torch_npu, msprof)", matches, read, takes="folder")
