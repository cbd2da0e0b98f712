"""Command lines of Megatron-Bridge's own launchers: which recipe, on how many devices, with which overrides.

``scripts/training/run_recipe.py`` (``--recipe NAME`` or ``--model STEM --mode MODE``) and ``scripts/performance``
(``-m FAMILY -mr MODEL -ng N -g GPU -c DTYPE``; earlier ``-m llama3 -s 70b``), then ``path=value`` words.  Facts:
Megatron-Bridge v0.6.0 scripts/training/run_recipe.py:109-127, scripts/performance/argument_parser.py,
scripts/performance/utils/{utils,overrides}.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from planner.backends.megatron_bridge.recipe_table import BENCHMARK, LIBRARY, Recipe, recipe_named, recipe_names
from planner.errors import DocumentInvalid

PROGRAMS = re.compile(r"(?:.*/)?(?:run_recipe|run_script|(?:\w+_)?setup_experiment|bootstrap)\.py\Z")
_SAYS = {
    "--max_steps": "train.train_iters",
    "--global_batch_size": "train.global_batch_size",
    "--micro_batch_size": "train.micro_batch_size",
    "--seq_length": "dataset.seq_length",
    "--tensor_model_parallel_size": "model.tensor_model_parallel_size",
    "--pipeline_model_parallel_size": "model.pipeline_model_parallel_size",
    "--context_parallel_size": "model.context_parallel_size",
    "--virtual_pipeline_model_parallel_size": "model.virtual_pipeline_model_parallel_size",
    "--expert_model_parallel_size": "model.expert_model_parallel_size",
    "--expert_tensor_parallel_size": "model.expert_tensor_parallel_size",
    "--num_layers": "model.num_layers",
    "--hidden_size": "model.hidden_size",
    "--num_moe_experts": "model.num_moe_experts",
    "--pipeline_model_parallel_layout": "model.pipeline_model_parallel_layout",
    "--lr": "optimizer.lr",
    "--min_lr": "optimizer.min_lr",
    "--warmup_iters": "scheduler.lr_warmup_iters",
    "--pretrained_checkpoint": "checkpoint.pretrained_checkpoint",
    "--save_dir": "checkpoint.save",
    "--load_dir": "checkpoint.load",
    "--save_interval": "checkpoint.save_interval",
}
_SHORT = {
    "-ms": "--max_steps", "-gb": "--global_batch_size", "-mb": "--micro_batch_size", "-sl": "--seq_length",
    "-tp": "--tensor_model_parallel_size", "-pp": "--pipeline_model_parallel_size", "-cp": "--context_parallel_size",
    "-vp": "--virtual_pipeline_model_parallel_size", "-ep": "--expert_model_parallel_size",
    "-etp": "--expert_tensor_parallel_size", "-et": "--expert_tensor_parallel_size",
    "-m": "--model_family_name", "-mr": "--model_recipe_name", "-s": "--model_size", "-ng": "--num_gpus",
    "-gn": "--gpus_per_node", "-g": "--gpu", "-c": "--compute_dtype", "-cv": "--config_variant",
    "--step-func": "--step_func",
}  # fmt: skip
_DTYPES = {"bf16": "bf16", "fp8_cs": "fp8cs", "fp8_mx": "fp8mx", "fp8_sc": "fp8sc", "nvfp4": "nvfp4"}
_SMALLER = re.compile(r"(llama3_8b|nemotronh_56b|qwen3_30b_a3b)_pretrain_")
_MODES = {"pretrain": "pretrain", "sft": "sft", "lora": "peft", "dora": "peft", "peft": "peft"}
_SAID = frozenset({
    "--recipe", "--model", "--mode", "--model_family_name", "--model_recipe_name", "--model_size", "--num_gpus",
    "--gpu", "--compute_dtype", "--config_variant", "--task", *_SAYS,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunnerWords:
    """``recipe``: the one that is started.  ``overrides``: path and text of each, in order; the last one wins.

    ``devices``: ``--num_gpus``.  ``options``: of the launcher, as written, each in the list that it belongs to.
    """

    recipe: Recipe
    overrides: tuple[tuple[str, str], ...]
    devices: int | None = None
    no_influence: tuple[str, ...] = ()
    not_modelled: tuple[str, ...] = ()
    benchmark: bool = False
    options: dict[str, str] = field(default_factory=dict)


def is_runner(words: Sequence[str]) -> bool:
    """Whether the words start one of Bridge's launchers."""
    own = words_behind(words)
    asks = {word.partition("=")[0] for word in own}
    chosen = {"--recipe", "--model_recipe_name", "-mr", "--model", "-m"} & asks
    return bool(chosen) and any(PROGRAMS.match(word) for word in words)


def words_behind(words: Sequence[str]) -> Sequence[str]:
    """The words behind the program's file."""
    return next((words[place + 1 :] for place, word in enumerate(words) if PROGRAMS.match(word)), ())


def read_runner(words: Sequence[str], where: str) -> RunnerWords:
    """What the words behind a launcher's file say.  Raises DocumentInvalid."""
    options: dict[str, str] = {}
    overrides: list[tuple[str, str]] = []
    harmless: list[str] = []
    for name, value in _pairs(words):
        if not name.startswith("-"):
            overrides.append((name.lstrip("+~"), value))
        elif name in _SAYS:
            # -1 keeps the recipe's; None, or nothing behind it, sets no value.
            overrides += [] if value == "-1" else [(_SAYS[name], "null" if value in ("", "None") else value)]
            options[name] = value
        elif name in _SAID:
            options[name] = value
        elif name not in _FEATURES:
            harmless.append(f"{name} {value}".strip())
        else:
            options[name] = value
    recipe, benchmark = _recipe(options, where)
    more, missed = _features(options)
    if options.get("--mode") == "dora":
        more.append(("peft", "dora"))
    if benchmark and "--tensor_model_parallel_size" in options:
        sequence = str(int(options["--tensor_model_parallel_size"] or "1") > 1)
        more.append(("model.sequence_parallel", sequence))
    devices = options.get("--num_gpus", "")
    return RunnerWords(
        recipe,
        (*overrides, *more),
        int(devices) if devices.isdecimal() else None,
        tuple(harmless),
        tuple(missed),
        benchmark,
        options,
    )


_FEATURES = frozenset({
    "--recompute_num_layers", "--recompute_modules", "--activation_offload_layers", "--use_megatron_fsdp",
    "--moe_a2a_overlap", "--cuda_graph_impl", "--use_tokendrop", "--first_k_dense_replace", "--nccl_ub",
    "--optimizer_type", "--tokenizer_type", "--vocab_size",
})  # fmt: skip


def _features(options: dict[str, str]) -> tuple[list[tuple[str, str]], list[str]]:
    """What switches of the performance launcher set, and those that no plan has a word for."""
    found: list[tuple[str, str]] = []
    if layers := options.get("--recompute_num_layers"):
        found += [
            ("model.recompute_granularity", "full"),
            ("model.recompute_method", "block"),
            ("model.recompute_num_layers", layers),
        ]
    if modules := options.get("--recompute_modules"):
        found += [("model.recompute_granularity", "selective"), ("model.recompute_modules", f"[{modules}]")]
    if _on(options.get("--use_megatron_fsdp")):
        found += [
            ("ddp.use_megatron_fsdp", "true"),
            ("ddp.data_parallel_sharding_strategy", "optim_grads_params"),
        ]
    if _on(options.get("--moe_a2a_overlap")):
        found += [
            ("comm_overlap.overlap_moe_expert_parallel_comm", "true"),
            ("comm_overlap.delay_wgrad_compute", "true"),
        ]
    if layers := options.get("--activation_offload_layers"):
        found += [("model.cpu_offloading", "true"), ("model.cpu_offloading_num_layers", layers)]
    if options.get("--tokenizer_type") == "NullTokenizer":
        found += [
            ("tokenizer.tokenizer_type", "NullTokenizer"),
            ("tokenizer.vocab_size", options.get("--vocab_size", "32000")),
        ]
    named = ("--cuda_graph_impl", "--use_tokendrop", "--first_k_dense_replace", "--optimizer_type")
    missed = [f"{name} {options[name]}" for name in named if options.get(name) not in (None, "none", "adam")]
    return found, missed


def _on(text: str | None) -> bool:
    return text is not None and text.lower() in ("", "true", "1", "t", "yes", "y")


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options with their values, and ``path=value`` words; a list of values is one text."""
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if not word.startswith("-") or _is_number(word):
            name, _, value = word.partition("=")
            yield name, value
            continue
        name, equals, value = word.partition("=")
        values = [value] if equals else []
        while not equals and place < len(words) and _is_value(words[place]):
            values.append(words[place])
            place += 1
        yield _SHORT.get(name, name), ",".join(values)


def _is_number(word: str) -> bool:
    return re.match(r"-?\d", word) is not None


def _is_value(word: str) -> bool:
    override = re.match(r"[+~]*[a-z_]+(?:\.[a-z_0-9]+)+=", word)
    return (not word.startswith("-") or _is_number(word)) and override is None


def _recipe(options: dict[str, str], where: str) -> tuple[Recipe, bool]:
    """The recipe, and whether a benchmark's rules hold (the batch grows with the replicas)."""
    name = options.get("--recipe")
    if name is None and "--model" in options:
        name = f"{options['--model']}_{_MODES.get(options.get('--mode', 'pretrain'), 'pretrain')}_config"
    if name is not None:
        found = recipe_named(name, BENCHMARK if re.search(r"_\d+gpu_", name) else LIBRARY)
        if found is None:
            raise unknown_recipe(name, where)
        return found, found.package == BENCHMARK
    family, model = options.get("--model_family_name", ""), options.get("--model_recipe_name", "")
    if not model:
        model = f"{family}_{options.get('--model_size', '')}".rstrip("_")
    return _benchmark(model, options, where), True


def _benchmark(model: str, options: dict[str, str], where: str) -> Recipe:
    """The benchmark recipe of a model, task, number of devices, device and type; else the largest or default one."""
    model, task = model.lower(), options.get("--task", "pretrain")
    device = options.get("--gpu", "").lower()
    if not device:
        raise DocumentInvalid("the launcher asks for the device", where=where, hint="say it: -- -g h100")
    kind = _DTYPES.get(options.get("--compute_dtype", "bf16").lower(), options.get("--compute_dtype", ""))
    variant = options.get("--config_variant", "").lower()
    end = f"_{variant}" if variant and variant not in ("v1", "v2") else ""
    pattern = re.compile(rf"{re.escape(model)}_{task}_(\d+)gpu_{device}_{kind}{re.escape(end)}_config\Z")
    held = sorted((int(match[1]), name) for name in recipe_names(BENCHMARK) if (match := pattern.match(name)))
    if not held:
        others = [name for name in recipe_names(BENCHMARK) if name.startswith(f"{model}_")]
        hint = f"recipes of it: {', '.join(others[:6])}" if others else "Megatron-Bridge 0.6.2 has none of this model"
        raise DocumentInvalid(f"no recipe for {model} {task} on {device} in {kind}", where=where, hint=hint)
    count = options.get("--num_gpus", "")
    exact = [name for devices, name in held if str(devices) == count]
    smallest = _SMALLER.match(held[0][1]) is not None
    chosen = exact[0] if exact else held[0][1] if smallest else held[-1][1]
    found = recipe_named(chosen, BENCHMARK)
    if found is None:
        raise unknown_recipe(chosen, where)
    return found


def unknown_recipe(name: str, where: str) -> DocumentInvalid:
    """The error for a name that no recipe of the release has."""
    stem = name.split("_", maxsplit=1)[0]
    close = [each for each in recipe_names(LIBRARY) if each.startswith(stem) and not re.search(r"\d+gpu_", each)]
    hint = f"its recipes of {stem}: {', '.join(close[:6])}" if close else "name one of its recipes"
    return DocumentInvalid(f"Megatron-Bridge 0.6.2 has no recipe {name}", where=where, hint=hint)
