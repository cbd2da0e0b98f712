"""What a strategy exercises, as field and value: degrees as 1 or more, groups as multiples of the stages.

The values that a back-end's declared space has come from its ``Columns``; those that a strategy has, from the strategy
itself.  A record must cover the first with the second, or cite who ran what it does not cover.
"""

from __future__ import annotations

from itertools import combinations

from planner.backends.backend import Space
from planner.plan.plan import Plan
from planner.strategy.fields import value_words
from planner.strategy.schedules import GROUPED_SCHEDULES, LOOPED_SCHEDULES, V_SCHEDULES
from planner.strategy.strategy import Strategy

DEGREES = ("tp", "cp", "ep", "etp", "pp", "vpp", "dp_replicate", "dp_shard")
ONE, MORE = "1", ">1"


def strategy_values(strategy: Strategy) -> dict[str, str]:
    """Field -> value in words; fields that mean nothing beside the others are left out."""
    s = strategy
    found = {name: MORE if getattr(s, name) > 1 else ONE for name in DEGREES}
    found |= {"zero_stage": str(s.zero_stage), "recompute": s.recompute}
    if s.recompute == "selective":
        found |= {f"recompute {name}": "yes" for name in s.recompute_modules}
    if s.tp > 1:
        found |= {"sp": _on(s.sp), "overlap_tp": _on(s.overlap_tp)}
    if s.cp > 1:
        found["cp_kind"] = s.cp_kind
    if s.ep > 1:
        found["overlap_ep"] = _on(s.overlap_ep)
    if s.pp > 1:
        found["schedule"] = s.schedule
    if s.pp > 1 and s.schedule in GROUPED_SCHEDULES:
        found["microbatch_group_size"] = _multiple(s)
    if s.pp > 1 and s.dp > 1:
        found["axis_order"] = s.axis_order
    if s.dp * s.cp > 1:
        found["overlap_grad_reduce"] = _on(s.overlap_grad_reduce)
        found["overlap_param_gather"] = _on(s.overlap_param_gather)
    found["optimizer_offload"], found["activation_offload"] = _on(s.optimizer_offload), _on(s.activation_offload)
    found["micro_batch_size"] = MORE if s.micro_batch_size > 1 else ONE
    return found


def plan_values(plan: Plan) -> dict[str, str]:
    """Those of its strategy, of the dealing of its layers, and of its kind of model."""
    found = strategy_values(plan.chosen())
    layers = [chunk.num_layers for stage in plan.stages for chunk in stage.chunks]
    if len(layers) > 1:
        found["layers"] = "even" if len(set(layers)) == 1 else "uneven"
    if found["recompute"] != "none":
        recomputed = sum(sum(stage.recompute.num_layers_per_chunk) for stage in plan.stages)
        found["recomputed layers"] = "all" if recomputed == sum(layers) else "some"
    return found | {"model": model_kind(plan)}


def model_kind(plan: Plan) -> str:
    """Attention and what follows it, in few words."""
    model = plan.problem.model
    kinds = [model.layer_kinds[run.kind] for run in model.layer_runs]
    words = ["latent attention" if any(kind.attention.kind == "mla" for kind in kinds) else "attention"]
    words.append("experts" if any(kind.moe is not None for kind in kinds) else "dense")
    words += ["tied"] if model.tie_embeddings else []
    return ", ".join(words)


def pairs(values: dict[str, str]) -> frozenset[tuple[tuple[str, str], tuple[str, str]]]:
    """Every two values of different fields."""
    return frozenset(combinations(sorted(values.items()), 2))


def declared_values(space: Space) -> dict[str, tuple[str, ...]]:
    """Field -> the values that a declared space has, as far as its columns say them."""
    columns = space.columns
    split = (ONE, MORE)
    found: dict[str, tuple[str, ...]] = {
        "tp": split if columns.tensor_parallel else (ONE,),
        "cp": split if columns.cp_kinds else (ONE,),
        "ep": split if columns.expert_parallel else (ONE,),
        "etp": split if columns.expert_tensor_parallel and columns.expert_parallel else (ONE,),
        "pp": split if columns.pipeline_parallel and columns.schedules else (ONE,),
        "dp_shard": split,
        "dp_replicate": split if columns.hybrid_sharding else (ONE,),
        "cp_kind": columns.cp_kinds,
        "schedule": tuple(columns.schedules),
        "recompute": tuple(columns.recompute),
        "optimizer_offload": _switch(columns.optimizer_offload),
        "activation_offload": _switch(columns.activation_offload),
    }
    chunks = any(name in LOOPED_SCHEDULES | V_SCHEDULES for name in columns.schedules)
    found["vpp"] = split if chunks else (ONE,)
    found["zero_stage"] = tuple(map(str, sorted({*columns.zero_stages, *columns.zero_stages_with_pipeline})))
    if columns.tensor_parallel:
        found["sp"] = tuple(map(_on, columns.sequence_parallel))
        found["overlap_tp"] = _switch(columns.overlap_tp and True in columns.sequence_parallel)
    if columns.expert_parallel:
        found["overlap_ep"] = tuple(sorted({_on(each) for each in columns.overlap_ep}))
    if columns.schedules:
        orders = ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")
        found["axis_order"] = tuple(orders[order] for order in columns.axis_orders)
    if any(name in GROUPED_SCHEDULES for name in columns.schedules) and not columns.derived_group:
        found["microbatch_group_size"] = tuple(_words(factor) for factor in columns.group_factors)
    return found


def strategy_words(strategy: Strategy) -> str:
    """Every field that is not as in a strategy without parallelism, as ``--strategy`` takes them."""
    plain = Strategy().to_dict()
    differs = {name: value for name, value in strategy.to_dict().items() if value != plain[name] and name != "dp"}
    return ",".join(f"{name}={value_words(value)}" for name, value in differs.items()) or "one rank"


def _switch(possible: bool) -> tuple[str, ...]:
    return ("off", "on") if possible else ("off",)


def _on(value: bool) -> str:
    return "on" if value else "off"


def _multiple(s: Strategy) -> str:
    return _words(s.microbatch_group_size // s.pp) if s.microbatch_group_size % s.pp == 0 else "other"


def _words(factor: int) -> str:
    return "pp" if factor == 1 else f"{factor} pp"
