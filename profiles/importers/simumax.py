"""SimuMax's system files: efficiencies of operators by shape, from which the measured times are recovered.

Recognised by ``accelerator.op.*.accurate_efficient_factor``.  The tool measured a time, divided the FLOPs by it and by
``tflops``, and kept the ratio; here ``time = FLOPs / (efficiency x tflops x 10^12)``, flag ``derived-from-efficiency``:

    matmul          2 b m n k         layout TN = forward, NN = dgrad (m, k, n), NT = wgrad (n, k, m): keys give the
                                      product as it ran, and so it is stored
    group_matmul    2 ng M N K        stage fwd, bwd_grad_act, bwd_grad_w; the keys give the forward's M (rows of one
                                      group), N, K for all three
    sdp_fwd, _bwd   2 and 5 times b s^2 heads (qk + v head size), although the kernel is causal

``efficient_factor`` alone is a default, no measurement.  Bandwidths (``gbps`` means 2^30 bytes a second) and network
fits become facts: products of a fit, not of one size.

Source: MooreThreads/SimuMax simu_tools/efficency_test, simumax/core/config.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.number_cells import json_number, json_whole, shown, whole_number
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import OperatorObservation, Phase, Scalar
from profiles.observations.timing import Timing
from profiles.safe_json import load_json_text

_LAYOUTS: dict[str, Phase] = {"TN": "forward", "NN": "dgrad", "NT": "wgrad"}
_STAGES: dict[str, Phase] = {"fwd": "forward", "bwd_grad_act": "dgrad", "bwd_grad_w": "wgrad"}
_GIB = 2**30
_Case = tuple[str, Phase, dict[str, int], float]


def _matches(head: Head) -> bool:
    text = head.text
    if text.lstrip()[:1] != "{" or '"accelerator"' not in text:
        return False
    return '"accurate_efficient_factor"' in text or ('"efficient_factor"' in text and '"sys_name"' in text)


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("simumax")
    batches = Batches()
    for file in files:
        data = load_json_text(file.text(), file.where)
        accelerator = data.get("accelerator") if isinstance(data, dict) else None
        table = accelerator.get("op") if isinstance(accelerator, dict) else None
        if not isinstance(table, dict):
            raise DocumentInvalid("there is no accelerator.op", where=file.where, hint="give a system file of SimuMax")
        environment = environment_of(
            options,
            str(data.get("sys_name", ""))[:80],
            devices_per_node=_positive(data.get("num_per_node")),
        )
        batch = batches.of(environment)
        for name, entry in table.items():
            _take_table(str(name), entry, batch, imported)
        _network_facts(data.get("networks"), imported)
    imported.flag("derived-from-efficiency", "times are FLOPs / (efficiency x tflops) of the file, not as measured")
    missing = "no operator has efficiencies by shape: there is nothing measured in the file"
    return finished(imported, batches, files[0], missing, "run SimuMax's efficiency test on the device")


def _take_table(name: str, entry: Any, batch: Batch, imported: Imported) -> None:
    table = entry.get("accurate_efficient_factor") if isinstance(entry, dict) else None
    if not isinstance(table, dict) or not table:
        imported.skip("operator with a default efficiency only")
        return
    pointer = f"#/accelerator/op/{name[:40]}"
    try:
        peak = json_number(entry.get("tflops")) * 1e12
    except ValueError as error:
        imported.bad(pointer, f"tflops: {error}", "the efficiencies refer to it")
        return
    for row, (key, efficiency) in enumerate(table.items()):
        try:
            fields = _fields(str(key))
            operator, phase, shape, flops = _case(name, fields)
            ratio = json_number(efficiency)
            if ratio <= 0 or peak <= 0:
                raise ValueError(f"an efficiency of {ratio} gives no time")
            batch.operators.append(
                OperatorObservation(
                    operator,
                    name,
                    Timing(flops / (ratio * peak)),
                    phase=phase,
                    dtype=_dtype(name, fields),
                    shape=shape,
                    causal=True if operator == "attention" else None,
                    detail=_detail(fields, ratio),
                    row=row,
                )
            )
        except (ValueError, KeyError, ZeroDivisionError) as error:
            what = f"there is no {error} in the key" if isinstance(error, KeyError) else str(error)
            imported.bad(f"{pointer}/{str(key)[:80]}", what, "measure this shape again")


def _fields(key: str) -> dict[str, str]:
    """``b=1, m=4096`` as a dict."""
    parts = [part.partition("=") for part in key.split(",")]
    if any(not equals for _, equals, _ in parts):
        raise ValueError(f"{shown(key)} is not a list of name=value")
    return {name.strip(): value.strip() for name, _, value in parts}


def _case(name: str, fields: dict[str, str]) -> _Case:
    """Class, phase, shape and FLOPs of one key.  Raises ValueError, KeyError."""
    if name.startswith("sdp"):
        return _attention(name, fields)
    if "group" in name:
        return _grouped(fields)
    if "matmul" not in name:
        raise ValueError(f"{shown(name)} is no operator with known FLOPs")
    b, m, n, k = (whole_number(fields[key]) for key in ("b", "m", "n", "k"))
    phase = _LAYOUTS.get(fields.get("layout", ""))
    if phase is None:
        raise ValueError(f"layout {shown(fields.get('layout', ''))} is none of TN, NN, NT")
    shape = {"m": m, "n": n, "k": k}
    return "matmul", phase, shape if b == 1 else {"batch_size": b, **shape}, 2.0 * b * m * n * k


def _grouped(fields: dict[str, str]) -> _Case:
    groups, m, n, k = (whole_number(fields[key]) for key in ("ng", "M", "N", "K"))
    phase = _STAGES.get(fields.get("stage", ""))
    if phase is None:
        raise ValueError(f"stage {shown(fields.get('stage', ''))} is none of {', '.join(_STAGES)}")
    return "grouped_matmul", phase, {"num_groups": groups, "m": m, "n": n, "k": k}, 2.0 * groups * m * n * k


def _attention(name: str, fields: dict[str, str]) -> _Case:
    backward = name.endswith("bwd")
    batch, length, heads, kv_heads, head, value = (
        whole_number(fields[key])
        for key in ("batch", "seq_len", "head_num", "kv_head_num", "qk_head_dim", "v_head_dim")
    )
    shape = {
        "batch_size": batch, "query_length": length, "key_length": length, "num_heads": heads,
        "num_kv_heads": kv_heads, "head_dim": head, "value_head_dim": value,
    }  # fmt: skip
    flops = (5.0 if backward else 2.0) * batch * length * length * max(heads, kv_heads) * (head + value)
    return "attention", "backward" if backward else "forward", shape, flops


def _dtype(name: str, fields: dict[str, str]) -> str:
    """Of the operands.  The benchmark runs bf16 except where the operator's name says fp8."""
    return "fp8" if name.startswith("fp8") else fields.get("dtype", "bf16")


def _detail(fields: dict[str, str], efficiency: float) -> dict[str, Scalar]:
    kept = ("layout", "accumulate", "out_dtype", "stage", "main_grad_dtype", "qkv_contiguous")
    found: dict[str, Scalar] = {name: fields[name][:40] for name in kept if name in fields}
    return {**found, "efficiency": efficiency}


def _network_facts(networks: Any, imported: Imported) -> None:
    """Bandwidth times efficiency of each network and collective, bytes a second."""
    for name, network in networks.items() if isinstance(networks, dict) else ():
        if not isinstance(network, dict) or not isinstance(network.get("bandwidth"), dict):
            continue
        general = network["bandwidth"]
        operations = network.get("op")
        for operation, fit in operations.items() if isinstance(operations, dict) else ():
            if not isinstance(fit, dict):
                continue
            try:
                ratio = json_number(fit.get("efficient_factor", general.get("efficient_factor")))
                latency_us = json_number(fit.get("latency_us", general.get("latency_us")))
                rate = json_number(general.get("gbps")) * _GIB * ratio
            except ValueError:
                imported.skip("network fit without bandwidth, efficiency or latency")
                continue
            prefix = f"{str(name)[:40]}.{str(operation)[:40]}"
            imported.facts[f"{prefix}.bus_bandwidth_bytes_per_s"] = rate
            imported.facts[f"{prefix}.latency_s"] = latency_us * 1e-6


def _positive(value: Any) -> int | None:
    try:
        number = json_whole(value)
    except ValueError:
        return None
    return number if number > 0 else None


FORMAT = Format("simumax", "SimuMax system files (efficiencies by shape)", _matches, _read)
