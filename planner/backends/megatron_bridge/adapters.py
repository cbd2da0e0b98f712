"""Adapters in Megatron-Bridge: its classes, the modules that they wrap, the plans that they cannot train.

LoRA is written as ``CanonicalLoRA``, which has an adapter each for q, k, v, gate and up as PEFT has, so that what
learns is what the plan counts.  DoRA has one class, which wraps the fused matrices whole: q, k and v share their ``A``,
and so do gate and up.  Routed experts have no adapters in plans; their ``linear_fc1`` has the name of the others', so
the modules of a model with experts are named with the part before them.

Facts: megatron-bridge 0.6.2 peft/{lora,dora,canonical_lora,base,recompute,utils}.py, training/{config,setup}.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from planner.backends.rules.rule import RuleInput, SpaceRule, latent, mixture, used_kinds
from planner.backends.rules.token_mixers import beyond_attention
from planner.errors import DocumentInvalid
from planner.model.spec import ModelSpec
from planner.question.training import EVERY_TARGET, AdapterTarget, Training

CLASSES = {"CanonicalLoRA": "canonical_lora", "DoRA": "dora"}
"""Classes that are written, and their modules of ``megatron.bridge.peft``."""
FUSED: tuple[tuple[AdapterTarget, ...], ...] = (("q", "k", "v"), ("gate", "up"))
_CANONICAL: Mapping[str, tuple[AdapterTarget, ...]] = {
    "linear_q": ("q",),
    "linear_k": ("k",),
    "linear_v": ("v",),
    "linear_fc1_gate": ("gate",),
    "linear_fc1_up": ("up",),
}
_WHOLE: Mapping[str, tuple[AdapterTarget, ...]] = {
    "linear_qkv": ("q", "k", "v"),
    "linear_proj": ("o",),
    "linear_fc1": ("gate", "up"),
    "linear_fc2": ("down",),
    "linear_q_proj": ("q",),
    "linear_q_down_proj": ("q",),
    "linear_q_up_proj": ("q",),
    "linear_kv_down_proj": ("k", "v"),
    "linear_kv_up_proj": ("k", "v"),
}
TARGETS: Mapping[str, Mapping[str, tuple[AdapterTarget, ...]]] = {
    "LoRA": _WHOLE,
    "DoRA": _WHOLE,
    "CanonicalLoRA": {
        **_CANONICAL,
        **{name: held for name, held in _WHOLE.items() if name not in ("linear_qkv", "linear_fc1")},
    },
}
"""Class -> name of a module -> the matrices in it."""
_USUAL = {"LoRA": 4, "DoRA": 4, "CanonicalLoRA": 7}
"""The first names of each class are those that it takes where nobody names any."""
_MLP = ("linear_fc1", "linear_fc1_gate", "linear_fc1_up", "linear_fc2")
_BRIDGE = "megatron-bridge 0.6.2"


def adapter_class(training: Training) -> str:
    """The class of ``megatron.bridge.peft`` that trains so."""
    return "DoRA" if training.dora else "CanonicalLoRA"


def adapter_fields(training: Training, model: ModelSpec) -> dict[str, Any]:
    """What the class is given; alpha is twice the rank and there is no dropout, as for the other back-ends."""
    return {
        "target_modules": list(_modules(training, model)),
        "dim": training.rank,
        "alpha": 2 * training.rank,
        "dropout": 0.0,
    }


def _modules(training: Training, model: ModelSpec) -> Iterable[str]:
    """Names of the modules with an adapter, in the order of the model."""
    for name, held in TARGETS[adapter_class(training)].items():
        if not set(held) & set(training.targets) or not _has(model, name):
            continue
        if name not in _MLP or mixture(model) is None:
            yield name
            continue
        if any(kind.mlp is not None for kind in used_kinds(model)):
            yield f"*.mlp.{name}"
        if any(kind.moe is not None and kind.moe.shared_intermediate_size for kind in used_kinds(model)):
            yield f"*.mlp.shared_experts.{name}"


def _has(model: ModelSpec, name: str) -> bool:
    """Whether the model has a module of this name: latent attention has others than the grouped one."""
    if name in ("linear_proj", *_MLP):
        return True
    if not latent(model):
        return not name.endswith(("_down_proj", "_up_proj", "_q_proj"))
    ranked = used_kinds(model)[0].attention.q_lora_rank is not None
    return name in ("linear_kv_down_proj", "linear_kv_up_proj") or (
        name in (("linear_q_down_proj", "linear_q_up_proj") if ranked else ("linear_q_proj",))
    )


def training_of(name: str, fields: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What learns with a class of Bridge's and its fields: the fields of ``Training``.

    Raises DocumentInvalid for another class, a module that plans have no adapter for, or some layers alone.
    """
    if name not in TARGETS:
        raise DocumentInvalid(
            f"it trains adapters by {name}, which the planner has no description of",
            where=where,
            hint=f"described: {', '.join(TARGETS)}",
        )
    said = fields.get("target_modules")
    modules = list(TARGETS[name])[: _USUAL[name]] if said is None else said
    if fields.get("exclude_modules") or not modules or isinstance(modules, str):
        what = "peft.exclude_modules and no target_modules" if fields.get("exclude_modules") else "peft.target_modules"
        raise DocumentInvalid(f"{what}: no list of modules with adapters", where=where, hint="list target_modules")
    found: set[AdapterTarget] = set()
    for module in modules:
        own = str(module).rpartition(".")[2]
        held = TARGETS[name].get(own)
        if held is None or any(sign.isdigit() for sign in str(module).removesuffix(own)):
            raise DocumentInvalid(
                f"peft.target_modules: {module} is no matrix that adapters of plans stand beside in all layers",
                where=where,
                hint=f"of {name}: {', '.join(TARGETS[name])}",
            )
        found |= set(held)
    rank = fields.get("dim", 32)
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        raise DocumentInvalid(f"peft.dim is {rank!r}, not a rank", where=where, hint="correct it")
    targets = [target for target in EVERY_TARGET if target in found]
    return {"kind": "lora", "rank": rank, "targets": targets, **({"dora": True} if name == "DoRA" else {})}


def recipe_adapters(text: str, where: str) -> tuple[str, dict[str, Any]] | None:
    """``ADAPTERS`` and ``ADAPTER_FIELDS`` of a recipe, read without running it; None where it has none.

    Raises DocumentInvalid for one without the other, or for values that are no literals.
    """
    if "peft" not in text:
        return None
    held: dict[str, Any] = {}
    try:
        for statement in ast.parse(text).body:
            match statement:
                case ast.Assign(targets=[ast.Name("ADAPTERS")], value=ast.Name(name)):
                    held["class"] = name
                case ast.Assign(targets=[ast.Name("ADAPTER_FIELDS")], value=value):
                    held["fields"] = ast.literal_eval(value)
        return str(held["class"]), dict(held["fields"])
    except (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError) as error:
        what = "ADAPTERS is no class with ADAPTER_FIELDS"
        raise DocumentInvalid(what, where=where, hint="emit the plan again") from error


def read_adapters(text: str, where: str) -> dict[str, Any] | None:
    """What learns by an emitted recipe; None where it has no adapters.  Raises DocumentInvalid."""
    found = recipe_adapters(text, where)
    return None if found is None else training_of(*found, where)


def _together(given: RuleInput) -> str | None:
    training, model = given.workload.trained, given.model
    if not training.adapters:
        return None
    gated = any(part.gated for kind in used_kinds(model) for part in (kind.mlp, kind.moe) if part)
    groups = (*(() if latent(model) else FUSED[:1]), *(FUSED[1:] if gated else ()))
    for group in groups:
        some = [target for target in group if target in training.targets]
        if some and len(some) < len(group):
            rest = ", ".join(target for target in group if target not in some)
            return f"{' and '.join(group)} are one matrix, and adapters on it serve all of it: name {rest} too"
    return None


def _ends(given: RuleInput) -> str | None:
    return "adapters freeze embedding and output layer; drop ends" if given.workload.trained.ends else None


def _halves(given: RuleInput) -> str | None:
    training = given.workload.trained
    if not training.adapters or training.dora or "up" not in training.targets:
        return None
    kinds = used_kinds(given.model)
    alone = any(kind.mlp is not None and not kind.mlp.gated for kind in kinds)
    if not alone and not any(kind.moe and kind.moe.shared_intermediate_size and not kind.moe.gated for kind in kinds):
        return None
    return "CanonicalLoRA takes the MLP's first matrix for gate and up, and this one has no gate; leave up out, or dora"


def _nothing(given: RuleInput) -> str | None:
    training = given.workload.trained
    if not training.adapters or list(_modules(training, given.model)):
        return None
    return (
        f"no matrix of {', '.join(training.targets)} is in the model outside of routed experts, which have no adapters"
    )


def _mixers(given: RuleInput) -> str | None:
    said = beyond_attention(given.model)
    if said is None or not given.workload.trained.adapters:
        return None
    return f"adapters are written beside plain attention, MLP and experts, not beside {said}"


def _rank(given: RuleInput) -> str | None:
    training, tp = given.workload.trained, given.strategy.tp
    if training.adapters and training.rank % tp:
        return f"an adapter's rank is divided over tp: {training.rank} does not divide over tp={tp}"
    return None


def _checkpoint(given: RuleInput) -> str | None:
    if given.workload.trained.adapters and given.strategy.zero_stage >= 2:
        return (
            "the base is loaded before Megatron-FSDP wraps the model, whose tensors have no memory then: zero_stage 0"
            " or 1"
        )
    return None


def _recomputed(given: RuleInput) -> str | None:
    training, s = given.workload.trained, given.strategy
    behind = {"q", "k", "v", "o"} & set(training.targets)
    if not training.adapters or behind or s.recompute != "selective":
        return None
    parts = [module for module in s.recompute_modules if module in ("mlp", "moe")]
    if not parts:
        return None
    return (
        f"recompute of {parts[0]} alone: the first layer's input has no gradient, so its adapters would get none; adapt"
        " attention too, or recompute full"
    )


QUESTION_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("X4", f"{_BRIDGE} peft/canonical_lora.py:147-153, 175-177, peft/dora.py:99", _together),
    SpaceRule("X5", f"{_BRIDGE} peft/base.py (freeze_model)", _ends),
    SpaceRule("X6", f"{_BRIDGE} peft/canonical_lora.py (out_features // 2)", _halves),
    SpaceRule("X11", f"{_BRIDGE} peft/module_matcher.py (no target_modules: every linear layer)", _nothing),
    SpaceRule("X7", "docs: emit megatron-bridge (bridge_recipe.py)", _mixers),
)
STRATEGY_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("X8", f"{_BRIDGE} peft/utils.py:1019 (ColumnParallelLinear of the rank)", _rank, ("tp",)),
    SpaceRule("X9", f"{_BRIDGE} training/setup.py:598, models/model_provider.py:647", _checkpoint, ("zero_stage",)),
    SpaceRule(
        "X10", f"{_BRIDGE} peft/recompute.py (recompute_method)", _recomputed, ("recompute", "recompute_modules")
    ),
)
