"""NeMo 1 configurations: YAML with ``trainer`` and ``model`` (NeMo-Framework-Launcher's too), said in Bridge's words.

From NVIDIA/NeMo v2.4.0 ``nemo/collections/nlp``: ``optim.name`` decides whether the optimizer is distributed
(parts/megatron_trainer_builder.py), ``activation`` ends in ``swiglu`` or ``geglu`` for gated units and ``bias`` is that
of all linear layers (models/language_modeling/megatron_gpt_model.py), ``grad_sync_dtype`` is the gradients' format
(megatron_base_model.py), GPT-2's tokenizer is called ``GPT2BPETokenizer``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.backends.megatron_bridge.job import Beside, job_of_settings
from planner.backends.megatron_bridge.settings import MODEL_FIELDS, Settings
from planner.backends.rules.settings import flat_settings, literal
from planner.errors import DocumentInvalid
from planner.model.megatron_args import LaunchJob
from profiles.safe_yaml import load_yaml_text

_NAMES = {
    "micro_batch_size": "train.micro_batch_size",
    "global_batch_size": "train.global_batch_size",
    "encoder_seq_length": "dataset.seq_length",
    "data.train_ds.max_seq_length": "dataset.seq_length",
    "rotary_percentage": "model.rotary_percent",
    "bias": "model.add_bias_linear",
    "activations_checkpoint_granularity": "model.recompute_granularity",
    "activations_checkpoint_method": "model.recompute_method",
    "activations_checkpoint_num_layers": "model.recompute_num_layers",
    "ub_tp_comm_overlap": "model.tp_comm_overlap",
    "optim.overlap_grad_sync": "ddp.overlap_grad_reduce",
    "optim.overlap_param_sync": "ddp.overlap_param_gather",
    "fp8_params": "mixed_precision.fp8_param_gather",
    "peft.lora_tuning.adapter_dim": "peft.dim",
    "make_vocab_size_divisible_by": "model.make_vocab_size_divisible_by",
}
_SAME = MODEL_FIELDS | {
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size",
    "context_parallel_size", "expert_model_parallel_size", "sequence_parallel", "moe_token_dispatcher_type",
    "moe_grouped_gemm", "cpu_offloading", "cpu_offloading_num_layers",
}  # fmt: skip
_DISTRIBUTED = ("mcore_distributed_optim", "distributed_fused_adam")
_MISSED = re.compile(
    r"model\.(?:fsdp$|rampup_batch_size|hidden_dropout|attention_dropout|ffn_dropout|fp8_(?!margin|interval|amax|hybrid"
    r"|e4m3|wgrad)|moe_(?!aux_loss_coeff|z_loss)|window|use_flash|transformer_engine|megatron_amp_O2|mcore_gpt|defer_embedding|seq_len_inter"
    r"|num_micro_batches_with_partial|activations_checkpoint_layers|enable_cuda_graph|apply_query_key_layer_scaling)"
)
"""What could change the run and has no word in plans; everything else that is left changes none."""
_HARMLESS_VALUES = {
    "use_flash": True, "transformer_engine": True, "megatron_amp_O2": True, "mcore_gpt": True, "ffn_dropout": 0.0,
    "hidden_dropout": 0.0, "attention_dropout": 0.0,
}  # fmt: skip
_TARGETS = {
    "attention_qkv": ["linear_qkv"],
    "attention_dense": ["linear_proj"],
    "mlp_fc1": ["linear_fc1"],
    "mlp_fc2": ["linear_fc2"],
    "attention": ["linear_qkv", "linear_proj"],
    "mlp": ["linear_fc1", "linear_fc2"],
    "all": ["linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"],
}


def is_nemo_yaml(text: str) -> bool:
    """Whether a YAML file has the trainer and the model of NeMo 1."""
    tops = set(re.findall(r"^(\w+):", text, re.MULTILINE))
    return {"trainer", "model"} <= tops and re.search(r"^  tensor_model_parallel_size:", text, re.MULTILINE) is not None


def job_of_yaml(text: str, where: str, words: Sequence[str], beside: Beside, name: str = "nemo") -> LaunchJob:
    """The run of a configuration with ``path=value`` words over it.  Raises DocumentInvalid, FindingsInvalid."""
    data = load_yaml_text(text, where)
    if not isinstance(data, dict):
        raise DocumentInvalid("no sections are in it", where=where)
    values = {path: _plain(value) for path, value in flat_settings(data)}
    for word in words:
        path, equals, value = word.lstrip("+~").partition("=")
        if equals and "." in path:
            values[path] = _plain(literal(value.strip("'\"")))
    _resolve(values, where)
    rows = list(_rows(values, where))
    settings = Settings(
        {bridge: value for _, bridge, value in rows if bridge},
        frozenset(bridge for path, bridge, value in rows if bridge and path and value is not None),
        where,
        name,
        {},
        {bridge: value for path, bridge, value in rows if bridge and path and value is not None},
        {bridge: path for path, bridge, _ in rows if bridge and path},
    )
    known = {path for path, _, _ in rows}
    left = [(path, value) for path, value in values.items() if path not in known and value not in (None, False)]
    missed = tuple(f"{path}={value}" for path, value in left if _matters(path, value))
    harmless = tuple(f"{path}={value}" for path, value in left if not _matters(path, value))
    devices = beside.devices or _devices(values, where)
    beside = replace(beside, devices=devices, no_influence=harmless, not_modelled=missed, software="nemo")
    return job_of_settings(settings, where, beside)


def _matters(path: str, value: Any) -> bool:
    stem = next((held for name, held in _HARMLESS_VALUES.items() if path.startswith(f"model.{name}")), None)
    return _MISSED.match(path) is not None and (stem is None or value != stem)


def _plain(value: Any) -> Any:
    return None if value in ("null", "None", {}) else value


def _resolve(values: dict[str, Any], where: str) -> None:
    """``${model.x}`` and products of such, as Hydra gives them; others stay as they are written."""
    for path, value in values.items():
        reference = re.fullmatch(r"\$\{\.?([\w.]+)\}", value) if isinstance(value, str) else None
        if reference is not None:
            held = values.get(reference[1], values.get(f"{path.rpartition('.')[0]}.{reference[1]}"))
            if held is None and path.startswith(("model.", "trainer.")) and _matters(path, value):
                raise DocumentInvalid(f"{path} is {value}, which the file does not say", where=where)
            values[path] = held
    for path, value in values.items():
        product = re.fullmatch(r"\$\{multiply:\s*(.+)\}", value) if isinstance(value, str) else None
        if product is not None:
            values[path] = _product(product[1], path, values)


def _product(text: str, path: str, values: Mapping[str, Any]) -> Any:
    """A product of numbers and fields; the text itself where one of them is not a number."""
    result = 1
    for part in re.sub(r"[${}]", "", text).split(","):
        name = part.strip()
        above = f"{path.rpartition('.')[0]}{name}" if name.startswith(".") else name
        held = int(name) if name.isdecimal() else values.get(above)
        if not isinstance(held, int):
            return "${" + text + "}"
        result *= held
    return result


def _rows(values: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, Any]]:
    if values.get("model.fsdp"):
        raise DocumentInvalid(
            "model.fsdp: NeMo 1 runs PyTorch's FSDP, which the planner has no model of", where=where,
            hint="say the run: --model M --backend pytorch-fsdp --strategy K=V",
        )  # fmt: skip
    yield "", "model.provider", "GPTModelProvider"
    for path, value in values.items():
        section, _, name = path.partition(".")
        if section != "model":
            continue
        if name in _NAMES:
            yield path, _NAMES[name], value
        elif name == "normalization" and isinstance(value, str):
            yield path, "model.normalization", {"rmsnorm": "RMSNorm"}.get(value.lower(), "LayerNorm")
        elif name in _SAME:
            yield path, f"model.{name}", value
        elif name == "activation" and isinstance(value, str):
            yield path, "model.gated_linear_unit", value.endswith(("swiglu", "geglu", "reglu"))
            if value == "squared-relu":
                yield "", "model.activation_func", "squared_relu"
    if values.get("model.encoder_seq_length") is None and values.get("model.data.seq_length") is not None:
        yield "model.data.seq_length", "dataset.seq_length", values["model.data.seq_length"]
    yield from _optimizer(values)
    yield from _precision(values, where)
    yield from _tokenizer(values)
    yield from _adapters(values, where)


def _optimizer(values: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    name = str(values.get("model.optim.name"))
    yield "model.optim.name", "optimizer.use_distributed_optimizer", name in _DISTRIBUTED
    yield "", "optimizer.optimizer", "sgd" if name == "sgd" else "adam"
    wide = values.get("model.optim.grad_sync_dtype") not in ("bf16", "bfloat16", "16-mixed", "bf16-mixed")
    yield "model.optim.grad_sync_dtype", "mixed_precision.grad_reduce_in_fp32", wide


def _precision(values: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, Any]]:
    kind = str(values.get("trainer.precision", "32")).removesuffix("-mixed").removesuffix("-true")
    if kind not in ("bf16", "16", "32"):
        raise DocumentInvalid(f"trainer.precision {kind!r} is not known", where=where, hint="write bf16, 16 or 32")
    if kind != "32":
        yield "trainer.precision", "mixed_precision.bf16" if kind == "bf16" else "mixed_precision.fp16", True
    if values.get("model.fp8"):
        yield "model.fp8", "mixed_precision.fp8", "e4m3" if values.get("model.fp8_e4m3") else "hybrid"


def _tokenizer(values: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """``tokenizer.library``, ``type`` and files."""
    kind = str(values.get("model.tokenizer.type"))
    file = values.get("model.tokenizer.model") or values.get("model.tokenizer.vocab_file")
    if kind == "GPT2BPETokenizer":
        yield "model.tokenizer.type", "tokenizer.tokenizer_model", "gpt2"
    elif values.get("model.tokenizer.library") == "huggingface":
        yield "model.tokenizer.type", "tokenizer.tokenizer_model", kind
    else:
        yield "model.tokenizer.model", "tokenizer.tokenizer_model", file


def _adapters(values: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, Any]]:
    scheme = values.get("model.peft.peft_scheme")
    if scheme is None:
        return
    if scheme != "lora":
        raise DocumentInvalid(f"model.peft.peft_scheme {scheme!r} is not described", where=where, hint="lora is")
    yield "model.peft.peft_scheme", "peft", "LoRA"
    said = values.get("model.peft.lora_tuning.target_modules") or ["attention_qkv"]
    modules = [module for each in said for module in _TARGETS.get(str(each), [str(each)])]
    yield "model.peft.lora_tuning.target_modules", "peft.target_modules", modules


def _devices(values: Mapping[str, Any], where: str) -> int | None:
    devices, nodes = values.get("trainer.devices"), values.get("trainer.num_nodes")
    if nodes is None:
        return None
    if not isinstance(devices, int) or not isinstance(nodes, int):
        raise DocumentInvalid("trainer.devices is not a number", where=where, hint="say it: --devices N")
    return devices * nodes
