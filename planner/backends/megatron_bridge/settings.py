"""A configuration of Megatron-Bridge as paths and values, what a script said of it, and its words for Megatron-LM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.backends.megatron_bridge.fields import FIELDS, Field
from planner.backends.rules.settings import literal
from planner.errors import DocumentInvalid
from planner.model.python_values import Open, Thing, plain

MODEL_FIELDS = frozenset({
    "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "kv_channels", "num_query_groups",
    "kv_lora_rank", "q_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim", "softmax_type", "normalization",
    "layernorm_epsilon", "position_embedding_type", "rotary_base", "rotary_percent", "mtp_num_layers",
    "multi_latent_attention", "qk_layernorm", "gated_linear_unit", "add_qkv_bias", "add_bias_linear",
    "share_embeddings_and_output_weights", "window_size", "window_attn_skip_freq", "num_moe_experts",
    "moe_router_topk", "moe_ffn_hidden_size", "moe_shared_expert_intermediate_size", "moe_router_score_function",
    "moe_router_num_groups", "moe_router_group_topk", "moe_shared_expert_gate", "moe_layer_freq",
})  # fmt: skip
"""Fields of ``model`` that make another model."""
_OWN = frozenset({
    "--seq-length", "--bf16", "--fp16", "--fp8-format", "--fp8-recipe", "--fp4-format", "--fp4-recipe",
    "--grad-reduce-in-bf16",
    "--use-precision-aware-optimizer", "--overlap-grad-reduce", "--overlap-param-gather", "--tp-comm-overlap",
    "--overlap-moe-expert-parallel-comm", "--pipeline-model-parallel-layout", "--make-vocab-size-divisible-by",
    "--num-virtual-stages-per-pipeline-rank", "--cpu-offloading-num-layers",
})  # fmt: skip
"""Flags that the reader of a run decides itself."""
_PRECISIONS: dict[str, dict[str, Any]] = {
    "bf16_mixed": {"bf16": True},
    "fp16_mixed": {"fp16": True},
    "bf16_with_fp8_delayed_scaling_mixed": {"bf16": True, "fp8": "hybrid", "fp8_recipe": "delayed"},
    "bf16_with_fp8_current_scaling_mixed": {"bf16": True, "fp8": "hybrid", "fp8_recipe": "tensorwise"},
    "bf16_with_fp8_subchannel_scaling_mixed": {"bf16": True, "fp8": "hybrid", "fp8_recipe": "blockwise"},
    "bf16_with_mxfp8_mixed": {"bf16": True, "fp8": "e4m3", "fp8_recipe": "mxfp8"},
    "bf16_with_nvfp4_mixed": {"bf16": True, "fp4": "e2m1", "fp8_recipe": "nvfp4"},
}
"""Named recipes of ``training/mixed_precision.py``; all reduce gradients in fp32 unless another field says so."""


_MAY_BE_PLAIN = frozenset({"scheduler", "logger", "checkpoint", "rng", "dist", "validation", "profiling", "ddp"})
"""Sections that are whole with nothing said of them."""


@dataclass(slots=True)
class Settings:
    """``values``: of every path.  ``said``: paths that a script or command line set.  ``before``: the recipe's."""

    values: dict[str, Any]
    said: frozenset[str]
    where: str
    name: str = "megatron-bridge"
    before: Mapping[str, Any] = field(default_factory=dict)
    said_values: dict[str, Any] = field(default_factory=dict)
    """Paths that were set, with their last values, in the order of the script."""
    spoken: Mapping[str, str] = field(default_factory=dict)
    """Paths as the user writes them, where that is otherwise."""

    def value(self, *paths: str) -> Any:
        """The value of the first of the paths that is not None.  Raises DocumentInvalid for an open one."""
        for path in paths:
            found = self.values.get(path)
            section = self.values.get(path.partition(".")[0])
            if isinstance(section, Open):
                found = section
            if isinstance(found, Open):
                told = self.spoken.get(path, path)
                raise DocumentInvalid(
                    f"{told} is {found.text} (line {found.line}), which the text does not decide",
                    where=self.where,
                    hint=f"say it: -- {told}=VALUE",
                )
            if found is not None:
                return found
        return None

    def number(self, *paths: str) -> int | None:
        """A whole number, or None.  Raises DocumentInvalid."""
        found = self.value(*paths)
        if found is not None and (isinstance(found, bool) or not isinstance(found, int)):
            told = self.spoken.get(paths[0], paths[0])
            raise DocumentInvalid(f"{told} is {found!r}, not a whole number", where=self.where, hint="correct it")
        return found

    def has_section(self, name: str) -> bool:
        """Whether anything of a section is there."""
        return any(path.startswith(f"{name}.") for path in self.values)

    def words(self, *, model: bool) -> list[str]:
        """Megatron-LM's arguments of the fields that make the model, or of the others."""
        found: list[str] = []
        for each in FIELDS:
            name = each.paths[0].removeprefix("model.")
            if each.flag not in _OWN and (each.paths[0].startswith("model.") and name in MODEL_FIELDS) == model:
                found += words_of(each, self.value(*each.paths))
        if model and self.value("model.num_query_groups") not in (None, self.value("model.num_attention_heads")):
            found.append("--group-query-attention")
        return found


def words_of(each: Field, value: Any) -> list[str]:
    """One field's value as an argument with its values; nothing for what is not said."""
    value = plain(value)
    if value is None or value == []:
        return []
    if each.kind in ("true", "false"):
        return [each.flag] if value is (each.kind == "true") else []
    if each.flag == "--moe-layer-freq" and isinstance(value, list):
        return [each.flag, "[" + ",".join(map(str, value)) + "]"]
    if isinstance(value, list):
        return [each.flag, *(str(part) for part in value)]
    if value is True and each.flag.startswith("--recompute"):
        return []
    return [each.flag, str(value)]


def settings_of(config: Thing, overrides: Sequence[tuple[str, str]], where: str, name: str) -> Settings:
    """A configuration with overrides of a command line laid over it.  Raises DocumentInvalid."""
    before = dict(_flat(config))
    for path, text in overrides:
        _override(config, path, text, where)
    dataset = config.fields.get("dataset")
    if isinstance(dataset, Thing) and "sequence_length" in dataset.fields:
        # Two names of one field (training/config.py, GPTDatasetConfig).
        dataset.fields["seq_length"] = dataset.fields["sequence_length"]
    values = dict(_flat(config))
    said = list(dict.fromkeys((*config.set_by_script(), *(path for path, _ in overrides))))
    return Settings(values, frozenset(said), where, name, before, {path: values.get(path) for path in said})


def _override(config: Thing, path: str, text: str, where: str) -> None:
    below = config
    *sections, name = path.split(".")
    for section in sections:
        held = below.fields.get(section)
        if not isinstance(held, Thing):
            held = _sections_of(section, held)
            below.fields[section] = held
        below = held
    if not name:
        raise DocumentInvalid(f"{path!r} is no path of a setting", where=where, hint="write section.field=VALUE")
    value = literal(text.strip("'\""))
    if isinstance(value, str) and value.startswith("[") and value.endswith("]"):
        value = [literal(part.strip().strip("'\"")) for part in value[1:-1].split(",") if part.strip()]
    value = with_scheme(below.fields.get(name), value) if path == "peft" else value
    below.fields[name] = None if value == "null" else value


def _sections_of(section: str, held: Any) -> Thing:
    """What a path goes into: the fields of a named precision, the adapters that a recipe has, an empty section."""
    if held is not None and section == "mixed_precision":
        return _precision(held)
    found = _adapters(held) if section == "peft" else None
    return found if isinstance(found, Thing) else Thing("")


def _precision(held: Any) -> Thing:
    """A named precision as its fields; a call of its function likewise."""
    named = held.replaces if isinstance(held, Thing) and isinstance(held.replaces, str) else held
    name = named if isinstance(named, str) else named.name.rpartition(".")[2]
    if name not in _PRECISIONS:
        return held if isinstance(held, Thing) else Thing(str(name))
    fields: dict[str, Any] = {"grad_reduce_in_fp32": True, **_PRECISIONS[name]}
    found = Thing("", 0, [], fields)
    if isinstance(held, Thing):
        found.fields |= held.fields
        found.said = held.said
    return found


_SCHEMES = {"lora": "LoRA", "dora": "DoRA", "none": None}
"""``peft_scheme`` of recipes (recipes/utils/dataset_utils.py, default_peft_config)."""


def with_scheme(held: Any, scheme: Any) -> Any:
    """Adapters of another scheme: the recipes give ``lora`` and ``dora`` the same rank and modules."""
    if isinstance(held, Thing) and isinstance(scheme, str) and _SCHEMES.get(scheme.lower()):
        return Thing(str(_SCHEMES[scheme.lower()]), held.line, [], dict(held.fields))
    return scheme


def _adapters(held: Any) -> Any:
    """Adapters as a thing with the name of their class; None for none."""
    if isinstance(held, str):
        name = _SCHEMES.get(held.lower(), held)
        return None if name is None else Thing(name)
    if not isinstance(held, Thing):
        return held
    if not held.name and held.replaces is not None:
        before = _adapters(held.replaces)
        if isinstance(before, Thing):
            return Thing(before.name, held.line, [], before.fields | held.fields, said=before.said | held.said)
    if held.name.endswith("default_peft_config"):
        asked = held.positional[0] if held.positional else held.fields.get("peft_scheme")
        found = _adapters(asked)
        if isinstance(found, Thing):
            found.fields |= {name: value for name, value in held.fields.items() if name != "peft_scheme"}
            found.said = held.said
        return found
    return held


def _flat(config: Thing) -> list[tuple[str, Any]]:
    """Paths and values, precisions written out; a section that is None or empty has no path."""
    if "peft" in config.fields:
        config.fields["peft"] = _adapters(config.fields["peft"])
    precision = config.fields.get("mixed_precision")
    if isinstance(precision, (str, Thing)):
        config.fields["mixed_precision"] = _precision(precision)
    found = []
    for path, value in config.flat():
        if not isinstance(value, Thing):
            found.append((path, plain(value)))
        elif path == "peft":
            found += [(path, value.name.rpartition(".")[2])] if value.name else []
        elif value.name and not value.fields and path not in _MAY_BE_PLAIN:
            found.append((path, Open(f"{value.name.removeprefix('?.')}(...)", value.line)))
    return found
