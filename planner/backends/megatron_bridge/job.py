"""The training run that a configuration of Megatron-Bridge describes: model, work, strategy, and its three lists.

A configuration is said in the words of Megatron-LM (``fields``), so that one reader reads both.  What differs, from
megatron-bridge 0.6.2: ``comm_overlap`` turns the overlaps of gradients and parameters on with a distributed optimizer
and more than one replica (training/comm_overlap.py, ``_get_optimizer_overlap_cfgs``); the length of the dataset is the
model's (scripts/training/recipe_runner.py, ``sync_model_dataset_sequence_length``); the tokenizer decides the
vocabulary where ``tokenizer.use_tokenizer_vocab_size`` says so (training/setup.py:681).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from planner.backends.megatron_bridge.job_adapters import adapters_of
from planner.backends.megatron_bridge.job_lists import lists_of
from planner.backends.megatron_bridge.job_model import model_words
from planner.backends.megatron_bridge.settings import Settings
from planner.errors import DocumentInvalid
from planner.model.megatron_args import LaunchJob, megatron_model
from planner.model.megatron_flags import MegatronFlags
from planner.model.megatron_strategy import derive, read_strategy, read_workload
from planner.model.megatron_vocabulary import Vocabulary, published_tokenizer, read_vocabulary
from planner.model.shell.scope import Undecided
from planner.model.spec import ModelSpec

_FP8 = ("mixed_precision.fp8", "model.fp8")
_FORMATS = {"bfloat16": "bf16", "float32": "fp32", "float16": "fp16", "uint8": "fp8"}


@dataclass(frozen=True, slots=True)
class Beside:
    """What is said beside a configuration.

    ``canonical``: devices of a benchmark's recipe, whose batch grows with the replicas.
    """

    devices: int | None = None
    vocab_size: int | None = None
    model: ModelSpec | None = None
    canonical: int | None = None
    undecided: tuple[Undecided, ...] = ()
    taken_as_unset: tuple[tuple[str, int], ...] = ()
    no_influence: tuple[str, ...] = ()
    not_modelled: tuple[str, ...] = ()
    launches: int = 1
    software: str = "megatron-bridge"


def job_of_settings(settings: Settings, where: str, beside: Beside) -> LaunchJob:
    """The run of a configuration.  Raises DocumentInvalid, FindingsInvalid."""
    adapters = adapters_of(settings, where)
    words, spec, told = model_words(settings, where, beside.model)
    vocabulary_key, vocabulary_words = _vocabulary_words(settings, spec)
    words += vocabulary_words
    words += _run_words(settings, where)
    flags = MegatronFlags(words, where)
    workload = read_workload(flags)
    workload["sequence_length"] = settings.number("dataset.seq_length", "dataset.sequence_length", "model.seq_length")
    strategy, chunk_layers, _ = read_strategy(flags)
    vocabulary = read_vocabulary(flags, int(strategy.get("tp", 1)), beside.vocab_size)
    if beside.vocab_size is None:
        vocabulary = replace(vocabulary, told=vocabulary.told.replace("--vocab-size", vocabulary_key))
    model = _model(flags, spec, settings, vocabulary, workload)
    flags.finish()
    if adapters is not None:
        workload["training"] = adapters.training
        told += adapters.told(model)
    strategy |= _switches(settings, strategy, beside.devices)
    told += _scaled(workload, strategy, settings, beside)
    told += list(derive(flags, model, workload, strategy, beside.devices))
    return LaunchJob(
        model,
        {name: value for name, value in workload.items() if value is not None},
        strategy,
        beside.devices,
        chunk_layers=chunk_layers,
        arguments=lists_of(settings, beside.no_influence, beside.not_modelled),
        vocabulary=vocabulary,
        assumed=tuple(told),
        undecided=beside.undecided,
        taken_as_unset=beside.taken_as_unset,
        launches=beside.launches,
        software=beside.software,
        megatron_defaults=True,
    )


def _model(
    flags: MegatronFlags,
    spec: ModelSpec | None,
    settings: Settings,
    vocabulary: Vocabulary,
    workload: Mapping[str, Any],
) -> ModelSpec:
    """The model that is named, with its vocabulary; of sizes that are said, the model that they make."""
    if spec is not None:
        return spec.model_copy(update={"vocab_size": vocabulary.padded})
    try:
        return megatron_model(flags, settings.name, vocabulary.padded, workload.get("sequence_length"))
    except ValidationError as error:
        flags.finish()
        message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise DocumentInvalid(f"the model is not possible: {message}", where=flags.where) from None


def _vocabulary_words(settings: Settings, spec: ModelSpec | None) -> tuple[str, list[str]]:
    """The key that says the size, and its words: the tokenizer's, padded, where it decides; else the model's own."""
    of_model, of_tokenizer = "model.vocab_size", "tokenizer.vocab_size"
    preset = settings.value(of_model) or (spec.vocab_size if spec is not None else None)
    kind = settings.value("tokenizer.tokenizer_type")
    multiple = str(settings.value("model.make_vocab_size_divisible_by") or 128)
    padded = ["--make-vocab-size-divisible-by", multiple]
    if preset is not None and not settings.value("tokenizer.use_tokenizer_vocab_size"):
        return of_model, ["--vocab-size", str(preset), "--no-pad-vocab-size"]  # training/setup.py:295: no padding
    if kind == "NullTokenizer" and settings.value(of_tokenizer) is not None:
        return of_tokenizer, ["--vocab-size", str(settings.value(of_tokenizer)), *padded]
    path = settings.value("tokenizer.tokenizer_model") or settings.value("model.hf")
    if preset is not None and published_tokenizer(str(path or "")) is None:
        return of_model, ["--vocab-size", str(preset), *padded]
    named = ["--tokenizer-type", "HuggingFaceTokenizer", *(["--tokenizer-model", str(path)] if path else [])]
    return "tokenizer.tokenizer_model", [*named, *padded]


def _run_words(settings: Settings, where: str) -> list[str]:
    """Everything but the model in Megatron-LM's arguments."""
    words = settings.words(model=False)
    layout = settings.value("model.pipeline_model_parallel_layout")
    virtual = settings.value("model.virtual_pipeline_model_parallel_size")
    if layout is not None:
        moved = {"model.pipeline_model_parallel_size", "model.virtual_pipeline_model_parallel_size"} & settings.said
        if moved and "model.pipeline_model_parallel_layout" not in settings.said:
            raise DocumentInvalid(
                "the recipe's own layout of its stages is made anew for another number of stages",
                where=where,
                hint="say it: model.pipeline_model_parallel_layout=..., or null for an even split",
            )
        words += ["--pipeline-model-parallel-layout", str(layout)]
    elif virtual is not None and int(virtual) > 1:
        words += ["--num-virtual-stages-per-pipeline-rank", str(virtual)]
    for path, flag in (
        ("model.account_for_embedding_in_pipeline_split", "--account-for-embedding-in-pipeline-split"),
        ("model.account_for_loss_in_pipeline_split", "--account-for-loss-in-pipeline-split"),
    ):
        words += [flag] if settings.value(path) and layout is None else []
    for path, flag in (
        ("model.num_layers_in_first_pipeline_stage", "--decoder-first-pipeline-num-layers"),
        ("model.num_layers_in_last_pipeline_stage", "--decoder-last-pipeline-num-layers"),
    ):
        count = settings.value(path)
        words += [flag, str(count)] if count is not None and layout is None else []
    settings.value("mixed_precision")  # a precision that is not known is asked for
    if settings.value("mixed_precision.fp4"):
        words += ["--bf16", "--fp4-format", str(settings.value("mixed_precision.fp4"))]
    elif any(settings.value(path) for path in _FP8):
        words += ["--bf16", "--fp8-format", str(settings.value(*_FP8) or "e4m3")]
        recipe = settings.value("mixed_precision.fp8_recipe", "model.fp8_recipe")
        words += [] if recipe is None else ["--fp8-recipe", str(recipe)]
    else:
        words += ["--fp16"] if settings.value("mixed_precision.fp16") else ["--bf16"]
    if settings.value("mixed_precision.grad_reduce_in_fp32", "ddp.grad_reduce_in_fp32") is False:
        words.append("--grad-reduce-in-bf16")
    if settings.value("optimizer.use_precision_aware_optimizer"):
        words.append("--use-precision-aware-optimizer")
        for name in ("exp_avg_dtype", "exp_avg_sq_dtype", "main_params_dtype"):
            kind = str(settings.value(f"optimizer.{name}")).removeprefix("torch.")
            words += [f"--{name.replace('_', '-')}", _FORMATS.get(kind, "fp32")]
    return words


def _switches(settings: Settings, strategy: Mapping[str, Any], devices: int | None) -> dict[str, Any]:
    """Overlaps and replicas, as Bridge decides them when it starts."""
    tp, found = strategy.get("tp", 1), dict[str, Any]()
    block = tp * strategy.get("pp", 1) * strategy.get("cp", 1)
    several = devices is None or devices > block
    sets = settings.has_section("comm_overlap") and settings.value(
        "ddp.use_distributed_optimizer", "optimizer.use_distributed_optimizer"
    )
    for name in ("overlap_grad_reduce", "overlap_param_gather"):
        asked = settings.value(f"comm_overlap.{name}") if sets else None
        if asked is None:
            asked = several if sets else bool(settings.value(f"ddp.{name}"))
        found[name] = bool(asked)
    tensor = settings.value("comm_overlap.tp_comm_overlap")
    if tensor is None:
        tensor = settings.value("model.tp_comm_overlap")
    found["overlap_tp"] = bool(tensor) and tp > 1 and bool(strategy.get("sp"))
    if settings.value("comm_overlap.overlap_moe_expert_parallel_comm"):
        found["overlap_ep"] = True
    if settings.value("ddp.use_megatron_fsdp", "dist.use_megatron_fsdp"):
        instances = settings.value("ddp.num_distributed_optimizer_instances") or 1
        if int(instances) > 1:
            found["dp_replicate"] = int(instances)
    return found


def _scaled(workload: dict[str, Any], strategy: Mapping[str, Any], settings: Settings, beside: Beside) -> list[str]:
    """A benchmark's batch on another number of replicas: as many samples a replica, unless the batch is said."""
    batch = workload.get("global_batch_size")
    if beside.canonical is None or beside.devices is None or batch is None:
        return []
    if "train.global_batch_size" in settings.said:
        return []
    before = settings.before
    block = 1
    for path in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"):
        block *= int(before.get(f"model.{path}") or 1)
    mine = strategy.get("tp", 1) * strategy.get("pp", 1) * strategy.get("cp", 1)
    old, new = beside.canonical // block, beside.devices // mine
    if not old or not new or old == new:
        return []
    workload["global_batch_size"] = batch * new // old
    return [f"global batch {batch * new // old:,}: the recipe's {batch:,} on {old} replicas, scaled to {new}"]


def with_devices(beside: Beside, launched: int | None, said: int | None, more: Sequence[Undecided] = ()) -> Beside:
    """What is said beside, with the launcher's devices where nobody says others."""
    return replace(beside, devices=said or launched, undecided=(*beside.undecided, *more))
