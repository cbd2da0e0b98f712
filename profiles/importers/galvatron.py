"""Galvatron's profiles: five kinds of JSON, told apart by their keys.

    computation   layernum[2]_bsz1_seq2048: ms   forward of a model of that many layers, one device, mean
                  layertype_0_bsz1_seq2048: ms   a layer a sample, by difference: stored x bsz, one layer; the rest of
                  the model is layertype_other (older: layertype_other_0); noise makes some differences negative
    memory        1_2_4_c_vtp_sp: {layernum[1]_bsz8_seq2048_rank0_{ms,act,act_peak}: MB}: pp, tp, dp, checkpointing,
                  vocabulary parallel, sequence parallel; MB = 2^20; ms = model states after the backward pass,
                  act = what a forward pass keeps, act_peak = peak above the model states
    bandwidth     allreduce_size_8_consec_1, pp_size_4: one bus bandwidth without a size, MiB a millisecond
                  (x 1.048576 = GB/s); made with nccl-tests it is GB/s: --set bandwidth_unit=GB/s
    time          allreduce_size_8_1MB_time, all2all_size_8_1MB_time: ms at 2^20 bytes x MB
    overlap       overlap_coe: slowdown while compute and communication overlap: a fact
A strategy (``galvatron_config_*``) is a plan, no measurement: refused.  Number format, model, nodes are in file names,
in older files the sequence length too (``_seqlen2048``).

Source: PKU-DAIR/Hetu-Galvatron core/profiler/{model,runtime,hardware}_profiler.py, utils.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.number_cells import json_number
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import (
    CollectiveObservation,
    IterationObservation,
    LinkObservation,
    OperatorObservation,
    Scalar,
)
from profiles.observations.timing import Timing
from profiles.safe_json import load_json_text

_RECOGNISED = re.compile(
    r'"(?:layernum\[[\d,]+\]_bsz\d|layertype_(?:\d+|other)_bsz|(?:allreduce|all2all)_size_\d+(?:_|")'
    r'|pp_size_\d+"|overlap_coe"|tp_sizes_enc"|layertype_\d+(?:_sp)?"\s*:\s*\{\s*"(?:parameter_size|tp_activation))'
)
_FILE = re.compile(
    r"_profiling_(?P<dtype>bf16|fp16|fp32)_(?P<model>.+?)(?:_seqlen(?P<length>[\d,\[\]]+))?(?:_all)?\.json$"
)
_NODES = re.compile(r"_(\d{1,5})nodes_(\d{1,4})gpus_per_node")
_MODEL_KEY = re.compile(r"layernum\[([\d,]{1,60})\]_bsz(\d{1,7})(?:_seq([\d,\[\]]{1,60}))?$")
_LAYER_KEY = re.compile(
    r"layertype_(\d{1,3}|other(?:_\d{1,3})?)_bsz(\d{1,7})(?:_seq([\d,\[\]]{1,60}))?(?:_(\w{1,40}))?$"
)
_MEMORY_KEY = re.compile(
    r"layernum\[([\d,]{1,60})\]_bsz(\d{1,7})(?:_seq([\d,\[\]]{1,60}))?_rank(\d{1,7})_(ms|act|act_peak)$"
)
_STRATEGY_KEY = re.compile(r"(\d{1,5})_(\d{1,5})_(\d{1,6})((?:_[a-z]+)*)$")
_BANDWIDTH_KEY = re.compile(r"(?:(allreduce|all2all)_size_(\d{1,6})(?:_consec_([01]))?|pp_size_(\d{1,6}))$")
_TIME_KEY = re.compile(r"(allreduce|all2all)_size_(\d{1,6})_(\d{1,6})MB_time$")
_MIB_PER_MS = 2**20 * 1e3
_MB = 2**20


def _matches(head: Head) -> bool:
    return head.text.lstrip()[:1] == "{" and bool(_RECOGNISED.search(head.text))


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("galvatron")
    batches = Batches()
    for file in files:
        data = load_json_text(file.text(), file.where)
        if not isinstance(data, dict):
            raise DocumentInvalid("the document is no JSON object", where=file.where, hint="give a file of Galvatron")
        if "pp_deg" in data or "tp_sizes_enc" in data:
            raise DocumentInvalid(
                "this is a strategy that Galvatron found: a plan, no measurement",
                where=file.where,
                hint="import its computation_profiling, memory_profiling and hardware files",
            )
        _File(file, options, imported, batches).take(data)
    if imported.facts and not any(batch.num_observations for batch in batches.all()) and not imported.bad_rows:
        return imported
    return finished(imported, batches, files[0], "no entry is a known measurement", "check that the file is complete")


class _File:
    """One file while it is read."""

    def __init__(self, file: SourceFile, options: ReadOptions, imported: Imported, batches: Batches) -> None:
        named, nodes = _FILE.search(file.name), _NODES.search(file.name)
        self.options = options
        self.imported = imported
        self.dtype = dtype_of(options.given.get("dtype", named["dtype"] if named else ""))
        self.model = options.given.get("model", named["model"][:60] if named else "")
        self.length = (named["length"] or "") if named else ""
        self.num_nodes = int(nodes[1]) or None if nodes else None
        self.devices_per_node = int(nodes[2]) or None if nodes else None
        num_devices = None
        if self.num_nodes and self.devices_per_node:
            num_devices = self.num_nodes * self.devices_per_node
        environment = environment_of(
            options,
            num_nodes=self.num_nodes,
            devices_per_node=self.devices_per_node,
            num_devices=num_devices,
            framework="torch",
        )
        self.batch: Batch = batches.of(environment)

    def take(self, data: dict[str, Any]) -> None:
        """Read every entry."""
        for row, (key, value) in enumerate(data.items()):
            name = str(key)
            try:
                if isinstance(value, dict):
                    self._memory(name, value, row)
                else:
                    self._number(name, json_number(value), row)
            except ValueError as error:
                self.imported.bad(f"#/{name[:80]}", str(error), "profile again")

    def _number(self, name: str, value: float, row: int) -> None:
        readers: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], float, int], None]], ...] = (
            (_MODEL_KEY, self._whole_model),
            (_LAYER_KEY, self._layer),
            (_TIME_KEY, self._collective_time),
            (_BANDWIDTH_KEY, self._bandwidth),
        )
        for pattern, reader in readers:
            match = pattern.match(name)
            if match:
                reader(match, value, row)
                return
        if name == "overlap_coe":
            if not 1 <= value < 100:
                raise ValueError(f"an overlap coefficient of {value} is no slowdown")
            self.imported.facts["overlap_slowdown"] = value
        elif re.match(r"layertype_\d+$", name):
            self.imported.skip("time a sample without a batch size")
        else:
            raise ValueError("this is no key of Galvatron's profiles")

    def _detail(self, **more: Scalar) -> dict[str, Scalar]:
        return {**({"model": self.model} if self.model else {}), **more}

    def _whole_model(self, match: re.Match[str], value: float, row: int) -> None:
        layers, shape = match[1].split(","), self._sizes(int(match[2]), match[3])
        if len(layers) == 1:
            shape["num_layers"] = int(layers[0])
        self.batch.operators.append(
            OperatorObservation(
                "module",
                "model",
                Timing(value * 1e-3, "mean"),
                phase="forward",
                dtype=self.dtype,
                shape={**shape, "tensor_parallel": 1},
                detail=self._detail(layers=match[1]),
                row=row,
            )
        )

    def _layer(self, match: re.Match[str], value: float, row: int) -> None:
        batch = int(match[2])
        if value == 0:
            self.imported.skip("rest of the model with a time of zero")
            return
        if value < 0:
            self.imported.skip("difference of two times below zero: noise")
            return
        other = match[1].startswith("other")
        name = "embedding and head" if other else f"layer type {match[1]}"
        shape = {**self._sizes(batch, match[3]), "tensor_parallel": 1, **({} if other else {"num_layers": 1})}
        detail = self._detail(derived="difference between two numbers of layers")
        if match[4]:
            detail["part"] = match[4]
        self.batch.operators.append(
            OperatorObservation(
                "module",
                name,
                Timing(value * batch * 1e-3, "mean"),
                phase="forward",
                dtype=self.dtype,
                shape=shape,
                detail=detail,
                row=row,
            )
        )

    def _sizes(self, batch: int, lengths: str | None) -> dict[str, int]:
        shape = {"batch_size": batch}
        length = lengths or self.length
        if length.isdigit():
            shape["query_length"] = int(length)
        return shape

    def _memory(self, name: str, entries: dict[str, Any], row: int) -> None:
        strategy = _STRATEGY_KEY.match(name)
        if strategy is None:
            if name.startswith(("layertype_", "other_memory")):
                self.imported.skip("memory that Galvatron derived from the readings")
                return
            raise ValueError("this is no strategy such as 1_2_4_sp")
        readings: dict[tuple[str, str, str, str], dict[str, float]] = {}
        for key, value in entries.items():
            match = _MEMORY_KEY.match(str(key))
            try:
                if match is None:
                    raise ValueError("this is no key such as layernum[1]_bsz8_seq2048_rank0_ms")
                amount = json_number(value)
                if not 0 <= amount < 1e9:
                    raise ValueError(f"{amount} MB is no amount of memory")
                readings.setdefault((match[1], match[2], match[3] or "", match[4]), {})[match[5]] = amount
            except ValueError as error:
                self.imported.bad(f"#/{name[:40]}/{str(key)[:80]}", str(error), "profile again")
        for (layers, batch, length, rank), amounts in readings.items():
            self._reading(strategy, amounts, (layers, batch, length, rank), row)

    def _reading(
        self, match: re.Match[str], amounts: dict[str, float], case: tuple[str, str, str, str], row: int
    ) -> None:
        layers, batch, length, rank = case
        words = match[4].split("_")
        strategy: dict[str, Scalar] = {
            "pp": int(match[1]), "tp": int(match[2]), "dp": int(match[3]), "sp": "sp" in words,
            "recompute": "full" if "c" in words else "none", "vocabulary_parallel": "vtp" in words,
        }  # fmt: skip
        states, peak = amounts.get("ms"), amounts.get("act_peak")
        if states is None:
            self.imported.skip("activation memory without model states")
            return
        detail = self._detail(layers=layers)
        if "act" in amounts:
            detail["activation_bytes"] = round(amounts["act"] * _MB)
        length = length or self.length
        if layers.isdigit():
            detail["num_layers"] = int(layers)
        self.batch.iterations.append(
            IterationObservation(
                None,
                rank=int(rank),
                model=self.model,
                strategy=strategy,
                global_batch_size=int(batch) or None,
                num_devices=int(match[1]) * int(match[2]) * int(match[3]) or None,
                sequence_length=int(length) if length.isdigit() else None,
                allocated_bytes=round(states * _MB),
                peak_allocated_bytes=None if peak is None else round((states + peak) * _MB),
                detail=detail,
                row=row,
            )
        )

    def _bandwidth(self, match: re.Match[str], value: float, row: int) -> None:
        unit = self.options.given.get("bandwidth_unit", "MiB/ms")
        scale = {"MiB/ms": _MIB_PER_MS, "GB/s": 1e9}.get(unit)
        if scale is None:
            raise DocumentInvalid(f"'{unit}' is no unit of Galvatron's", where="--set", hint="use MiB/ms or GB/s")
        if not any(flag.code == "unit-by-convention" for flag in self.imported.flags):
            self.imported.flag(
                "unit-by-convention",
                f"bandwidths are read as {unit}: the file does not say; Galvatron's own test gives MiB/ms, its runs of "
                "nccl-tests GB/s (--set bandwidth_unit=GB/s)",
            )
        size = int(match[2] or match[4])
        detail: dict[str, Scalar] = {"group_size": size} if match[2] else {"pipeline_stages": size}
        if match[3]:
            detail["consecutive"] = match[3] == "1"
        method = {"allreduce": "all_reduce", "all2all": "all_to_all"}.get(match[1] or "", "send_recv")
        # Consecutive ranks that fit into a node stay inside it.
        inside = match[3] == "1" and size <= (self.devices_per_node or 0)
        self.batch.links.append(
            LinkObservation(
                "device_to_device" if inside or (self.num_nodes or 1) == 1 else "network",
                "device:any",
                "device:any",
                bandwidth_bytes_per_s=value * scale,
                statistic="mean",
                method=f"{method} bus bandwidth",
                detail=detail,
                row=row,
            )
        )

    def _collective_time(self, match: re.Match[str], value: float, row: int) -> None:
        one_node = self.num_nodes == 1
        self.batch.collectives.append(
            CollectiveObservation(
                "all_reduce" if match[1] == "allreduce" else "all_to_all",
                int(match[3]) * _MB,
                int(match[2]),
                Timing(value * 1e-3, "mean"),
                num_nodes=1 if one_node else None,
                devices_per_node=int(match[2]) if one_node else None,
                row=row,
            )
        )


FORMAT = Format("galvatron", "Galvatron profiles (computation, memory, hardware)", _matches, _read)
