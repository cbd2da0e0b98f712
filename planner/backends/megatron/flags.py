"""The flags of a plan: strategy, stages and workload -> arguments.  The inverse is ``read_back``."""

from __future__ import annotations

from collections.abc import Mapping

from planner.backends.emission.layout import Layout, chunks_in_model_order, layout_of
from planner.backends.megatron.arguments import Section, Words
from planner.backends.megatron.checkpoints import ADAM, REASON, checkpoint_flags
from planner.backends.megatron.dispatcher import TYPE, dispatcher_flags, dispatcher_reason
from planner.backends.megatron.layout import is_even, layout_string
from planner.backends.megatron.model_flags import model_flags, moe_flags, recipe_reasons
from planner.backends.megatron.recompute import MODULE_FLAGS, offload_modules
from planner.backends.megatron.resume import RESHARDABLE
from planner.backends.megatron.token_mixers import PATTERN, pattern, way
from planner.backends.rules.rule import rule_input
from planner.plan.plan import Plan
from planner.predict.cost.step_payload import EIGHT_BIT_GATHERS
from planner.predict.memory.states import REDUCED
from planner.question.fp8_recipes import usual_recipe
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy

BLOCK_SCALED = frozenset({"blockwise", "mxfp8"})
"""Recipes whose blocks are small enough for gradients in e4m3 (DeepSeek-V3, arXiv 2412.19437, section 3.3.2)."""
FSDP_STRATEGIES = {2: "optim_grads", 3: "optim_grads_params"}
CP_KINDS = {"ring": "p2p", "all_to_all": "a2a"}
SIZES = {
    "tp": "--tensor-model-parallel-size",
    "pp": "--pipeline-model-parallel-size",
    "cp": "--context-parallel-size",
    "ep": "--expert-model-parallel-size",
    "etp": "--expert-tensor-parallel-size",
}
"""Degrees and their flags, the same in both dialects."""
SWITCHES = {
    "sp": "--sequence-parallel",
    "overlap_grad_reduce": "--overlap-grad-reduce",
    "overlap_param_gather": "--overlap-param-gather",
}
"""Switches of the strategy and their flags, the same in both dialects."""
OWN_SWITCHES = {
    "overlap_tp": "--tp-comm-overlap",
    "overlap_ep": "--overlap-moe-expert-parallel-comm",
    "optimizer_offload": "--optimizer-cpu-offload",
    "fp8_parameters": "--fp8-param-gather",
}
"""Those that MindSpeed spells otherwise."""
GROUP_SIZE = "--microbatch-group-size-per-virtual-pipeline-stage"
KERNELS: Mapping[str, Words] = {
    "--transformer-impl": ("transformer_engine",),
    "--attention-backend": ("auto",),
    "--cross-entropy-loss-fusion": (),
    "--cross-entropy-fusion-impl": ("native",),
}
"""Transformer Engine's own fused loss is refused by the release (training/arguments.py:1643)."""
SPLIT_FLAGS = frozenset({"--pipeline-model-parallel-layout", "--num-virtual-stages-per-pipeline-rank"})
"""Flags that a hybrid pattern refuses beside it (training/arguments.py:787-830)."""
MEMORY_TITLE = "Recompute and offload"


def sections(plan: Plan) -> tuple[Section, ...]:
    """All arguments of a plan, under headings."""
    strategy, problem = plan.chosen(), plan.problem
    architecture = problem.cluster.pools[0].device.architecture
    return (
        Section("Model", _layers(plan) | model_flags(problem.model, problem.workload), recipe_reasons(problem.model)),
        _experts(plan),
        Section("Parallelism", _split(plan)),
        Section("Batch", batch_flags(strategy, problem.workload)),
        Section("Precision and optimizer", precision_flags(strategy, problem.workload, architecture)),
        Section("Data parallelism", data_parallel_flags(strategy) | checkpoint_flags(plan), {RESHARDABLE: REASON}),
        Section(MEMORY_TITLE, memory_flags(plan)),
        Section("Kernels", KERNELS, {"--cross-entropy-loss-fusion": "off by default; the plan counts on it"}),
    )


def _experts(plan: Plan) -> Section:
    """Experts and router, with how tokens are sent and why so."""
    model, reasons = plan.problem.model, recipe_reasons(plan.problem.model)
    flags = moe_flags(model)
    if flags:
        flags, reasons = flags | dispatcher_flags(plan.chosen()), {**reasons, TYPE: dispatcher_reason(rule_input(plan))}
    return Section("Experts", flags, reasons)


def _layers(plan: Plan) -> dict[str, Words]:
    """The pattern of a hybrid model, which holds its pipeline split too."""
    if way(plan.problem.model) != "pattern":
        return {}
    return {PATTERN: (pattern(plan.problem.model, chunks_in_model_order(layout_of(plan))),)}


def _split(plan: Plan) -> dict[str, Words]:
    flags = parallel_flags(plan.chosen(), layout_of(plan))
    if way(plan.problem.model) != "pattern":
        return flags
    return {flag: words for flag, words in flags.items() if flag not in SPLIT_FLAGS}


def parallel_flags(strategy: Strategy, layout: Layout) -> dict[str, Words]:
    """Degrees, split, schedule, rank order and overlap."""
    chunks = chunks_in_model_order(layout)
    flags = degree_flags(strategy)
    if strategy.cp > 1:
        flags["--cp-comm-type"] = (CP_KINDS[strategy.cp_kind],)
    if not is_even(chunks):
        flags["--pipeline-model-parallel-layout"] = (layout_string(chunks),)
    elif strategy.vpp > 1:
        flags["--num-virtual-stages-per-pipeline-rank"] = (str(strategy.vpp),)
    return flags | order_flags(strategy, OWN_SWITCHES)


def degree_flags(strategy: Strategy) -> dict[str, Words]:
    """Sizes of the model axes, sequence parallelism with them."""
    sizes: dict[str, Words] = {flag: (str(getattr(strategy, name)),) for name, flag in SIZES.items()}
    return sizes | switch_flags(strategy, SWITCHES, "sp")


def order_flags(strategy: Strategy, switches: Mapping[str, str]) -> dict[str, Words]:
    """Micro-batch groups, the order of ranks, and what ``switches`` overlaps inside the model axes."""
    flags: dict[str, Words] = {}
    if strategy.schedule == "interleaved" and strategy.vpp > 1:
        flags[GROUP_SIZE] = (str(strategy.microbatch_group_size or strategy.pp),)
    if strategy.axis_order == "tp-cp-ep-pp-dp":
        flags["--use-tp-pp-dp-mapping"] = ()
    return flags | switch_flags(strategy, switches, "overlap_tp", "overlap_ep")


def switch_flags(strategy: Strategy, switches: Mapping[str, str], *names: str) -> dict[str, Words]:
    """The flags of those of the named switches that are on."""
    return {switches[name]: () for name in names if getattr(strategy, name)}


def batch_flags(strategy: Strategy, workload: Workload) -> dict[str, Words]:
    """Sizes; Megatron derives the number of micro-batches."""
    return {
        "--seq-length": (str(workload.sequence_length),),
        "--micro-batch-size": (str(strategy.micro_batch_size),),
        "--global-batch-size": (str(workload.global_batch_size),),
        **document_flags(workload),
    }


def document_flags(workload: Workload) -> dict[str, Words]:
    """Attention within the documents of a sample, by cumulative lengths (megatron-core 0.19.2 gpt_dataset.py:287)."""
    said = workload.sequences
    return {} if said is None or said.kind == "padded" else {"--dataloader-inter-document-masking": ()}


def precision_flags(strategy: Strategy, workload: Workload, architecture: str) -> dict[str, Words]:
    """Number formats and optimizer."""
    flags: dict[str, Words] = {"--fp16" if workload.precision == "fp16" else "--bf16": ()}
    if workload.matmul_format == "fp4":  # megatron-core: fp4 and fp8 exclude each other
        flags |= {"--fp4-format": ("e2m1",), "--fp4-recipe": (workload.fp8_recipe or "nvfp4",)}
    elif workload.precision == "fp8":
        recipe = workload.fp8_recipe or usual_recipe(architecture)
        flags |= {"--fp8-format": ("e4m3" if recipe in BLOCK_SCALED else "hybrid",), "--fp8-recipe": (recipe,)}
        flags |= switch_flags(strategy, OWN_SWITCHES, "fp8_parameters")
        if strategy.fp8_parameters and recipe not in EIGHT_BIT_GATHERS:
            flags["--reuse-grad-buf-for-mxfp8-param-ag"] = ()
    if workload.gradient_dtype == "bf16":
        flags["--grad-reduce-in-bf16"] = ()
    return flags | optimizer_flags(strategy, workload)


def optimizer_flags(strategy: Strategy, workload: Workload) -> dict[str, Words]:
    """The optimizer and the number formats of its states."""
    flags: dict[str, Words] = {"--optimizer": ("adam" if workload.optimizer in ADAM else workload.optimizer,)}
    if workload.optimizer in REDUCED or strategy.optimizer_offload:
        flags["--use-precision-aware-optimizer"] = ()
    if workload.optimizer == "adam_bf16_states":
        flags |= {"--exp-avg-dtype": ("bf16",), "--exp-avg-sq-dtype": ("bf16",)}
    if (states := workload.optimizer_states) is not None:
        flags |= {"--exp-avg-dtype": (states.first,), "--exp-avg-sq-dtype": (states.second,)}
        flags["--main-params-dtype"] = (states.master,)
    return flags


def data_parallel_flags(strategy: Strategy) -> dict[str, Words]:
    """ZeRO 1 is the distributed optimizer, 2 and 3 are Megatron-FSDP with the companions that it demands."""
    flags = distributed_optimizer_flags(strategy)
    if strategy.zero_stage >= 2:
        flags |= {
            "--use-megatron-fsdp": (),
            "--data-parallel-sharding-strategy": (FSDP_STRATEGIES[strategy.zero_stage],),
            "--init-model-with-meta-device": (),
            "--no-gradient-accumulation-fusion": (),
            "--ckpt-format": ("fsdp_dtensor",),
        }
    return flags | switch_flags(strategy, SWITCHES, "overlap_grad_reduce", "overlap_param_gather")


def distributed_optimizer_flags(strategy: Strategy) -> dict[str, Words]:
    """ZeRO 1, which 2 and 3 build on, and its copies."""
    flags: dict[str, Words] = {}
    if strategy.zero_stage >= 1:
        flags["--use-distributed-optimizer"] = ()
        if strategy.dp_replicate > 1:
            flags["--num-distributed-optimizer-instances"] = (str(strategy.dp_replicate),)
    return flags


def memory_flags(plan: Plan) -> dict[str, Words]:
    """Recompute and offload, the same on every stage (rules P4 and P5)."""
    strategy = plan.chosen()
    flags: dict[str, Words] = {}
    if strategy.recompute == "full":
        flags |= full_recompute_flags(layout_of(plan))
    elif strategy.recompute == "selective":
        flags |= {
            "--recompute-granularity": ("selective",),
            "--recompute-modules": tuple(MODULE_FLAGS[module] for module in strategy.recompute_modules),
        }
    if strategy.optimizer_offload:
        flags |= {"--optimizer-cpu-offload": (), "--overlap-cpu-optimizer-d2h-h2d": ()}
    if strategy.activation_offload:
        layers = layer_offload(plan)
        if layers is not None:
            flags["--cpu-offloading-num-layers"] = (str(layers),)
        else:
            modules = offload_modules(plan.problem.model, strategy.recompute_modules)
            flags |= {"--fine-grained-activation-offloading": (), "--offload-modules": modules}
    return flags


def full_recompute_flags(layout: Layout) -> dict[str, Words]:
    """The first layers of every chunk whole; one number serves all chunks (rule P4)."""
    count = max(count for stage in layout for count in stage.recompute.num_layers_per_chunk)
    return {
        "--recompute-granularity": ("full",),
        "--recompute-method": ("block",),
        "--recompute-num-layers": (str(count),),
    }


def layer_offload(plan: Plan) -> int | None:
    """Layers to offload whole, None when only module-wise offload of all layers fits.

    Whole-layer offload needs one pipeline stage, no recompute, and fewer layers than there are
    (core/transformer/transformer_config.py:1707-1722).
    """
    strategy = plan.chosen()
    layers = plan.stages[0].offload.activation_layers
    if strategy.pp == 1 and strategy.recompute == "none" and 0 < layers < plan.problem.model.num_layers:
        return layers
    return None
