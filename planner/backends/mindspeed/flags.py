"""The flags of a plan: strategy, stages and workload -> arguments.  The inverse is ``read_back``.

Why ``--pipeline-model-parallel-layout`` for uneven stages, when three other flags exist:

- ``--pipeline-num-transformer-layers`` leaves Megatron's demand for equal stages in force, and patches a method that
  core_v0.12.1 no longer calls (``TransformerLayer._get_layer_offset``), so the kinds of mixed layers would shift;
- ``--num-layer-list`` belongs to MindSpeed-LLM and knows no virtual stages;
- ``--noop-layers`` changes the number of layers, and each of them still costs a hop; only DualPipeV, which knows no
  layout, has its chunks filled up with them (``noop_layers``).

The layout says everything, MTP and virtual stages included.
"""

from __future__ import annotations

from planner.backends.emission.layout import Layout, chunks_in_model_order, layout_of
from planner.backends.megatron.arguments import Section, Words
from planner.backends.megatron.dispatcher import TYPE, dispatcher_flags
from planner.backends.megatron.flags import (
    FSDP_STRATEGIES,
    SWITCHES,
    batch_flags,
    degree_flags,
    distributed_optimizer_flags,
    full_recompute_flags,
    order_flags,
    switch_flags,
)
from planner.backends.megatron.layout import is_even, layout_string
from planner.backends.megatron.model_flags import model_flags, moe_flags, recipe_reasons
from planner.backends.mindspeed.noop_layers import filled_up
from planner.backends.mindspeed.recompute import module_names, module_switches
from planner.backends.rules.rule import used_kinds
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy

CP_ALGORITHMS = {"ring": "megatron_cp_algo", "all_to_all": "ulysses_cp_algo"}
DUALPIPEV = "dualpipev"
OWN_SWITCHES = {
    "overlap_tp": "--use-ascend-mc2",
    "overlap_ep": "--moe-fb-overlap",
    "optimizer_offload": "--swap-optimizer",
    "activation_offload": "--swap-attention",
}
"""Switches of the strategy that Megatron-LM spells otherwise, and their flags."""


def sections(plan: Plan) -> tuple[Section, ...]:
    """All arguments of a plan, under headings."""
    strategy, problem = plan.chosen(), plan.problem
    model, experts = model_flags(problem.model, problem.workload), moe_flags(problem.model)
    experts |= dispatcher_flags(strategy) if experts else {}
    if strategy.schedule == DUALPIPEV:
        counts = [chunk.num_layers for chunk in chunks_in_model_order(layout_of(plan))]
        kinds = problem.model.layer_kinds
        mixed = [kinds[kind].moe is not None for kind in problem.model.layer_kind_sequence()]
        whole = filled_up({**model, **experts}, counts, mixed)
        experts = {flag: whole[flag] for flag in experts}
        model = {flag: words for flag, words in whole.items() if flag not in experts}
    return (
        Section("Model", model, recipe_reasons(problem.model)),
        Section("Experts", experts, {**recipe_reasons(problem.model), TYPE: "the exchange that the plan's time is of"}),
        Section("Parallelism", parallel_flags(strategy, layout_of(plan))),
        Section("Batch", batch_flags(strategy, problem.workload)),
        Section("Precision and optimizer", precision_flags(problem.workload)),
        Section("Data parallelism", data_parallel_flags(strategy)),
        Section("Recompute and offload", memory_flags(plan)),
        Section("Kernels", kernel_flags(problem.model)),
    )


def parallel_flags(strategy: Strategy, layout: Layout) -> dict[str, Words]:
    """Degrees, split, schedule, rank order and overlap."""
    chunks = chunks_in_model_order(layout)
    flags = degree_flags(strategy)
    if strategy.cp > 1:
        flags["--context-parallel-algo"] = (CP_ALGORITHMS[strategy.cp_kind],)
    if strategy.schedule == DUALPIPEV:
        flags["--schedules-method"] = (DUALPIPEV,)
    elif not is_even(chunks):
        flags["--pipeline-model-parallel-layout"] = (layout_string(chunks),)
    elif strategy.vpp > 1:
        # Not --num-virtual-stages-per-pipeline-rank: several MindSpeed features look at this flag only.
        flags["--num-layers-per-virtual-pipeline-stage"] = (str(chunks[0].num_layers),)
    return flags | order_flags(strategy, OWN_SWITCHES)


def precision_flags(workload: Workload) -> dict[str, Words]:
    """Number format and optimizer."""
    flags: dict[str, Words] = {"--fp16" if workload.precision == "fp16" else "--bf16": ()}
    if workload.gradient_dtype == "bf16":
        flags["--grad-reduce-in-bf16"] = ()
    flags["--optimizer"] = (workload.optimizer,)
    return flags


def data_parallel_flags(strategy: Strategy) -> dict[str, Words]:
    """ZeRO 1 is the distributed optimizer; 2 and 3 are Megatron's FSDP, ``--use-custom-fsdp`` at this tag."""
    flags = distributed_optimizer_flags(strategy)
    if strategy.zero_stage >= 2:
        flags |= {
            "--use-custom-fsdp": (),
            "--data-parallel-sharding-strategy": (FSDP_STRATEGIES[strategy.zero_stage],),
            "--no-gradient-accumulation-fusion": (),
        }
    return flags | switch_flags(strategy, SWITCHES, "overlap_grad_reduce", "overlap_param_gather")


def memory_flags(plan: Plan) -> dict[str, Words]:
    """Recompute and offload, the same on every stage (rules P4 and P5)."""
    strategy, model = plan.chosen(), plan.problem.model
    flags: dict[str, Words] = {}
    if strategy.recompute == "full":
        flags |= full_recompute_flags(layout_of(plan))
    elif strategy.recompute == "selective":
        names = module_names(model, strategy.recompute_modules)
        if names:
            flags |= {"--recompute-granularity": ("selective",), "--recompute-modules": names}
        flags |= dict.fromkeys(module_switches(model, strategy.recompute_modules), ())
    return flags | switch_flags(strategy, OWN_SWITCHES, "optimizer_offload", "activation_offload")


def kernel_flags(model: ModelSpec) -> dict[str, Words]:
    """Ascend's fused kernels where the model has what they fuse."""
    flags: dict[str, Words] = {
        "--transformer-impl": ("local",),
        "--use-flash-attn": (),
        "--no-masked-softmax-fusion": (),
    }
    kinds = used_kinds(model)
    if kinds[0].norm == "rms":
        flags["--use-fused-rmsnorm"] = ()
    if any(part.gated for kind in kinds for part in (kind.mlp, kind.moe) if part):
        flags["--use-fused-swiglu"] = ()
    if model.position == "rope" and not model.learned_positions:
        # Megatron's own fusion needs Transformer Engine or Apex and refuses latent attention
        # (megatron-core 0.12.1 core/transformer/transformer_config.py:917); MindSpeed's kernel is behind its own flag.
        flags |= {"--no-rope-fusion": (), "--use-fused-rotary-pos-emb": ()}
    return flags
