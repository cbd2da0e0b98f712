"""The names that NeMo 2 has for what Megatron-Bridge calls otherwise: one recipe object as Bridge's paths and values.

From NVIDIA/NeMo v2.4.0: the strategy's degrees go to the model (lightning/pytorch/strategies/megatron_strategy.py:412),
``fsdp="megatron"`` is Megatron-FSDP of the kind that ``ddp`` says (:371), the optimizer decides whether it is
distributed (:440), a precision's fields go over those of ``ddp`` (:436), ``MegatronCommOverlapCallback`` is Bridge's
``comm_overlap`` and ``DeepEPCallback`` sets the dispatcher (callbacks/deepep.py:50).  Pre-training takes the
tokenizer of the data (collections/llm/api.py:187), which is GPT-2's unless one is given; fine-tuning
that of the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.backends.nemo.recipe_table import config_fields
from planner.model.python_values import Open, Ref, Thing, plain

_PRECISIONS: dict[str, dict[str, Any]] = {
    "bf16_mixed": {"bf16": True, "grad_reduce_in_fp32": True},
    "fp16_mixed": {"fp16": True, "grad_reduce_in_fp32": False},
}
_EIGHT_BIT: dict[str, dict[str, Any]] = {
    "fp8_mixed": {"fp8": "hybrid", "fp8_recipe": "delayed"},
    "mxfp8_mixed": {"fp8": "hybrid", "fp8_recipe": "mxfp8"},
    "fp8_current_scaling_mixed": {"fp8": "hybrid", "fp8_recipe": "tensorwise"},
    "fp8_subchannel_scaling_mixed": {"fp8": "hybrid", "fp8_recipe": "blockwise"},
}
for _name, _fields in _EIGHT_BIT.items():
    for _base in ("bf16", "fp16"):
        gather = {"fp8_param_gather": _fields["fp8_recipe"] != "blockwise"}
        _PRECISIONS[f"{_base}_with_{_name}"] = {**_PRECISIONS[f"{_base}_mixed"], **_fields, **gather}
_PRECISIONS["nemotron_h_bf16_with_fp8_current_scaling_mixed"] = _PRECISIONS["bf16_with_fp8_current_scaling_mixed"]
"""collections/llm/recipes/precision/mixed_precision.py."""
_KINDS = {"bf16-mixed": "bf16", "bf16": "bf16", "16-mixed": "fp16", "16": "fp16"}
_OF_STRATEGY = {
    "num_distributed_optimizer_instances": "ddp.num_distributed_optimizer_instances",
    "use_tp_pp_dp_mapping": "dist.use_tp_pp_dp_mapping",
}
_FORMATS = frozenset({"bf16", "fp16", "fp8", "fp8_recipe", "fp8_param_gather", "fp4", "grad_reduce_in_fp32"})
_DEGREES = frozenset({
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size",
    "microbatch_group_size_per_vp_stage", "context_parallel_size", "sequence_parallel", "expert_model_parallel_size",
    "expert_tensor_parallel_size", "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage",
    "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split", "pipeline_model_parallel_layout",
})  # fmt: skip
_OF_DATA = {
    "seq_length": "dataset.seq_length",
    "global_batch_size": "train.global_batch_size",
    "micro_batch_size": "train.micro_batch_size",
}
_GPT2_DATA = ("MockDataModule", "PreTrainingDataModule", "")
"""Data whose tokenizer is GPT-2's unless one is given (gpt/data/mock.py:83, pre_training.py:233)."""
_PACKING = "data.packed_sequence_specs"
_GPT2 = "gpt2"
_NO_DECODER = ("Gemma2", "Gemma3", "Llama4", "SSM", "Base", "NVIDIAMamba", "NemotronH", "Hyena", "T5", "Bert", "Mega",
               "Llama31NemotronUltra", "Llama33NemotronSuper", "Llama31NemotronNano", "CodecMamba", "HF")  # fmt: skip
"""Families of classes with layers that Megatron-LM's arguments do not say."""
_GEMMA: dict[str, dict[str, Any]] = {
    "Gemma2Config": {"model_type": "gemma2"},
    "Gemma3Config": {"model_type": "gemma3_text", "sliding_window_pattern": 6},
}
"""Of those, classes whose fields are Hugging Face's under other names, and what all of a family have
(gpt/model/gemma2.py:85-108, gemma3.py:124-160: five layers with a window, then one without)."""
_OF_HF = {
    "num_layers": "num_hidden_layers", "hidden_size": "hidden_size", "ffn_hidden_size": "intermediate_size",
    "num_attention_heads": "num_attention_heads", "num_query_groups": "num_key_value_heads", "kv_channels": "head_dim",
    "vocab_size": "vocab_size", "seq_length": "max_position_embeddings",
}  # fmt: skip
_BUILT_IN = {"NemotronHConfig8B": "nemotron-h-8b"}
"""Classes of the same sizes as a built-in model."""

Row = tuple[str, str, Any]
"""(path in NeMo, path in Bridge or "" where it has none, value)."""


def rows_of(config: Thing) -> Iterator[Row]:
    """All that a recipe object says, each with Bridge's path."""
    trainer, data, model = (_section(config, name) for name in ("trainer", "data", "model"))
    yield from _trainer(trainer)
    for name, value in _optimizer(config.fields.get("optim")).items():
        yield f"optim.config.{name}", f"optimizer.{name}", plain(value)
    for name, value in data.fields.items():
        if not isinstance(value, Thing):
            yield f"data.{name}", _OF_DATA.get(name, ""), plain(value)
        elif name == "packed_sequence_specs":
            yield _PACKING, "dataset.packed_sequence_specs", True
    yield from _model(_section(model, "config", model.positional[:1]))
    yield from _tokenizer(config, model, data)
    peft = config.fields.get("peft")
    if isinstance(peft, Thing):
        yield "peft", "peft", peft.name.rpartition(".")[2]
        yield from ((f"peft.{name}", f"peft.{name}", plain(value)) for name, value in peft.fields.items())
    for name, value in _section(config, "arguments").fields.items():
        yield name, "", plain(value)


def _optimizer(optim: Any) -> dict[str, Any]:
    """The optimizer's fields; one that is made by a function of another file stays open."""
    if optim is None:
        return {"use_distributed_optimizer": True}  # gpt/model/base.py: GPTModel.__init__
    own = optim.fields if isinstance(optim, Thing) else {}
    held = own.get("config", (optim.positional or [None])[0] if isinstance(optim, Thing) else None)
    fields = dict(held.fields) if isinstance(held, Thing) else {}
    name = optim.name.rpartition(".")[2] if isinstance(optim, Thing) else ""
    if name == "distributed_fused_adam_with_cosine_annealing":  # recipes/optim/adam.py:24
        return {"optimizer": "adam", "use_distributed_optimizer": True, **fields}
    if isinstance(optim, Thing) and name in ("", "MegatronOptimizerModule") and not isinstance(held, (Open, Ref)):
        return fields
    text = optim.text if isinstance(optim, Open) else f"{name}(...)"
    return {"use_distributed_optimizer": Open(text, getattr(optim, "line", 0))}


def said_paths(config: Thing) -> set[str]:
    """NeMo's paths that a script set, those of callbacks by their class."""
    found = set(config.set_by_script())
    callbacks = _section(config, "trainer").fields.get("callbacks")
    for each in callbacks if isinstance(callbacks, list) else ():
        if isinstance(each, Thing):
            name = each.name.rpartition(".")[2]
            found |= {f"trainer.callbacks.{name}.{field}" for field in each.said}
            found.add(f"trainer.callbacks.{name}")
    return found


def _section(config: Thing, name: str, otherwise: list[Any] | None = None) -> Thing:
    held = config.fields.get(name, (otherwise or [None])[0])
    return held if isinstance(held, Thing) else Thing("")


def _trainer(trainer: Thing) -> Iterator[Row]:
    strategy, plugins = trainer.fields.get("strategy"), trainer.fields.get("plugins")
    for name, value in trainer.fields.items():
        if name not in ("strategy", "plugins", "callbacks"):
            yield f"trainer.{name}", "", plain(value)
    if isinstance(strategy, (Open, Ref)) or (isinstance(strategy, Thing) and _unread(strategy, "MegatronStrategy")):
        text = strategy.text if isinstance(strategy, Open) else strategy.name
        yield "trainer.strategy", "model.tensor_model_parallel_size", Open(text, getattr(strategy, "line", 0))
    for name, value in _section(trainer, "strategy").fields.items():
        yield from _strategy(name, value)
    for each in plugins if isinstance(plugins, list) else [plugins]:
        yield from _precision(each)
    callbacks = trainer.fields.get("callbacks")
    for each in callbacks if isinstance(callbacks, list) else ():
        if isinstance(each, Thing):
            yield from _callback(each)


def _unread(thing: Thing, kind: str) -> bool:
    return bool(thing.name) and not thing.name.endswith(kind)


def _strategy(name: str, value: Any) -> Iterator[Row]:
    path = f"trainer.strategy.{name}"
    if name == "ddp" and isinstance(value, Thing):
        for each, held in value.fields.items():
            if each in ("use_custom_fsdp", "use_megatron_fsdp"):
                yield f"{path}.{each}", "ddp.use_megatron_fsdp", plain(held)
            elif each != "use_distributed_optimizer":
                yield f"{path}.{each}", f"ddp.{each}", plain(held)
        if "data_parallel_sharding_strategy" not in value.fields:
            yield f"{path}.data_parallel_sharding_strategy", "ddp.data_parallel_sharding_strategy", "no_shard"
    elif name == "ddp" and value == "pytorch":
        yield path, "", value
    elif name == "fsdp":
        yield path, "ddp.use_megatron_fsdp", value == "megatron" or (value if isinstance(value, Open) else False)
    else:
        yield path, _OF_STRATEGY.get(name, f"model.{name}" if name in _DEGREES else ""), plain(value)


def _precision(plugin: Any) -> Iterator[Row]:
    if not isinstance(plugin, Thing):
        if isinstance(plugin, (Open, Ref)):
            yield "trainer.plugins", "mixed_precision.bf16", plugin
        return
    fields = dict(_PRECISIONS.get(plugin.name.rpartition(".")[2], {})) | plugin.fields
    kind = fields.pop("precision", None)
    if isinstance(kind, str) and kind in _KINDS:
        fields[_KINDS[kind]] = True
    for name, value in fields.items():
        path = "fp8_param_gather" if name == "fp8_params" else name
        yield f"trainer.plugins.{name}", f"mixed_precision.{path}" if path in _FORMATS else "", plain(value)


def _callback(callback: Thing) -> Iterator[Row]:
    name = callback.name.rpartition(".")[2]
    path = f"trainer.callbacks.{name}"
    if name == "MegatronCommOverlapCallback":
        yield path, "comm_overlap", True
        yield "", "comm_overlap.present", True
        for each, value in callback.fields.items():
            yield f"{path}.{each}", f"comm_overlap.{each}", plain(value)
    elif name == "DeepEPCallback":
        yield path, "model.moe_token_dispatcher_type", "flex"
        yield path, "model.moe_flex_dispatcher_backend", "deepep"
    else:
        yield path, "", True


def _model(config: Thing) -> Iterator[Row]:
    """The fields of the model's class, and what is set on them."""
    name = config.name.rpartition(".")[2]
    fields = None if name.startswith(_NO_DECODER) else config_fields(name)
    provider = _BUILT_IN.get(name, name) or "a model that it does not name"
    if (gemma := _gemma(name)) is not None:
        yield "model.config", "model.hf_config", gemma
    if fields is not None:
        provider = "MLAModelProvider" if fields.get("multi_latent_attention") else "GPTModelProvider"
    yield "model.config", "model.provider", provider
    for each, held in {**(fields or {}), **config.fields}.items():
        value = plain(held)
        if each == "activation_func":
            value = str(value).strip("<>").rpartition(".")[2]
        yield f"model.config.{each}", f"model.{each}", value


def _gemma(name: str) -> dict[str, Any] | None:
    """The Hugging Face configuration with the fields of a Gemma class of some size; None for any other class."""
    family = next((found for prefix, found in _GEMMA.items() if name.startswith(prefix)), None)
    fields = config_fields(name)
    if family is None or fields is None or not fields.get("num_layers"):
        return None
    window = fields.get("window_size")
    sizes = {hugging: fields[own] for own, hugging in _OF_HF.items() if fields.get(own) is not None}
    return {**family, **sizes, "sliding_window": window[0] if isinstance(window, list) else window}


def _tokenizer(config: Thing, model: Thing, data: Thing) -> Iterator[Row]:
    """The tokenizer that decides the vocabulary."""
    asked = config.fields.get("tokenizer", "data")
    named = {"data": data.fields.get("tokenizer"), "model": model.fields.get("tokenizer")}
    held = named.get(asked) if isinstance(asked, str) else asked
    path = f"{asked if isinstance(asked, str) else 'recipe'}.tokenizer"
    if held is None and asked == "model":
        place = _section(_section(config, "resume"), "restore_config").fields.get("path")
        if isinstance(place, str):
            yield "resume.restore_config.path", "tokenizer.tokenizer_model", place
        return
    if held is None and data.name.rpartition(".")[2] in _GPT2_DATA:
        yield path, "tokenizer.tokenizer_model", _GPT2
        return
    if not isinstance(held, Thing):
        yield path, "tokenizer.tokenizer_model", plain(held)
        return
    fields = held.fields
    if fields.get("library") == "null":
        size = fields.get("vocab_size")
        yield path, "tokenizer.tokenizer_type", "NullTokenizer"
        # common/tokenizers/null_tokenizer.py: one more, for the end of a document
        yield path, "tokenizer.vocab_size", size + 1 if isinstance(size, int) else size
        return
    name = fields.get("pretrained_model_name", fields.get("model_name", (held.positional or [None])[0]))
    name = fields.get("tokenizer_model") or fields.get("model_path") or name
    yield path, "tokenizer.tokenizer_model", _GPT2 if name == "GPT2BPETokenizer" else plain(name)
