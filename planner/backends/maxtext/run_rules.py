"""Workloads, pipelines, recompute choices and switches that MaxText does not run: rules W, P, R and O."""

from __future__ import annotations

from planner.backends.maxtext.decoder_blocks import decoder_block
from planner.backends.maxtext.hardware import AMD, NVIDIA, is_tpu
from planner.backends.maxtext.saved_tensors import canonical_modules
from planner.backends.maxtext.version import MAXTEXT_VERSION, TYPES
from planner.backends.rules.fp8_recipes import fp8_recipes
from planner.backends.rules.overlap import data_parallel
from planner.backends.rules.rule import RuleInput, SpaceRule, mixtures, used_kinds
from planner.question.fp8_recipes import Fp8RecipeName

_DECODERS = f"maxtext {MAXTEXT_VERSION} layers/nnx_decoders.py"
_PIPELINE = f"maxtext {MAXTEXT_VERSION} layers/pipeline.py"


def _precision(given: RuleInput) -> str | None:
    precision = given.workload.precision
    if precision == "fp16":
        return "fp16 has no loss scaling here; use bf16"
    if precision == "fp8" and given.architecture in AMD:
        return "Transformer Engine's fp8 recipes need NVIDIA devices; use bf16"
    return None


def _optimizer(given: RuleInput) -> str | None:
    name = given.workload.optimizer
    if name == "adam_bf16_states":
        return "only Adam's first moment can be bf16 (mu_dtype); use adam"
    if name == "sgd":
        return "MaxText's SGD keeps no momentum; use adam"
    if name == "muon":
        return "MaxText knows how to split weights for Muon only for its own model names; use adam"
    if name != "adam":
        return f"MaxText's optimizers are adamw, adam_pax, sgd and muon, not {name}; use adam"
    return None


def _schedule(given: RuleInput) -> str | None:
    s = given.strategy
    if s.pp == 1:
        return f"schedule {s.schedule} with vpp={s.vpp} needs pp > 1" if s.vpp > 1 or s.schedule != "1f1b" else None
    wanted = "looped_bfs" if s.vpp > 1 else "gpipe"
    if s.schedule != wanted:
        return (
            "every forward pass, repeat by repeat, runs before the first backward pass: schedule must be"
            f" {wanted} with vpp={s.vpp}"
        )
    return None


def _microbatches(given: RuleInput) -> str | None:
    s = given.strategy
    if s.pp > 1 and s.num_microbatches % s.pp:
        return f"{s.num_microbatches} micro-batches are not a multiple of pp={s.pp}"
    return None


def _stages(given: RuleInput) -> str | None:
    s, model, block = given.strategy, given.model, decoder_block(given.model)
    if s.pp == 1 or block is None:
        return None
    if not block.pipeline or len({run.kind for run in model.layer_runs}) > 1:
        return "only layers of one kind can be cut into stages"
    if model.mtp is not None:
        return "multi-token prediction with pipeline stages is not emitted"
    if model.num_layers % s.num_chunks:
        return f"{model.num_layers} layers do not divide over pp x vpp = {s.num_chunks}"
    return None


def _even(given: RuleInput) -> str | None:
    counts = given.layers_per_chunk
    if counts is not None and len(set(counts)) > 1:
        return f"stages and repeats must hold equally many layers, not {'+'.join(map(str, counts))}"
    return None


def _recompute(given: RuleInput) -> str | None:
    s, kinds = given.strategy, used_kinds(given.model)
    if s.recompute == "full":
        return "modules belong to selective recompute" if s.recompute_modules else None
    wanted = canonical_modules(
        s.recompute_modules,
        dense_layers=any(kind.mlp or (kind.moe and kind.moe.shared_intermediate_size) for kind in kinds),
        expert_layers=any(kind.moe for kind in kinds),
    )
    if s.recompute == "none":
        return f"every layer is checkpointed: recompute must be full, or selective with at least {', '.join(wanted)}"
    if s.recompute_modules != wanted:
        return f"recompute of {', '.join(s.recompute_modules)} comes as {', '.join(wanted)}"
    return None


def _every_layer(given: RuleInput) -> str | None:
    s = given.strategy
    for stage in given.layout or ():
        layers = tuple(chunk.num_layers for chunk in stage.chunks)
        if stage.recompute.num_layers_per_chunk != layers or stage.recompute.policy != s.recompute:
            return f"one policy serves every layer: stage {stage.stage} must recompute all {sum(layers)}"
        if stage.offload.activation_layers != (sum(layers) if s.activation_offload else 0):
            return f"saved tensors go to the host for every layer or none, not for some of stage {stage.stage}"
        if stage.offload.optimizer != s.optimizer_offload:
            return "one config serves all stages: optimizer offload is on for all of them or for none"
    return None


def _circular_experts(given: RuleInput) -> str | None:
    """Layers of experts leave a metric (``moe_has_overflow``, ``moe_lb_loss``) in the state of their stage.

    A circular pipeline writes every repeat's state back into the whole one, which has no such entry: its first step
    ends with "pytree structure error" (executed on CPU devices with maxtext 0.2.5 and jax 0.12.0, with and without a
    balancing loss).
    """
    s = given.strategy
    if s.pp > 1 and s.vpp > 1 and mixtures(given.model):
        return f"a circular pipeline fails on the metrics that layers of experts leave: use vpp=1, not {s.vpp}"
    return None


def _overlap(given: RuleInput) -> str | None:
    s = given.strategy
    if data_parallel(given) and not (s.overlap_grad_reduce and (s.overlap_param_gather or s.zero_stage == 0)):
        return "XLA's scheduler overlaps all data-parallel collectives; neither switch can be off"
    return None


def _model_overlap(given: RuleInput) -> str | None:
    s = given.strategy
    if (s.overlap_tp and s.tp > 1) or (s.overlap_ep and s.ep > 1):
        return "no overlap inside tensor or expert parallelism is asked for: overlap_tp and overlap_ep must be off"
    return None


def _host(given: RuleInput) -> str | None:
    s = given.strategy
    if s.activation_offload and s.pp > 1:
        return "offload of saved tensors inside the pipeline's loop is not emitted"
    return None


def _device(given: RuleInput) -> str | None:
    if not given.architecture or is_tpu(given.architecture) or given.architecture in AMD | NVIDIA:
        return None
    return f"MaxText runs on TPU and on NVIDIA and AMD GPUs, not on {given.architecture}"


def _tpu_fp8(given: RuleInput) -> str | None:
    latest = given.architecture == "tpu_7x"
    if given.workload.precision == "fp8" and is_tpu(given.architecture) and not latest:
        return f"{given.architecture} has no fp8 matrix unit; use bf16"
    return None


RUN_RULES: tuple[SpaceRule, ...] = (
    SpaceRule(
        "P1",
        f"{_PIPELINE}:173-182: one scan over iterations, micro-batches inside repeats, differentiated as a whole",
        _schedule,
        ("schedule", "vpp", "pp"),
    ),
    SpaceRule("P2", f"{TYPES}:4594", _microbatches, ("num_microbatches", "micro_batch_size", "pp")),
    SpaceRule("P3", f"{TYPES}:4540-4585; {_DECODERS}:1396", _stages, ("pp", "vpp")),
    SpaceRule("P4", f"{TYPES}:4580", _even, ("pp", "vpp")),
    SpaceRule("P5", f"{_PIPELINE}:812, not checked", _circular_experts, ("vpp", "pp")),
    SpaceRule("R1", f"{_DECODERS}:1159, :1278", _recompute, ("recompute", "recompute_modules")),
    SpaceRule(
        "R2",
        f"{_DECODERS}:1278: one policy; configs/base.yml:478",
        _every_layer,
        ("recompute", "activation_offload", "optimizer_offload"),
    ),
    SpaceRule("R3", f"{_PIPELINE}:187", _host, ("activation_offload", "pp")),
    SpaceRule(
        "O1",
        f"maxtext {MAXTEXT_VERSION} configs/gpu/a3, configs/tpu: XLA flags",
        _overlap,
        ("overlap_grad_reduce", "overlap_param_gather"),
    ),
    SpaceRule(
        "O2",
        f"maxtext {MAXTEXT_VERSION} configs/gpu/a3, configs/tpu: XLA flags",
        _model_overlap,
        ("overlap_tp", "overlap_ep"),
    ),
)
_RECIPES: tuple[Fp8RecipeName, ...] = ("tensorwise",)
QUESTION_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("W1", f"{TYPES}:65, :87; {TYPES}:4972", _precision),
    SpaceRule(
        "W2",
        f"maxtext {MAXTEXT_VERSION} optimizers/optimizers.py:171-240, utils/muon_utils.py, configs/base.yml:1123",
        _optimizer,
    ),
    fp8_recipes(f"{TYPES}:87: te_fp8_currentscaling", has=_RECIPES, own="one scale a tensor"),
    SpaceRule("W3", "docs.cloud.google.com/tpu/docs: number formats", _tpu_fp8),
    SpaceRule("W4", f"{TYPES}:1662", _device),
)
"""Those that no strategy mends, as the model's."""
