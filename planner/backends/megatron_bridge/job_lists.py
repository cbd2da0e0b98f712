"""What became of each setting that a script makes of a Bridge configuration: used, without influence, not modelled."""

from __future__ import annotations

from functools import cache
from typing import Any

from planner.backends.megatron_bridge.fields import FIELDS
from planner.backends.megatron_bridge.recipe_table import section_fields
from planner.backends.megatron_bridge.settings import Settings, words_of
from planner.model.argument_lists import known_arguments
from planner.model.megatron_flags import MegatronFlags
from planner.model.megatron_strategy import DEALT, OPTIMIZERS
from planner.model.megatron_unmodelled import ArgumentLists, argument_lists
from planner.model.python_values import plain
from profiles.shipped_tables import shipped_words

_BY_PATH = {path: each for each in FIELDS for path in each.paths}


@cache
def _lists() -> dict[str, frozenset[str]]:
    lists = shipped_words("planner.backends.megatron_bridge", "job_lists.toml")
    return {name: frozenset(words) for name, words in lists.items()}


def list_of(path: str) -> str:
    """The list of one path, whatever its value: used, no_influence, not_modelled or unknown."""
    section, _, name = path.partition(".")
    fields, lists = section_fields(), _lists()
    if path in lists["used"]:
        return "used"
    if path in lists["packing"]:
        return "not_modelled"
    if path in lists["harmless_fields"]:
        return "no_influence"
    if path in _BY_PATH:
        return known_arguments("megatron").list_of(_BY_PATH[path].flag.removeprefix("--")) or "not_modelled"
    if section in lists["harmless_sections"] or (not name and section in fields[""]):
        return "no_influence"
    if name.split(".")[0] not in fields.get(section, frozenset()) and path not in lists["old_names"]:
        return "unknown"
    harmless = name.replace("_", "-") in known_arguments("megatron").no_influence
    return "no_influence" if harmless else "not_modelled"


def lists_of(settings: Settings, harmless: tuple[str, ...], missed: tuple[str, ...]) -> ArgumentLists:
    """The lists of one configuration, and what the recipe itself has that no plan knows."""
    found: dict[str, list[str]] = {
        "used": [],
        "no_influence": list(harmless),
        "not_modelled": list(missed),
        "unknown": [],
    }
    for path, value in settings.said_values.items():
        told = settings.spoken.get(path, path)
        found[_list_of_value(path, value)].append(told if value is None else f"{told}={plain(value)}")
    found["not_modelled"] += [line for line in _recipe_values(settings) if line not in found["not_modelled"]]
    return ArgumentLists(**{name: tuple(dict.fromkeys(rows)) for name, rows in found.items()})


def _list_of_value(path: str, value: Any) -> str:
    """The list of a path with a value: some values are what the prediction assumes."""
    held = list_of(path)
    if path in _BY_PATH and held == "not_modelled":
        words = words_of(_BY_PATH[path], value)
        lists = argument_lists(MegatronFlags(words, ""), words)
        return "not_modelled" if lists.not_modelled else "no_influence"
    if held == "not_modelled" and value in (None, False):
        return "no_influence"
    return held


def _recipe_values(settings: Settings) -> list[str]:
    """Values of the whole configuration that change the run and that no plan has a word for."""
    lines = []
    flex = settings.value("model.moe_token_dispatcher_type") == "flex" and settings.value("model.num_moe_experts") != 0
    if flex and settings.value("model.moe_flex_dispatcher_backend") == "ncclep":
        lines.append("model.moe_flex_dispatcher_backend=ncclep (deepep is predicted)")
    if settings.value("model.cuda_graph_impl") not in (None, "none"):
        lines.append(f"model.cuda_graph_impl={settings.value('model.cuda_graph_impl')}")
    if settings.value("model.cpu_offloading") and settings.value("model.cpu_offloading_num_layers"):
        lines.append(f"model.cpu_offloading_num_layers={settings.value('model.cpu_offloading_num_layers')}")
    if settings.value("comm_overlap.delay_wgrad_compute"):
        lines.append("comm_overlap.delay_wgrad_compute=True")
    lines += _optimizer(str(settings.value("optimizer.optimizer") or "adam"))
    fsdp = settings.value("ddp.use_megatron_fsdp", "dist.use_megatron_fsdp")
    if fsdp and settings.value("mixed_precision.fp8_param_gather", "ddp.fp8_param_gather"):
        lines.append("fp8_param_gather with Megatron-FSDP (parameters are predicted as gathered in bf16)")
    if settings.value("model.recompute_granularity") == "selective":
        words = [str(each) for each in settings.value("model.recompute_modules") or ()]
        flags = MegatronFlags(["--recompute-modules", *words], "")
        lines += [line.removeprefix("--") for line in argument_lists(flags, []).not_modelled]
    return lines


def _optimizer(name: str) -> list[str]:
    """An optimizer that is predicted as another one, or whose gradients travel otherwise.

    Bridge leaves its distributed optimizer off beside one that deals whole weights: gradients are then summed on every
    rank (core 0.19.2 optimizer/layer_wise_optimizer.py:167-181).
    """
    bare = name.removeprefix(DEALT)
    if bare not in OPTIMIZERS:
        return [f"optimizer.optimizer={name} (adam is predicted)"]
    told = f"optimizer.optimizer={name} (gradients are predicted as scattered, not summed on every rank)"
    return [] if bare == name else [told]
