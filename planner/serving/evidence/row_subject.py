"""The model, machine, engine and number formats of a measured row."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

from planner.model.builtin import builtin_model, builtin_models
from planner.model.hf_config import model_from_hf_config
from planner.model.spec import ModelSpec
from planner.serving.evidence.truth import ServingRow
from planner.serving.evidence.unmapped import RowUnmapped
from planner.serving.layout import Formats
from planner.serving.words import CacheFormat, EngineName, WeightFormat
from profiles.catalogue import load_cluster, load_device
from profiles.cluster import Cluster
from profiles.shipped_tables import shipped_table

_PACKAGE = "planner.serving.evidence"
_ENGINES: dict[str, EngineName] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt-llm": "tensorrt-llm",
    "tensorrt-llm (triton backend)": "tensorrt-llm",
    "nvidia nim (tensorrt-llm)": "tensorrt-llm",
}
_AMBIGUOUS = re.compile(r"\(page lists")


def row_engine(row: ServingRow) -> tuple[EngineName, str]:
    """Engine and release; "unknown" where the row does not say which."""
    engine = _ENGINES.get(row["engine"].lower())
    if engine is None:
        raise RowUnmapped(f"{row['engine']} is not one of the engines that are predicted")
    return engine, row["engine_version"].removeprefix("v") or "unknown"


@cache
def _models() -> tuple[list[tuple[str, str]], dict[str, dict[str, object]]]:
    table = json.loads(files(_PACKAGE).joinpath("models.json").read_text(encoding="utf-8"))
    return [(pattern, name) for pattern, name in table["names"]], table["hf_configs"]


@cache
def _model(name: str) -> ModelSpec:
    if name in builtin_models():
        return builtin_model(name)
    return model_from_hf_config(_models()[1][name], name, f"{_PACKAGE}/models.json#{name}")


def row_model(row: ServingRow) -> ModelSpec:
    """The model of a row, by the first pattern of ``models.json`` in its name."""
    wanted = row["model"].lower()
    for pattern, name in _models()[0]:
        if pattern in wanted:
            return _model(name)
    raise RowUnmapped(f"the sizes of {row['model']} are not known here")


@cache
def _machine(name: str) -> Cluster:
    for machine in shipped_table(_PACKAGE, "machines.toml")["machines"]:
        if name.startswith(machine["name"]):
            cluster = load_cluster(machine["cluster"])
            if "device" not in machine:
                return cluster
            pool = cluster.pools[0].model_copy(update={"device": load_device(machine["device"])})
            return cluster.model_copy(update={"pools": (pool,)})
    raise RowUnmapped(f"no catalogue cluster stands for {name}")


def row_cluster(row: ServingRow) -> Cluster:
    """A catalogue cluster with the row's devices and links."""
    if _AMBIGUOUS.search(row["device"]):
        raise RowUnmapped("the device is ambiguous")
    return _machine(row["device"].lower())


def row_formats(row: ServingRow, model: ModelSpec, engine: EngineName) -> Formats:
    """Number formats of a row: what it states, completed by what the model's checkpoints of that kind hold.

    fp8 checkpoints of DeepSeek, Qwen3 and MiniMax hold blocks of 128 x 128; nvidia's NVFP4 checkpoints of DeepSeek keep
    attention in 16 bit; gpt-oss has experts in MXFP4 and the rest in 16 bit.  Keys and values: fp8 where TensorRT-LLM's
    pages say so with fp8 and fp4 weights, and where vLLM serves Llama in fp8 or fp4; else 16 bit.
    """
    text = f"{row['precision']} {row['model']}".lower()
    cache: CacheFormat = "fp8" if engine == "tensorrt-llm" and ("fp8" in text or "fp4" in text) else "bf16"
    if model.name.startswith("gpt-oss"):
        return Formats(weights="bf16", experts="mxfp4", kv_cache=cache)
    blocks = any(name in model.name for name in ("deepseek", "minimax", "qwen3", "glm"))
    weights: WeightFormat = "bf16"
    if "nvfp4" in text or "fp4" in text:
        latent = "deepseek" in model.name
        return Formats(weights="bf16" if latent else "nvfp4", experts="nvfp4", kv_cache="fp8" if latent else cache)
    if "fp8" in text:
        weights = "fp8_block" if blocks else "fp8"
        if engine == "vllm" and "llama" in model.name:
            cache = "fp8"
    elif "awq" in text or "int4" in text:
        weights = "int4"
    return Formats(weights=weights, kv_cache=cache)
