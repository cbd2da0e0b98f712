"""AIConfigurator on measured serving rows: what it predicts for the points that our predictions are judged by.

    python -m benchmarks.aiconfigurator_serving ask TRUTH.csv... > questions.json      in the product's environment
    python benchmarks/aiconfigurator_serving.py answer questions.json > answers.csv    in one that has aiconfigurator
    python -m benchmarks.aiconfigurator_serving beside answers.csv TRUTH.csv...        errors of both, the same rows

Asked are aggregated rows at a fixed number of requests in flight, by the hash of their ids, so many of each system and
engine.
``aiconfigurator`` 0.12.0 answers with ``cli_estimate`` in its own defaults, its newest tables of each engine and
database mode HYBRID, so that rows whose tables lack a point are answered too.  ``answers.csv`` has what it said, in
milliseconds, and empty cells where it refused, with the reason.
"""

from __future__ import annotations

import csv
import hashlib
import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

MOST = 12
"""Rows of one system and engine."""
_SYSTEMS = {
    "h100-sxm5-80gb": "h100_sxm",
    "h200-sxm-141gb": "h200_sxm",
    "b200-sxm-180gb": "b200_sxm",
    "gb200": "gb200",
    "a100-sxm4-80gb": "a100_sxm",
    "l40s": "l40s",
}
_BACKENDS = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
_CHECKPOINTS = {
    "deepseek-v3": "deepseek-ai/DeepSeek-R1",
    "llama-3.1-70b": "meta-llama/Meta-Llama-3.1-70B",
    "llama-3.1-8b": "meta-llama/Meta-Llama-3.1-8B",
    "qwen3-32b": "Qwen/Qwen3-32B",
    "qwen3-235b-a22b": "Qwen/Qwen3-235B-A22B",
    "minimax-m2.5": "MiniMaxAI/MiniMax-M2.5",
    "gpt-oss-120b": "openai/gpt-oss-120b",
}
_QUANTISED = {"fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4", "bf16": "bfloat16", "mxfp4": "w4a16_mxfp4"}


def order(row: dict[str, Any]) -> str:
    """By what rows are drawn."""
    return hashlib.sha256(str(row["id"]).encode()).hexdigest()


def drawn(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first rows of each system and engine."""
    kept: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(rows, key=order):
        group = kept[row["system_name"], row["backend_name"]]
        if len(group) < MOST:
            group.append(row)
    return [row for group in kept.values() for row in group]


def questions(paths: list[str]) -> list[dict[str, Any]]:
    """The chosen rows in AIConfigurator's terms."""
    from planner.serving.evidence.mapped import mapped
    from planner.serving.evidence.truth import read_serving_truth
    from planner.serving.evidence.unmapped import RowUnmapped

    found = []
    for path in paths:
        for row in read_serving_truth(Path(path).read_text(encoding="utf-8"), path):
            if not row.id.startswith("aic-"):
                continue
            try:
                point = mapped(row)
            except RowUnmapped:
                continue
            if point.kind != "aggregated" or point.model.name not in _CHECKPOINTS or point.device not in _SYSTEMS:
                continue
            layout, formats = point.deployment.groups[0].layout, point.deployment.formats
            found.append(
                {
                    "id": row.id,
                    "model_path": _CHECKPOINTS[point.model.name],
                    "system_name": _SYSTEMS[point.device],
                    "backend_name": _BACKENDS[point.engine],
                    "isl": int(row.number("isl") or 1),
                    "osl": int(row.number("osl") or 1),
                    "batch_size": max(round(point.load / layout.attention_dp), 1),
                    "tp_size": layout.tp,
                    "attention_dp_size": layout.attention_dp,
                    "moe_tp_size": layout.etp if point.model.has_experts else None,
                    "moe_ep_size": layout.ep if point.model.has_experts else None,
                    "gemm_quant_mode": _QUANTISED[formats.weights],
                    "moe_quant_mode": _QUANTISED[formats.of_experts] if point.model.has_experts else None,
                    "kvcache_quant_mode": "fp8" if formats.kv_cache == "fp8" else "bfloat16",
                }
            )
    return drawn(found)


def answers(asked_rows: list[dict[str, Any]]) -> None:
    """Ask AIConfigurator and write its answers as CSV."""
    from aiconfigurator.cli.api import cli_estimate  # type: ignore[import-not-found]  # not among our dependencies

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("id", "ttft_ms", "tpot_ms", "refused"))
    for row in asked_rows:
        question = {key: value for key, value in row.items() if key != "id" and value is not None}
        try:
            result = cli_estimate(**question, mode="agg", database_mode="HYBRID")
            writer.writerow((row["id"], f"{result.ttft:.3f}", f"{result.tpot:.4f}", ""))
        except Exception as error:  # whatever it raises is its answer
            writer.writerow((row["id"], "", "", f"{type(error).__name__}: {str(error)[:120]}".replace("\n", " ")))
        sys.stdout.flush()


def beside(answered: str, paths: list[str]) -> None:
    """Print median and mean errors of AIConfigurator and of our predictions on the rows that it answered."""
    from planner.serving.evidence.judged import Judged
    from planner.serving.evidence.report import assess
    from planner.serving.evidence.truth import read_serving_truth

    lines = Path(answered).read_text(encoding="utf-8").splitlines()
    said = {row["id"]: row for row in csv.DictReader(lines) if row["tpot_ms"]}
    rows = [row for path in paths for row in read_serving_truth(Path(path).read_text(encoding="utf-8"), path)]
    points = assess([row for row in rows if row.id in said]).judged
    views: dict[str, list[Judged]] = defaultdict(list)
    for point in points:
        part = "fitted on" if point.fitted_on else "not fitted on"
        for name in ("all", part, point.point.engine, point.point.device):
            views[name].append(point)
    print("| points | count | quantity | AIConfigurator median | mean | ours median | mean |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, found in views.items():
        for quantity in ("tpot", "ttft"):
            ours = [abs(1 / ratio - 1) for each in found if (ratio := each.ratio(quantity))]
            theirs = [
                abs(float(said[each.point.row.id][f"{quantity}_ms"]) / measured - 1)
                for each in found
                if (measured := each.point.row.number(f"{quantity}_ms"))
            ]
            both = (statistics.median(theirs), statistics.mean(theirs), statistics.median(ours), statistics.mean(ours))
            print(
                f"| {name} | {len(ours)} | {quantity} | " + " | ".join(f"{100 * error:.1f} %" for error in both) + " |"
            )


if __name__ == "__main__":
    if sys.argv[1] == "beside":
        beside(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == "ask":
        json.dump(questions(sys.argv[2:]), sys.stdout, indent=0)
    else:
        answers(json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
