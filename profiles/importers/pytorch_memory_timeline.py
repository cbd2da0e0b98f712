"""PyTorch memory timelines: ``profile.export_memory_timeline`` as ``.raw.json.gz`` or ``.json`` (or ``.json.gz``).

Raw: a list of ``[time in ns (-1 = before the profile), action 1-4, bytes (negative = freed), category]``.
Coalesced: ``[times in us, sizes]`` with a row of nine bytes for each time: 0 and the eight categories.
Categories in order: parameter, optimizer state, input, temporary, activation, gradient, autograd detail, unknown.
The sum over the categories is what the tensors of one device hold; its peak is stored with its parts.  Neither form
says which device or how many ranks.  Snapshots of ``torch.cuda.memory`` are pickles and are refused.
Source: pytorch/pytorch torch/profiler/_memory_profiler.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importing.environments import environment_of, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import IterationObservation

_CATEGORIES = (
    "parameter", "optimizer_state", "input", "temporary", "activation", "gradient", "autograd_detail", "unknown",
)  # fmt: skip
_ROW = r"\[\s*(?:-1|\d{10,19})\s*,\s*[1-4]\s*,\s*-?\d{1,18}\s*,\s*[0-7]\s*\]"
_RAW = re.compile(rf"\s*\[\s*{_ROW}\s*(?:,\s*{_ROW}\s*)*")
_TIMES = re.compile(r"\s*\[\s*\[\s*(?:\d{10,19}\s*,\s*)*\d{10,19}")
_SIZES = re.compile(r"\s*\]\s*,\s*\[\s*\[\s*0\s*(?:,\s*\d{1,18}\s*){8}\]")
_LARGEST = 2**62
_MAX_BYTES = 512 << 20
_HINT = "export it again: profile.export_memory_timeline('timeline.raw.json.gz', device='cuda:0')"


def matches(head: Head) -> bool:
    """Whether the head is a timeline of either form."""
    text = head.text
    raw = _RAW.match(text)
    if raw is not None:
        rest = text[raw.end() :].strip()
        return rest in ("]", "") or rest[0] in ",]"
    times = _TIMES.match(text)
    if times is None:
        return False
    rest = text[times.end() :]
    return bool(_SIZES.match(rest)) or ("memory" in head.name and re.fullmatch(r"[\d\s,]*", rest) is not None)


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """One memory reading: the peak and its parts.  Raises DocumentInvalid."""
    from profiles.importers.kineto.json_text import decoded

    (file,) = files
    document = decoded(file.read_bytes(_MAX_BYTES), file.where)
    imported = Imported(tool="pytorch-memory-timeline")
    if not isinstance(document, list) or not document:
        raise DocumentInvalid("no memory timeline: not a list of events", where=file.where, hint=_HINT)
    is_coalesced = len(document) == 2 and isinstance(document[0], list) and isinstance(document[1], list) and (
        len(document[0]) != 4 or len(document[1]) != 4 or isinstance(document[1][0], list)
    )  # fmt: skip
    peak = _coalesced_peak(document, file, imported) if is_coalesced else _raw_peak(document, imported)
    if sum(peak) <= 0:
        what = imported.bad_rows[0].what if imported.bad_rows else "it never holds a byte"
        raise DocumentInvalid(f"no usable memory timeline: {what}", where=file.where, hint=_HINT)
    batch = Batch(environment_of(options, framework="pytorch"))
    batch.iterations = [_observation(peak, options)]
    imported.batches = [batch]
    return imported


def _observation(peak: list[int], options: ReadOptions) -> IterationObservation:
    detail = {f"{name}_bytes_at_peak": size for name, size in zip(_CATEGORIES, peak, strict=True)}
    return IterationObservation(
        timing=None,
        model=options.given.get("model", ""),
        num_devices=given_whole(options, "num_devices"),
        global_batch_size=given_whole(options, "global_batch_size"),
        micro_batch_size=given_whole(options, "micro_batch_size"),
        sequence_length=given_whole(options, "sequence_length"),
        peak_allocated_bytes=sum(peak),
        detail={**detail},
    )


def _raw_peak(rows: list[Any], imported: Imported) -> list[int]:
    """Bytes by category when their sum is largest.  Changes at one time count together: a version replaces another."""
    current, total = [0] * len(_CATEGORIES), 0
    peak, largest = list(current), 0
    first = last = 0
    for index, row in enumerate(rows):
        if not _is_event(row):
            if len(imported.bad_rows) < 1000:
                imported.bad(f"{index}", "not [time, action, bytes, category]", "leave the event out")
            continue
        time_ns, _, size, category = row
        if total > largest and time_ns != last:
            largest, peak = total, list(current)
        current[category] += size
        total += size
        last = time_ns
        first = first or max(time_ns, 0)
    if total > largest:
        peak = list(current)
    imported.facts.update({"num_events": len(rows), "span_s": max(last - first, 0) * 1e-9})
    return peak


def _is_event(row: object) -> bool:
    if not isinstance(row, list) or len(row) != 4 or any(type(each) is not int for each in row):
        return False
    time_ns, action, size, category = row
    known = 1 <= action <= 4 and 0 <= category < len(_CATEGORIES)
    return bool(known and -1 <= time_ns < _LARGEST and abs(size) < 2**50)


def _coalesced_peak(document: list[Any], file: SourceFile, imported: Imported) -> list[int]:
    times, sizes = document
    if len(times) != len(sizes):
        what = f"{len(times):,} times and {len(sizes):,} rows of sizes"
        raise DocumentInvalid(f"no usable memory timeline: {what}", where=file.where, hint=_HINT)
    peak = [0] * len(_CATEGORIES)
    good = []
    for index, (time_us, row) in enumerate(zip(times, sizes, strict=True)):
        if type(time_us) is not int or not 0 <= time_us < _LARGEST or not _is_sizes(row):
            if len(imported.bad_rows) < 1000:
                imported.bad(f"1/{index}", "not a time with nine sizes in bytes", "leave the row out")
            continue
        good.append(time_us)
        if sum(row[1:]) > sum(peak):
            peak = row[1:]
    span = (max(good) - min(good)) * 1e-6 if good else 0.0
    imported.facts.update({"num_events": len(times), "span_s": span})
    return peak


def _is_sizes(row: object) -> bool:
    if not isinstance(row, list) or len(row) != len(_CATEGORIES) + 1:
        return False
    return all(type(size) is int and 0 <= size < 2**50 for size in row)


FORMAT = Format(name="pytorch-memory-timeline", title="PyTorch memory timeline", matches=matches, read=read)
