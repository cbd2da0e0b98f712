"""TVM tuning records, one JSON a line, three generations; of each workload the fastest candidate is kept.

    MetaSchedule   [workload, [trace, [run seconds], target, [["TENSOR", "float32", [1, 512]], ...]]]
    AutoTVM        {"input": [target, task, arguments, {}], "config": .., "result": [[seconds], error, ..], ..}
                   0.1: {"i": [target, task, arguments, {}, ..], "r": [[seconds], error, ..], "v": 0.1}
    Ansor          {"i": [[workload key, target, ..], steps], "r": [[seconds], error, ..], "v": "v0.6"}

A candidate is one schedule of the same operator: slower ones say how well tuning went, not how fast the operator is,
and are left out; a workload of which every candidate failed is kept as a failure (error numbers, times from 10^9 s on).
AutoTVM's dense and batch_matmul carry the shape of a product (weights are transposed: [n, k]); others are kernels with
their arguments in the detail.  The device is the ``model`` or ``tag`` of the target, where it says one.

Source: apache/tvm python/tvm/autotvm/record.py, src/auto_scheduler/measure_record.cc,
src/meta_schedule/database/database.cc.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import json_number, json_whole
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import OperatorObservation, Scalar
from profiles.observations.timing import Timing

_FAILED_S = 1e9
_LONGEST = 2_000_000
_HEAD = (
    re.compile(r'\s*\{"input": ?\[".*"result": ?\[\['),
    re.compile(r'\s*\{"i": ?\[(?:\[|"[^"]{1,300}", ?"[^"]{1,80}", ?\[).*"r": ?\[\['),
    re.compile(r"\s*\[\d{1,9}, ?\[\[\["),
)
_MODEL = re.compile(r"-(?:model|tag)=(\S{1,60})")
_ARCHITECTURE = re.compile(r"-(?:arch|mcpu)=(\S{1,40})")


@dataclass(frozen=True, slots=True)
class _Record:
    """One candidate: which workload on which target, its run times (None = it failed)."""

    workload: str
    name: str
    operator: str
    shape: dict[str, int]
    dtype: str
    target: str
    times_s: tuple[float, ...] | None
    error: str
    detail: dict[str, Scalar]
    line: int


def _matches(head: Head) -> bool:
    line = next((line for line in head.text.splitlines() if line.strip()), "")
    if len(line) > _LONGEST or not any(pattern.match(line) for pattern in _HEAD):
        return False
    return line.lstrip()[0] == "{" or '"TENSOR"' in head.text or '"kind"' in head.text


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("tvm")
    batches = Batches()
    best: dict[tuple[str, str], _Record] = {}
    for file in files:
        for number, line in file.lines():
            if not line.strip():
                continue
            try:
                record = _record(line, number)
            except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
                imported.bad(number, f"this is no tuning record: {error}"[:200], "is the line cut off?")
                continue
            key = (record.workload, record.target)
            known = best.get(key)
            if known is not None:
                imported.skip("slower or failed candidate of a workload")
            if known is None or _speed(record) < _speed(known):
                best[key] = record
    for record in best.values():
        architecture = _ARCHITECTURE.search(record.target)
        environment = environment_of(
            options,
            _device(record.target),
            framework="tvm",
            num_devices=1,
            note=f"target {architecture[1]}" if architecture else "",
        )
        batches.of(environment).operators.append(_operator(record))
    return finished(imported, batches, files[0], "no line is a tuning record", "check that the file is complete")


def _record(line: str, number: int) -> _Record:
    """Raises ValueError, KeyError, IndexError, TypeError, RecursionError."""
    if len(line) > _LONGEST:
        raise ValueError(f"{len(line):,} characters are too many")
    data = json.loads(line)
    if isinstance(data, list):
        return _meta_schedule(data, number)
    if "input" not in data and isinstance(data["i"][0], str):
        data = {"input": data["i"], "result": data["r"]}
    return _autotvm(data, number) if "input" in data else _ansor(data, number)


def _meta_schedule(data: list[Any], number: int) -> _Record:
    workload, rest = json_whole(data[0]), data[1]
    times, target, arguments = rest[1], rest[2], rest[3]
    kind = (
        target
        if isinstance(target, str)
        else " ".join(f"-{key}={target[key]}" for key in ("kind", "arch", "tag") if key in target)
    )
    tensors = [(each[1], each[2]) for each in arguments if each and each[0] == "TENSOR"]
    text = " ".join(f"{dtype}{sizes}" for dtype, sizes in tensors)[:160]
    seconds, error = _times(times, 0)
    dtype = dtype_of(str(tensors[0][0])) if tensors else ""
    detail: dict[str, Scalar] = {"arguments": text}
    name = f"workload {workload}"
    return _Record(f"{workload} {text}", name, "kernel", {}, dtype, kind, seconds, error, detail, number)


def _autotvm(data: dict[str, Any], number: int) -> _Record:
    target, task, arguments = str(data["input"][0])[:300], str(data["input"][1])[:80], data["input"][2]
    times, code = data["result"][0], json_whole(data["result"][1])
    tensors = [each for each in arguments if isinstance(each, list) and each and each[0] == "TENSOR"]
    operator, shape = _shape(task, [each[1] for each in tensors])
    seconds, error = _times(times, code)
    dtype = dtype_of(str(tensors[0][2])) if tensors else ""
    text = json.dumps(arguments)[:160]
    detail: dict[str, Scalar] = {"arguments": text}
    if "tvm_version" in data:
        detail["tvm_version"] = str(data["tvm_version"])[:20]
    return _Record(
        f"{task} {json.dumps(arguments)}", task, operator, shape, dtype, target, seconds, error, detail, number
    )


def _ansor(data: dict[str, Any], number: int) -> _Record:
    workload, target = str(data["i"][0][0])[:2000], str(data["i"][0][1])[:300]
    times, code = data["r"][0], json_whole(data["r"][1])
    seconds, error = _times(times, code)
    digest = re.search(r"[0-9a-f]{16,64}", workload)
    name = f"ansor {digest[0][:16]}" if digest else "ansor workload"
    return _Record(workload, name, "kernel", {}, "", target, seconds, error, {"workload": workload[:160]}, number)


def _times(times: Any, code: int) -> tuple[tuple[float, ...] | None, str]:
    if code != 0:
        return None, f"error {code}"
    if not times:
        return None, "no run time"
    seconds = tuple(json_number(each) for each in times)
    if max(seconds) >= _FAILED_S:
        return None, "the tuner's mark of a failure instead of a time"
    if min(seconds) <= 0:
        raise ValueError(f"a run of {min(seconds)} s is none")
    return seconds, ""


def _shape(task: str, sizes: list[Any]) -> tuple[str, dict[str, int]]:
    """Class and sizes of an AutoTVM task."""
    task = task.removeprefix("topi_nn_")
    lists = [
        each
        for each in sizes
        if isinstance(each, list) and all(type(size) is int and 0 < size < 2**62 for size in each)
    ]
    if task.startswith("dense") and len(lists) >= 2 and len(lists[0]) == len(lists[1]) == 2:
        (m, k), (n, other) = lists[0], lists[1]
        if k == other:
            return "matmul", {"m": m, "n": n, "k": k}
    if task.startswith("batch_matmul") and len(lists) >= 2 and len(lists[0]) == len(lists[1]) == 3:
        (batch, m, k), (_, n, other) = lists[0], lists[1]
        if k == other:
            return "matmul", {"batch_size": batch, "m": m, "n": n, "k": k}
    return ("convolution" if "conv" in task else "kernel"), {}


def _speed(record: _Record) -> float:
    return median(record.times_s) if record.times_s else float("inf")


def _device(target: str) -> str:
    match = _MODEL.search(target)
    name = match[1] if match else ""
    return "" if name == "unknown" else name.replace("/", " ")


def _operator(record: _Record) -> OperatorObservation:
    timing = None
    if record.times_s:
        single = len(record.times_s) == 1
        timing = Timing(
            median(record.times_s),
            "single" if single else "median",
            len(record.times_s),
            min_s=None if single else min(record.times_s),
            max_s=None if single else max(record.times_s),
        )
    return OperatorObservation(
        record.operator, record.name, timing, phase="forward", dtype=record.dtype, shape=record.shape,
        detail=record.detail, ok=timing is not None, error=record.error, row=record.line,
    )  # fmt: skip


FORMAT = Format("tvm-tuning-records", "TVM tuning records (MetaSchedule, AutoTVM, Ansor)", _matches, _read)
