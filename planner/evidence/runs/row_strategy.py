"""The strategy of a measured run: the row's degrees; the back-end's defaults where it states none.

Degrees: a blank tp, cp, pp, vpp or ep is 1 as long as some degree is stated or there is one device; dp is what is left
of the devices.  A blank micro-batch is one sample.  Degrees that do not multiply to
the devices, and batches that do not divide, are contradictions, never repaired.

Layers are dealt evenly (remainder to the first chunks; first and last one shorter where that makes it even), or by
compute where the back-end balances its stages so.  The row's recompute policy applies to every layer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.evidence.runs.bridge_recipes import Switches, switches_of_row
from planner.evidence.runs.described_traits import described_traits
from planner.evidence.runs.flavours import Flavour
from planner.evidence.runs.row_model import flags_of
from planner.evidence.runs.row_training import training_of_row
from planner.evidence.runs.software import described
from planner.evidence.runs.truth import TruthRow
from planner.evidence.runs.unmapped import RowUnmapped
from planner.model.megatron_dispatcher import DEFAULT
from planner.model.parameters import layer_parameters
from planner.model.spec import ModelSpec
from planner.predict.physics.physics import Physics
from planner.predict.schedule.orders import order_findings
from planner.question.fp8_recipes import Fp8RecipeName
from planner.question.optimizers import OptimizerName
from planner.question.problem import Workload
from planner.question.routing import EVEN
from planner.strategy.strategy import (
    DISPATCHERS,
    OPERATOR_MODULES,
    Dispatcher,
    RecomputeModule,
    RecomputePolicy,
    Strategy,
)

ARITHMETIC = (
    (r"fp4", "fp4"),
    (r"fp8", "fp8"),
    (r"bf16|bfloat16", "bf16"),
    (r"fp16|float16|mixed|amp", "fp16"),
    (r"tf32", "tf32"),
    (r"fp32|float32", "fp32"),
)
MLPERF = re.compile(r"mlcommons|mlperf", re.IGNORECASE)
EIGHT_BIT = re.compile(r"h100|h200|b200|b300|mi3[0-9]{2}|gaudi", re.IGNORECASE)
WORKLOAD_PRECISION = {"fp16": "fp16", "fp8": "fp8", "fp4": "fp8"}
"""What states and activations are kept as; fp32 runs are costed as if they kept 16 bit (their sources have no memory
figures)."""
RECIPES: tuple[tuple[str, Fp8RecipeName], ...] = (
    (r"\bmxfp8\b|scaling=mxfp8", "mxfp8"),
    (r"\bfp8-cs\b|\btensorwise\b|\bcurrent scaling\b", "tensorwise"),
    (r"\bblockwise\b", "blockwise"),
    (r"\bdelayed scaling\b", "delayed"),
)
"""Words of sources for recipes; ``cs``: current scaling, as Megatron-Bridge's tables write it."""
ROWWISE = re.compile(r"\browwise", re.IGNORECASE)
"""torchao's rowwise recipes, also that with products of weight gradients in 16 bit."""
SELECTIVE_MODULES: tuple[RecomputeModule, ...] = ("attention_core",)
NAMED_MODULES: tuple[RecomputeModule, ...] = ("attention_core", "norm", "activation", "mlp", "moe", "mla_up_proj")
"""What a row may list in its recompute column, separated by commas."""
EXPERT_OVERLAP = re.compile(r"\bEP overlap\b", re.IGNORECASE)
ONCE_A_NODE = re.compile(r"\b(DeepEP|HybridEP)\b", re.IGNORECASE)
NARROW_DISPATCH = re.compile(r"\bfp8 dispatch\b", re.IGNORECASE)
PADDED_EXPERTS = re.compile(r"\(tokendrop\)", re.IGNORECASE)
"""Megatron-Bridge's ``apply_moe_token_drop`` pads to the capacity that it drops beyond (training/utils)."""
NARROW_GATES = re.compile(r"\bSwiGLU inputs kept in fp8\b", re.IGNORECASE)
FORCED_BALANCE = re.compile(r"force-balanced|balanced gate|forced? balanc|token-?dropping", re.IGNORECASE)
"""No expert computes more than its share: by force, or because what exceeds its capacity is dropped."""
ONCE_AN_EXPERT = re.compile(r"\bA2A dispatcher\b|\ball-?to-?all dispatcher\b", re.IGNORECASE)
SHARD_GROUP = re.compile(r"(?:shard group |fsdp2-|fsdp-?(?!2\b))(\d+)", re.IGNORECASE)
EXPERT_TENSOR = re.compile(r"\bETP[ =](\d+)|expert-tensor-parallel-size=(\d+)", re.IGNORECASE)


TEST_DEVICES = 8
"""Devices of a run of Megatron-LM's functional tests: one node of eight (tests/test_utils/recipes, nodes: 1, gpus: 8),
which every row that states them has."""


@dataclass(frozen=True, slots=True)
class Degrees:
    """The degrees of a row, complete and consistent."""

    tp: int
    cp: int
    pp: int
    vpp: int
    ep: int
    dp: int
    micro_batch_size: int
    num_microbatches: int


def degrees_of_row(row: TruthRow, flavour: Flavour, num_layers: int) -> Degrees:
    """Degrees and batch of a row for a model of ``num_layers``.  Raises RowUnmapped."""
    stated = [row.tp, row.pp, row.dp]
    sharded = re.search(r"fsdp|zero-?3", row.zero_or_fsdp.lower()) is not None or flavour.shards_by_default
    tests_node = TEST_DEVICES if flavour.megatron_defaults else None
    if row.num_devices is None and row.dp is None and tests_node is None:
        raise RowUnmapped("the number of devices is not stated")
    if row.num_devices not in (None, 1) and all(value is None for value in stated) and not sharded:
        raise RowUnmapped("no parallel degree is stated")
    tp, cp, pp, ep = (value or 1 for value in (row.tp, row.cp, row.pp, row.ep))
    # Counts of chunks may include the embedding and the head, which the columns call no layers.
    vpp = max(1, min(row.vpp or 1, num_layers // pp)) if pp > 1 else 1
    model_parallel = tp * cp * pp
    devices = row.num_devices or (model_parallel * row.dp if row.dp else tests_node) or model_parallel
    dp = devices // model_parallel
    if devices % model_parallel or (row.dp is not None and row.dp != dp):
        raise RowUnmapped("the degrees do not multiply to the devices")
    if row.gbs is None:
        raise RowUnmapped("the global batch size is not stated")
    if row.gbs % dp:
        raise RowUnmapped("the batch does not divide over the data-parallel ranks")
    local = row.gbs // dp
    micro = row.mbs or (local if flavour.shards_by_default and pp == 1 else 1)
    if local % micro:
        raise RowUnmapped("the batch does not divide into micro-batches")
    return Degrees(tp, cp, pp, vpp, ep, dp, micro, local // micro)


def workload_of_row(row: TruthRow, flavour: Flavour) -> Workload:
    """Sequence, precision and gradient dtype of a row; the batch is in the strategy.  Raises RowUnmapped."""
    if row.sequence_length is None:
        raise RowUnmapped("the sequence length is not stated")
    precision = WORKLOAD_PRECISION.get(arithmetic_of_row(row), "bf16")
    optimizer: OptimizerName = "muon" if flags_of(row).get("optimizer") == "muon" else "adam"
    return Workload(
        global_batch_size=1,
        sequence_length=row.sequence_length,
        precision=precision,  # type: ignore[arg-type]  # one of the three above
        fp8_recipe=_recipe(row) if precision == "fp8" else None,
        optimizer=optimizer,
        gradient_dtype=flavour.gradient_dtype,
        routing=EVEN if flavour.forced_balance or FORCED_BALANCE.search(row.notes) else None,
        training=training_of_row(row.notes, described(row), flavour.adapts),
    )


def _recipe(row: TruthRow) -> Fp8RecipeName | None:
    """How the source says that it scales 8-bit operands; None where it does not, and for fp4."""
    words = f"{row.precision} {row.notes}".lower()
    if "fp4" in row.precision.lower():
        return None
    return next((name for pattern, name in RECIPES if re.search(pattern, words)), None)


def arithmetic_of_row(row: TruthRow) -> str:
    """Precision of the matmuls; a source that is silent trains in 16 bit (fp16 before there was bf16).

    MLPerf's submissions train in 8 bit where the device can (NVIDIA's reports on v3.0 to v5.1).

    TF32 is a mode of fp32 tensors that the row has to name.  Raises
    RowUnmapped.
    """
    words = row.precision.lower()
    if not words and MLPERF.search(row.source) and EIGHT_BIT.search(row.device):
        return "fp8"
    if not words:
        return "fp16" if "v100" in row.device.lower() else "bf16"
    for pattern, precision in ARITHMETIC:
        if re.search(pattern, words):
            return precision
    raise RowUnmapped(f"precision {row.precision} is not modelled")


def traits_of_row(row: TruthRow, flavour: Flavour) -> Physics:
    """The flavour's traits, what the row says of its software, and the dispatcher that its notes name."""
    traits = described_traits(flavour, described(row))
    if (recipe := switches_of_row(row)) is not None:
        traits = recipe.applied(traits)
    if ROWWISE.search(f"{row.precision} {row.notes}"):
        traits = replace(traits, rowwise_scales=True)
    if ONCE_A_NODE.search(row.notes):
        traits = replace(traits, dispatch="node")
    elif ONCE_AN_EXPERT.search(row.notes):
        traits = replace(traits, dispatch="expert")
    if PADDED_EXPERTS.search(row.notes):
        traits = replace(traits, pads_experts=True)
    if NARROW_GATES.search(row.notes):
        traits = replace(traits, narrow_gate_inputs=True)
    return replace(traits, narrow_dispatch=True) if NARROW_DISPATCH.search(row.notes) else traits


def strategy_of_row(row: TruthRow, degrees: Degrees, model: ModelSpec, flavour: Flavour) -> Strategy:
    """The strategy of a row.  Raises RowUnmapped."""
    flags = flags_of(row)
    replicate, shard, zero = _sharding(row, degrees, flavour)
    policy, modules = _recompute(row, flavour)
    recipe = switches_of_row(row)
    if recipe is not None and recipe.recompute and not row.recompute:
        policy, modules = "selective", recipe.recompute
    overlap_ep = EXPERT_OVERLAP.search(row.notes) is not None or (recipe is not None and recipe.overlap_ep)
    sp = flavour.sequence_parallel if row.sp is None else bool(row.sp)
    switch = flavour.megatron_defaults
    return Strategy(
        tp=degrees.tp,
        sp=sp and degrees.tp > 1,
        cp=degrees.cp,
        cp_kind="ring" if degrees.cp > 1 else "none",
        ep=degrees.ep,
        etp=_expert_tensor(row, degrees, model, flavour),
        pp=degrees.pp,
        dp_replicate=replicate,
        dp_shard=shard,
        micro_batch_size=degrees.micro_batch_size,
        num_microbatches=degrees.num_microbatches,
        **{"vpp": degrees.vpp, **_schedule(row, degrees)},
        zero_stage=zero,
        recompute=policy,
        recompute_modules=modules,
        overlap_grad_reduce=flags.get("overlap-grad-reduce") == "True" if switch else flavour.overlap_grad_reduce,
        overlap_param_gather=flags.get("overlap-param-gather") == "True" if switch else flavour.overlap_param_gather,
        overlap_tp=(flavour.overlap_tp or "async TP" in row.notes) and degrees.tp > 1,
        overlap_ep=overlap_ep and degrees.ep > 1,
        dispatcher=_dispatcher(row, flags, flavour, recipe) if degrees.ep > 1 else "alltoall",
    )


def _dispatcher(row: TruthRow, flags: Mapping[str, str], flavour: Flavour, recipe: Switches | None) -> Dispatcher:
    """What the notes name, the recipe, or quoted flags; of Megatron-LM's own runs its default where they say none."""
    if named := ONCE_A_NODE.search(row.notes):
        return "hybridep" if named[1].lower() == "hybridep" else "deepep"
    if recipe is not None:
        return recipe.dispatcher
    kind = flags.get("moe-token-dispatcher-type", DEFAULT if flavour.megatron_defaults else "alltoall")
    wanted = flags.get("moe-flex-dispatcher-backend", "deepep") if kind == "flex" else kind
    return next((known for known in DISPATCHERS if known == wanted), "alltoall")


def chunk_layers_of_row(model: ModelSpec, strategy: Strategy, flavour: Flavour) -> tuple[int, ...]:
    """How many layers each chunk holds.  Raises RowUnmapped where a chunk would be empty."""
    layers, chunks = model.num_layers, strategy.num_chunks
    if chunks > layers:
        raise RowUnmapped("more model chunks than layers")
    if flavour.dealing == "by_compute" and chunks > 1:
        return _by_compute(model, chunks)
    base, rest = divmod(layers, chunks)
    if rest and (layers + 2) % chunks == 0:
        each = (layers + 2) // chunks
        if each > 1:
            return (each - 1, *(each,) * (chunks - 2), each - 1)
    return tuple(base + (index < rest) for index in range(chunks))


def _by_compute(model: ModelSpec, chunks: int) -> tuple[int, ...]:
    """A stage takes blocks until the running FLOPs reach its share of the total; the head counts, embeddings do not."""
    weights = [_block_weight(model, kind) for kind in model.layer_kind_sequence()]
    total = sum(weights) + model.hidden_size * model.vocab_size
    counts = [0] * chunks
    stage, running = 0, 0
    for weight in weights:
        counts[stage] += 1
        running += weight
        if running * chunks >= total * (stage + 1) and stage < chunks - 1:
            stage += 1
    return tuple(counts)


def _block_weight(model: ModelSpec, kind: int) -> int:
    """Multiply-adds of a layer a token as nanotron counts them: four square projections and the feed-forward."""
    layer = model.layer_kinds[kind]
    if layer.mlp is None:
        return layer_parameters(model, kind)
    attention = 4 * layer.attention.num_heads * layer.attention.head_dim
    return model.hidden_size * (attention + (3 if layer.mlp.gated else 2) * layer.mlp.intermediate_size)


def _schedule(row: TruthRow, degrees: Degrees) -> dict[str, Any]:
    if degrees.pp == 1:
        return {"schedule": "1f1b"}
    words = f"{row.model} {row.notes}".lower()
    if re.search(r"\bzb-?2p\b|\bzb-?inf", words):
        raise RowUnmapped("schedule ZB-2p is not modelled")
    if re.search(r"\bzb-?v\b", words):
        return {"schedule": "zbv", "vpp": 2}
    if re.search(r"\bdualpipe(v|\b)", words):
        # DualPipe sends two streams through a V of twice the stages, each held twice; its V form holds each once.
        return {"schedule": "dualpipev", "vpp": 2}
    if re.search(r"\bzb-?(1p|h1)\b", words):
        return {"schedule": "zb_h1"}
    if degrees.vpp > 1:
        if degrees.num_microbatches < degrees.pp:
            raise RowUnmapped("interleaving with fewer micro-batches than stages")
        return {"schedule": "interleaved", "microbatch_group_size": _group_size(degrees)}
    return {"schedule": "1f1b"}


def _sharding(row: TruthRow, degrees: Degrees, flavour: Flavour) -> tuple[int, int, int]:
    """dp_replicate, dp_shard, zero_stage."""
    words = flavour.sharding or row.zero_or_fsdp.lower()
    zero = _zero_stage(words, flavour)
    if degrees.dp == 1 and degrees.cp == 1:
        zero = min(zero, 1)
    group = SHARD_GROUP.search(words)
    size = int(group[1]) if group else degrees.dp
    if "hsdp" in words and row.nodes:
        size = max(1, degrees.dp // row.nodes)
    if size < degrees.dp and degrees.dp % size == 0 and zero >= 1:
        return degrees.dp // size, size, zero
    return 1, degrees.dp, zero


def _zero_stage(words: str, flavour: Flavour) -> int:
    named = re.search(r"zero-?(\d)", words)
    if named:
        return int(named[1])
    if "shard_grad_op" in words:
        return 2
    if "fsdp" in words or "hsdp" in words:
        return 3
    if re.search(r"dist(ributed)?-?opt", words):
        return 1
    return 0 if words in ("ddp", "none") else flavour.zero_stage


def _recompute(row: TruthRow, flavour: Flavour) -> tuple[RecomputePolicy, tuple[RecomputeModule, ...]]:
    words = flavour.recompute or row.recompute.lower()
    if words in ("", "none"):
        return "none", ()
    if words == "full":
        return "full", ()
    if words == "selective":
        # torchtitan and fms keep matmul and attention outputs and replay the rest; Megatron replays the core.
        return "selective", OPERATOR_MODULES if flavour.zero_stage == 3 else SELECTIVE_MODULES
    listed = tuple(word.strip() for word in words.split(","))
    modules = tuple(module for module in NAMED_MODULES if module in listed)
    if len(modules) == len(listed):
        return "selective", modules
    raise RowUnmapped("a partial recompute policy is not described by its name")


def _expert_tensor(row: TruthRow, degrees: Degrees, model: ModelSpec, flavour: Flavour) -> int:
    moes = [kind.moe for kind in model.layer_kinds if kind.moe is not None]
    if not moes:
        if degrees.ep > 1:
            raise RowUnmapped("expert parallelism without experts in the row")
        return 1
    ranks = degrees.tp * degrees.cp * degrees.dp
    stated = EXPERT_TENSOR.search(row.notes)
    etp = int(stated[1] or stated[2]) if stated else (degrees.tp if flavour.expert_tensor_parallel_is_tp else 1)
    if not stated and ranks % (etp * degrees.ep):
        etp = 1
    if ranks % (etp * degrees.ep) or any(moe.num_experts % degrees.ep for moe in moes):
        raise RowUnmapped("the expert degrees do not divide the ranks or the experts")
    return etp


def _group_size(degrees: Degrees) -> int:
    """The smallest micro-batch group that an order exists for: p where the micro-batches divide by it, at most all."""
    sizes = degrees.pp, degrees.vpp, degrees.num_microbatches
    return next(group for group in range(degrees.pp, sizes[2] + 1) if not order_findings("interleaved", *sizes, group))
