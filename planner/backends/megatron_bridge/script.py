"""Scripts that start Megatron-Bridge: Python files that change a recipe, command lines of its launchers, YAML of both.

Nothing is executed.  ``path=value`` words of a command line are laid over what a Python file configures, and so are
YAML files that it is told to read (``--config-file``, ``OmegaConf.load``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planner.backends.megatron_bridge.job import Beside, job_of_settings
from planner.backends.megatron_bridge.recipe_table import (
    BENCHMARK,
    LIBRARY,
    configuration,
    recipe_named,
    recipe_names,
    sizes_of,
)
from planner.backends.megatron_bridge.runner import read_runner, unknown_recipe, words_behind
from planner.backends.megatron_bridge.settings import settings_of, with_scheme
from planner.backends.rules.settings import flat_settings
from planner.errors import DocumentInvalid
from planner.model.megatron_args import LaunchJob
from planner.model.python_script import follow
from planner.model.python_values import Thing, plain_thing
from profiles.safe_yaml import load_yaml_text

Opener = Callable[[str], str | None]
_OVERRIDE = re.compile(r"[+~]*[a-z_]+(?:\.\w+)+=")
_SIGNS = re.compile(r"^\s*(?:from|import)\s+megatron\.bridge\b", re.MULTILINE)
_PRECISION = re.compile(r"(?:bf16|fp16)_(?:mixed|with_\w+_mixed)\Z")
_KEYWORDS = {
    "seq_length": ("dataset.seq_length", "model.seq_length"),
    **{
        name: (f"model.{name}",)
        for name in (
            "tensor_model_parallel_size", "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size",
            "context_parallel_size", "expert_model_parallel_size", "expert_tensor_parallel_size", "sequence_parallel",
        )
    },
    **{name: (f"train.{name}",) for name in ("global_batch_size", "micro_batch_size", "train_iters")},
    "precision_config": ("mixed_precision",),
    "comm_overlap_config": ("comm_overlap",),
    "use_megatron_fsdp": ("ddp.use_megatron_fsdp",),
    "lr": ("optimizer.lr",),
    "min_lr": ("optimizer.min_lr",),
    "lr_warmup_iters": ("scheduler.lr_warmup_iters",),
    "peft": ("peft",),
    "peft_scheme": ("peft",),
}  # fmt: skip
"""Keyword arguments of recipe functions, earlier releases' too, and the paths that they set."""
_CONFIG = ("recipe ", "megatron.bridge.training.config.ConfigContainer")


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a script's words, variables and neighbours are from."""

    where: str
    words: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    opened: Opener = lambda _: None


def is_bridge(text: str) -> bool:
    """Whether a Python file imports Megatron-Bridge."""
    return _SIGNS.search(text) is not None


def is_bridge_yaml(text: str) -> bool:
    """Whether a YAML file is a configuration of Megatron-Bridge, or overrides of one."""
    if re.search(r"_target_:\s*megatron\.bridge", text):
        return True
    tops = set(re.findall(r"^(\w+):", text, re.MULTILINE))
    return bool(tops) and tops <= {"model", "train", "ddp", "optimizer", "scheduler", "dataset", "logger", "tokenizer",
                                   "checkpoint", "comm_overlap", "mixed_precision", "validation", "rng", "dist",
                                   "profiling", "peft"} and "model" in tops | {"train"} & tops  # fmt: skip


def job_of_words(words: Sequence[str], sources: Sources, beside: Beside) -> LaunchJob:
    """The run of one of Bridge's launchers.  Raises DocumentInvalid, FindingsInvalid."""
    read = read_runner(words_behind(words), sources.where)
    canonical = re.search(r"_(\d+)gpu_", read.recipe.name) if read.benchmark else None
    config = configuration(read.recipe)
    settings = settings_of(config, read.overrides, sources.where, read.recipe.name)
    beside = replace(
        beside,
        devices=beside.devices or read.devices,
        canonical=int(canonical[1]) if canonical else None,
        no_influence=read.no_influence,
        not_modelled=read.not_modelled,
    )
    return job_of_settings(settings, sources.where, beside)


def job_of_python(text: str, sources: Sources, beside: Beside) -> LaunchJob:
    """The run that a Python file configures.  Raises DocumentInvalid, FindingsInvalid."""
    overrides = [_pair(word) for word in sources.words if _OVERRIDE.match(word)]
    plain_words = [word for word in sources.words if not _OVERRIDE.match(word)]
    files: list[str] = []

    def made(name: str, arguments: list[Any], settings: dict[str, Any], line: int) -> Any:
        if name.endswith("OmegaConf.load") and arguments:
            files.append(arguments[0] if isinstance(arguments[0], str) else "")
        return _made(name, arguments, settings, line, sources.where)

    found = follow(text, sources.where, made, plain_words, sources.variables)
    _refuse_unasked(text, plain_words, sources)
    configs = [each for each in (*found.trained, *reversed(found.made)) if each.name.startswith(_CONFIG)]
    if not configs:
        raise DocumentInvalid(
            "it makes no configuration of Megatron-Bridge that can be followed",
            where=sources.where,
            hint=f"call a recipe such as {recipe_names(LIBRARY)[0]}, or ConfigContainer(...), with plain values",
        )
    overrides = [*(pair for name in files if name for pair in _yaml(name, sources)), *overrides]
    settings = settings_of(configs[0], overrides, sources.where, configs[0].name.removeprefix("recipe "))
    return job_of_settings(settings, sources.where, replace(beside, undecided=tuple(found.undecided)))


def job_of_yaml(text: str, sources: Sources, beside: Beside) -> LaunchJob:
    """The run of a saved configuration, or of overrides with ``--recipe NAME`` beside them.

    Raises DocumentInvalid, FindingsInvalid.
    """
    data = load_yaml_text(text, sources.where)
    if not isinstance(data, dict):
        raise DocumentInvalid("no sections are in it", where=sources.where)
    whole = re.search(r"_target_:\s*megatron\.bridge", text) is not None
    if whole:
        config = _sections(data)
        overrides = [_pair(word) for word in sources.words if _OVERRIDE.match(word)]
        settings = settings_of(config, overrides, sources.where, "config")
        return job_of_settings(settings, sources.where, beside)
    if "--recipe" not in sources.words:
        raise DocumentInvalid(
            "it changes a recipe and does not say which",
            where=sources.where,
            hint="name it: -- --recipe llama3_8b_pretrain_config",
        )
    read = read_runner(sources.words, sources.where)
    values = [(path, str(value)) for path, value in flat_settings(data)]
    settings = settings_of(configuration(read.recipe), [*values, *read.overrides], sources.where, read.recipe.name)
    return job_of_settings(settings, sources.where, replace(beside, devices=beside.devices or read.devices))


def _pair(word: str) -> tuple[str, str]:
    name, _, value = word.lstrip("+~").partition("=")
    return name, value


def _yaml(name: str, sources: Sources) -> list[tuple[str, str]]:
    text = sources.opened(name)
    if text is None:
        raise DocumentInvalid(f"the script reads {name}, which is not there", where=sources.where, hint="put it beside")
    data = load_yaml_text(text, name)
    return [(path, str(value)) for path, value in flat_settings(data)] if isinstance(data, dict) else []


def _sections(data: Mapping[str, Any]) -> Thing:
    """A saved configuration as sections; its classes are ``_target_``."""
    found = Thing(f"{_CONFIG[1]}")
    for name, value in data.items():
        if isinstance(value, dict):
            target = str(value.get("_target_", "")).rpartition(".")[2]
            held = Thing(target, 0, [], {key: each for key, each in value.items() if key != "_target_"})
            if name == "model":
                held.fields["provider"] = "MLAModelProvider" if "MLA" in target else "GPTModelProvider"
            found.set(name, held, 0)
        elif value is not None:
            found.set(name, value, 0)
    return found


def _refuse_unasked(text: str, words: Sequence[str], sources: Sources) -> None:
    options = [word.partition("=")[0] for word in words if word.startswith("-")]
    for name in options:
        if f'"{name}"' not in text and f"'{name}'" not in text:
            raise DocumentInvalid(
                f"the script takes no {name}", where=sources.where, hint="write -- section.field=VALUE"
            )


def _made(name: str, arguments: list[Any], settings: dict[str, Any], line: int, where: str) -> Any:
    """Recipes, configurations, providers and precisions; None for any other call."""
    last = name.rpartition(".")[2]
    first = arguments[0] if arguments else None
    if last == "default_peft_config":
        return None
    if last.endswith("_config") and re.search(r"_(?:pretrain|sft|peft|finetune)_", last):
        found = recipe_named(last, BENCHMARK if "perf_recipes" in name else LIBRARY)
        if found is None:
            raise unknown_recipe(last, where)
        return _with_keywords(configuration(found, line), settings, line)
    if last == "ConfigContainer":
        return plain_thing(_CONFIG[1], arguments, settings, line)
    if last == "to_megatron_provider" and isinstance(first, Thing) and first.positional:
        return Thing("provider", line, [], {"hf": first.positional[0], **sizes_of(str(first.positional[0]))})
    if last.endswith(("ModelProvider", "Provider")) or "ModelProvider" in last:
        return plain_thing("provider", arguments, {"provider": last, **settings}, line)
    if last == "get_mixed_precision_config" and isinstance(first, str):
        return first
    if _PRECISION.match(last):
        return last
    if last.startswith("distributed_fused_adam"):
        return [Thing("OptimizerConfig", line, [], {"optimizer": "adam", "use_distributed_optimizer": True}), Thing("")]
    return None


def _with_keywords(config: Thing, settings: Mapping[str, Any], line: int) -> Thing:
    for name, value in settings.items():
        for path in _KEYWORDS.get(name, (f"{name}",)):
            section, _, each = path.rpartition(".")
            below = config.fields.setdefault(section, Thing("", line)) if section else config
            if isinstance(below, Thing):
                said = with_scheme(below.fields.get(each), value) if path == "peft" else value
                below.set(each, said, line)
    return config
