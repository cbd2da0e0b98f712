"""Metis' profiles: one JSON a device, tensor-parallel degree and batch size: time and memory of every layer.

Recognised by ``execution_time.layer_compute_total_ms``.  Layer times are forward plus backward, in milliseconds; the
first layer is the embedding, the last the head.  Memory is ``torch.cuda.max_memory_reserved`` while one layer ran, in
MB taken as 2^20 bytes (the guide says megabytes; torch's own reports divide by 2^20).  Parameters are in bytes.
Device, degree and batch size stand in the file's name only (``DeviceType.A100_tp1_bs1.json``); micro-batch, batch and
global batch are equal by Metis' definition, so one iteration is one micro-batch.

Source: SamsungLabs/Metis README.md (profile data guide), data_loader.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.number_cells import json_number, json_whole
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import IterationObservation, OperatorObservation, Phase, Scalar
from profiles.observations.timing import Timing
from profiles.safe_json import load_json_text

_KEY = re.compile(r'"layer_compute_total_ms"\s*:\s*\[')
_NAME = re.compile(r"DeviceType\.(?P<device>\w+?)_tp(?P<tp>\d{1,5})_bs(?P<bs>\d{1,6})")
_MB = 2**20
_WHOLE: tuple[tuple[str, str, Phase], ...] = (
    ("optimizer_time_ms", "optimizer", "step"),
    ("batch_generator_time_ms", "other", "unknown"),
    ("forward_backward_time_ms", "module", "unknown"),
)
_UNSIZED = ("layernorm_grads_all_reduce_time_ms", "embedding_grads_all_reduce_time_ms")


def _matches(head: Head) -> bool:
    return head.text.lstrip()[:1] == "{" and '"execution_time"' in head.text and bool(_KEY.search(head.text))


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("metis")
    batches = Batches()
    for file in files:
        data = load_json_text(file.text(), file.where)
        times = _object(_object(data, "the document", file), "execution_time", file, "execution_time")
        model = data.get("model") if isinstance(data.get("model"), dict) else {}
        memory = data.get("execution_memory") if isinstance(data.get("execution_memory"), dict) else {}
        name = _NAME.search(file.name)
        if name is None:
            imported.flag(
                "name-lost", "device, degree and batch size stood in the file's name; --set device=.. adds it"
            )
        batch = batches.of(environment_of(options, name["device"] if name else "", framework="megatron-lm"))
        facts = _Facts(name, str(options.given.get("model") or model.get("model_name") or "")[:60], options)
        _layers(times, model, memory, batch, facts, imported)
        _totals(times, memory, batch, facts, imported)
        for key in _UNSIZED:
            if isinstance(times.get(key), (int, float)) and not isinstance(times.get(key), bool):
                imported.facts[f"{key.removesuffix('_ms')}_s"] = float(times[key]) * 1e-3
    return finished(imported, batches, files[0], "there is no layer with a time", "check that the file is complete")


class _Facts:
    """What holds for the whole file."""

    def __init__(self, name: re.Match[str] | None, model: str, options: ReadOptions) -> None:
        self.model = model
        self.dtype = dtype_of(options.given.get("dtype", ""))
        self.degree = int(name["tp"]) or None if name else None
        self.batch = int(name["bs"]) or None if name else None

    @property
    def shape(self) -> dict[str, int]:
        """Batch and degree where the file's name says them."""
        sizes = {"batch_size": self.batch, "tensor_parallel": self.degree}
        return {key: size for key, size in sizes.items() if size is not None}


def _layers(
    times: dict[str, Any],
    model: dict[str, Any],
    memory: dict[str, Any],
    batch: Batch,
    facts: _Facts,
    imported: Imported,
) -> None:
    layers = times.get("layer_compute_total_ms")
    layers = layers if isinstance(layers, list) else []
    parameters = model.get("parameters")
    weights = parameters.get("parameters_per_layer_bytes") if isinstance(parameters, dict) else None
    used = memory.get("layer_memory_total_mb")
    for index, value in enumerate(layers):
        pointer = f"#/execution_time/layer_compute_total_ms/{index}"
        last = len(layers) - 1
        name = "embedding" if index == 0 else ("head" if index == last else "layer")
        detail: dict[str, Scalar] = {"layer": index, "includes": "forward and backward"}
        if facts.model:
            detail["model"] = facts.model
        try:
            peak = _entry(used, index, len(layers))
            weight = _entry(weights, index, len(layers))
            batch.operators.append(
                OperatorObservation(
                    "module",
                    name,
                    Timing(json_number(value) * 1e-3),
                    dtype=facts.dtype,
                    shape=facts.shape,
                    weights_bytes=None if weight is None else json_whole(weight),
                    peak_bytes=None if peak is None else round(json_number(peak) * _MB),
                    detail=detail,
                    row=index,
                )
            )
        except ValueError as error:
            imported.bad(pointer, str(error), "profile this layer again")


def _totals(times: dict[str, Any], memory: dict[str, Any], batch: Batch, facts: _Facts, imported: Imported) -> None:
    for key, operator, phase in _WHOLE:
        if times.get(key) is None:
            continue
        try:
            timing = Timing(json_number(times[key]) * 1e-3)
            detail: dict[str, Scalar] = {"model": facts.model} if facts.model else {}
            name = key.removesuffix("_time_ms")
            batch.operators.append(
                OperatorObservation(operator, name, timing, phase=phase, shape=facts.shape, detail=detail)
            )
        except ValueError as error:
            imported.bad(f"#/execution_time/{key}", str(error), "profile again")
    total = memory.get("total_memory_mb", memory.get("total_memory"))
    if times.get("total_time_ms") is None:
        return
    try:
        strategy: dict[str, Scalar] = {} if facts.degree is None else {"tp": facts.degree}
        batch.iterations.append(
            IterationObservation(
                Timing(json_number(times["total_time_ms"]) * 1e-3),
                model=facts.model,
                strategy=strategy,
                global_batch_size=facts.batch,
                micro_batch_size=facts.batch,
                detail={} if total is None else {"sum_of_layers_bytes": round(json_number(total) * _MB)},
            )
        )
    except ValueError as error:
        imported.bad("#/execution_time/total_time_ms", str(error), "profile again")


def _entry(values: object, index: int, length: int) -> object:
    """The entry of a list that runs along the layers; None where there is no such list."""
    return values[index] if isinstance(values, list) and len(values) == length else None


def _object(data: Any, what: str, file: SourceFile, key: str | None = None) -> dict[str, Any]:
    found = data if key is None else data.get(key)
    if not isinstance(found, dict):
        raise DocumentInvalid(f"{what} is no JSON object", where=file.where, hint="give a profile file of Metis")
    return found


FORMAT = Format("metis", "Metis layer profiles (DeviceType.*_tp*_bs*.json)", _matches, _read)
