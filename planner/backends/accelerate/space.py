"""The plans that Accelerate 1.15.0 refuses or runs differently: small functions over a ``RuleInput``.

Letters: A Accelerate, torch or transformers refuse (at launch, in ``ParallelismConfig`` or at the first step);
D DeepSpeed's rules on the way through DeepSpeed; P not expressible, or run in another way; M the model itself.  The
config file's own keys (K) are in ``config``.
"""

from __future__ import annotations

from dataclasses import replace

from planner.backends.accelerate.adapters import QUESTION_RULES as ADAPTER_QUESTION_RULES
from planner.backends.accelerate.adapters import STRATEGY_RULES as ADAPTER_RULES
from planner.backends.accelerate.towers import FED_ITEMS
from planner.backends.accelerate.towers import STRATEGY_RULES as TOWER_RULES
from planner.backends.accelerate.version import ACCELERATE_VERSION
from planner.backends.accelerate.way import WAY_FIELDS, way
from planner.backends.backend import Space
from planner.backends.deepspeed.denoiser_config import SPLIT_CLASSES, longest_sides, text_is_fixed
from planner.backends.deepspeed.engine_rules import QUESTION_RULES
from planner.backends.deepspeed.model_rules import MODEL_RULES as SCRIPT_RULES
from planner.backends.deepspeed.model_rules import TRACED_RECOMPUTE
from planner.backends.deepspeed.space import STRATEGY_RULES as DEEPSPEED_RULES
from planner.backends.deepspeed.space import spelled as spelled_for_deepspeed
from planner.backends.rules.columns import Columns
from planner.backends.rules.divisibility import context_parallel_sequence, exact_batch, positions
from planner.backends.rules.overlap import FSDP2, data_parallel, fsdp2_overlap, fsdp2_spelling, plain_spelling
from planner.backends.rules.packed_sequences import packed_sequences
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule, used_kinds
from planner.backends.rules.token_mixers import runs_along_sequence
from planner.backends.rules.training_kinds import training_kinds
from planner.question.sample import sample_text
from planner.strategy.strategy import Strategy

_LIBRARY = f"accelerate {ACCELERATE_VERSION}"
_PARALLELISM = f"{_LIBRARY} parallelism_config.py"


def _pipeline(given: RuleInput) -> str | None:
    s = given.strategy
    return f"Accelerate has no pipeline parallelism: pp={s.pp} and vpp={s.vpp} must be 1" if s.pp * s.vpp > 1 else None


def _experts(given: RuleInput) -> str | None:
    s = given.strategy
    if s.ep * s.etp > 1:
        return f"ParallelismConfig has no expert axis: ep={s.ep} and etp={s.etp} must be 1"
    return None


def _replicas(given: RuleInput) -> str | None:
    s = given.strategy
    if way(s) == "FSDP" and s.dp_replicate > 1 and s.dp_shard == 1:
        return "dp_replicate > 1 with dp_shard = 1 is plain data parallelism: use zero_stage 0, or dp_shard > 1"
    return None


def _shards(given: RuleInput) -> str | None:
    s = given.strategy
    if way(s) == "FSDP" and s.dp_shard * s.cp == 1:
        return "FSDP2 has nothing to shard over: dp_shard or cp must be above 1"
    return None


def _model_axes(given: RuleInput) -> str | None:
    s = given.strategy
    if s.cp > 1 and way(s) != "FSDP":
        return f"cp={s.cp} needs FSDP2: zero_stage 2 or 3, without optimizer offload"
    return None


def _ring_attention(given: RuleInput) -> str | None:
    if given.strategy.cp == 1 or given.model.denoiser is not None:
        return None
    mixer = runs_along_sequence(given.model)
    if mixer is not None:
        return f"torch's context parallelism splits attention only, and {mixer} needs the whole sequence: use cp=1"
    for kind in used_kinds(given.model):
        window = kind.attention.sliding_window
        if window and window < given.workload.sequence_length:
            return "torch's context parallelism takes no attention mask, and so no sliding window: use cp=1"
        if kind.attention.kind == "mla":
            return "torch's context parallelism needs values as wide as queries; latent attention's are not: use cp=1"
    return None


def _tensor_parallel(given: RuleInput) -> str | None:
    """``Accelerator.prepare`` imports ``ReplicateParallel`` for weights that are sharded over tp under FSDP2.

    transformers 5.0 has it, 5.12 to 5.23 have not: with a checkpoint every rank ends with an ImportError (executed on
    four CPU ranks).
    """
    tp = given.strategy.tp
    return f"Accelerate prepares tp={tp} with a class that transformers dropped: use tp=1" if tp > 1 else None


def _sample_sides(given: RuleInput) -> str | None:
    denoiser, sample = given.model.denoiser, given.workload.sample
    if denoiser is None:
        return None
    if sample is None:
        return "the script feeds latents of one shape, which no length says: give the workload a sample (--sample)"
    for side, longest in zip(denoiser.sample_grid(*sample), longest_sides(given.model), strict=True):
        if side > longest:
            return f"a sample of {sample_text(sample)} has {side} tokens a side, and the class places for {longest}"
    asked = given.workload.source_length
    if asked not in (None, denoiser.text_tokens) and text_is_fixed(denoiser):
        return f"{denoiser.class_name} takes {denoiser.text_tokens} tokens of text and pictures here, not {asked}"
    return None


def _denoiser_context(given: RuleInput) -> str | None:
    denoiser, cp = given.model.denoiser, given.strategy.cp
    if denoiser is None or cp == 1:
        return None
    if denoiser.class_name not in SPLIT_CLASSES:
        return f"ranks share the tokens of {', '.join(SPLIT_CLASSES)} only, not of {denoiser.class_name}: use cp=1"
    text = given.workload.source_length or denoiser.text_tokens
    if denoiser.text_in_sequence and text % cp:
        return f"text and latents are cut apart, and {text} text tokens do not divide over cp={cp}"
    return None


def _optimizer(given: RuleInput) -> str | None:
    name, chosen = given.workload.optimizer, way(given.strategy)
    if chosen == "DEEPSPEED" or name in ("adam", "sgd", "adam_8bit"):
        return None
    if name != "adafactor":
        return f"the script has torch's AdamW, SGD and Adafactor and torchao's AdamW8bit for FSDP2 and DDP, not {name}"
    if chosen == "FSDP":
        return "torch's Adafactor squares norms in place, which sharded weights (DTensor) refuse: use zero_stage 0"
    return None


def _one_offload(given: RuleInput) -> str | None:
    wanted = given.strategy.optimizer_offload
    if any(stage.offload.optimizer != wanted for stage in given.layout or ()):
        return "optimizer offload is on for all ranks or for none"
    return None


def _with_way(rule: SpaceRule) -> tuple[str, ...]:
    """Its own fields, and those that choose the way."""
    return tuple(dict.fromkeys((*rule.fields, *WAY_FIELDS)))


def _through_deepspeed(rule: SpaceRule) -> SpaceRule:
    """A rule of DeepSpeed, for what goes through DeepSpeed."""

    def check(given: RuleInput) -> str | None:
        return rule.check(given) if way(given.strategy) == "DEEPSPEED" else None

    check.__name__ = getattr(rule.check, "__name__", "check")
    return replace(rule, id=f"D.{rule.id}", check=check, fields=_with_way(rule))


def _one_rank(given: RuleInput) -> str | None:
    s = given.strategy
    return "one rank has nothing to shard over: use zero_stage 0" if s.world_size == 1 and s.zero_stage else None


def _context_kind(given: RuleInput) -> str | None:
    s = given.strategy
    kind, whose = ("all_to_all", "diffusers' Ulysses") if given.model.denoiser else ("ring", "torch's ring")
    wanted = kind if s.cp > 1 else "none"
    return f"context parallelism is {whose}: cp_kind must be {wanted}" if s.cp_kind != wanted else None


def _head_and_tail(given: RuleInput) -> str | None:
    return None if given.model.denoiser else context_parallel_sequence(given)


def _recompute(given: RuleInput) -> str | None:
    s = given.strategy
    if s.recompute == "selective" or s.activation_offload:
        return "the script recomputes whole layers, no modules, and offloads none: use recompute none or full"
    return None


def _overlap(given: RuleInput) -> str | None:
    s = given.strategy
    if way(s) == "FSDP":
        return fsdp2_overlap(given)
    if data_parallel(given) and not s.overlap_grad_reduce:
        return "DDP always reduces gradients under the backward pass: overlap_grad_reduce must be on"
    return None


def _stage_recompute(given: RuleInput) -> str | None:
    for stage in given.layout or ():
        if stage.recompute.policy == "selective" or stage.offload.activation_layers:
            return "the script recomputes whole layers and offloads none"
    return None


def _without_deepspeed(rule: SpaceRule) -> SpaceRule:
    """A rule for the other ways."""

    def check(given: RuleInput) -> str | None:
        return None if way(given.strategy) == "DEEPSPEED" else rule.check(given)

    check.__name__ = rule.check.__name__
    return replace(rule, check=check, fields=_with_way(rule))


STRATEGY_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("A1", f"{_LIBRARY} accelerator.py:796", _pipeline, ("pp", "vpp")),
    SpaceRule("A2", f"{_PARALLELISM}:70", _experts, ("ep", "etp")),
    SpaceRule(
        "A3",
        "docs: emit accelerate (train_accelerate.py)",
        exact_batch(steps="steps"),
        ("micro_batch_size", "num_microbatches", "dp"),
    ),
    SpaceRule("A4", f"{_PARALLELISM}:322", _replicas, ("dp_replicate", "dp_shard", "zero_stage")),
    SpaceRule("A5", f"{_PARALLELISM}:371", _shards, ("zero_stage", "dp_shard", "cp")),
    SpaceRule("A6", f"{_LIBRARY} commands/launch.py:1211", _model_axes, ("zero_stage", "cp", "optimizer_offload")),
    SpaceRule(
        "A7",
        "torch 2.13 distributed/tensor/experimental/_context_parallel (head-tail load balance)",
        _head_and_tail,
        ("cp",),
    ),
    SpaceRule("A8", f"{_LIBRARY} big_modeling.py (_attach_context_parallel_hooks)", _ring_attention, ("cp",)),
    SpaceRule(
        "A17",
        "diffusers 0.42.1 models/modeling_utils.py:1742 (enable_parallelism), models/attention_dispatch.py:2545-2640"
        " (TemplatedUlyssesAttention with its backward pass), hooks/context_parallel.py",
        _denoiser_context,
        ("cp",),
    ),
    SpaceRule(
        "A19",
        f"{_LIBRARY} accelerator.py:1618; transformers 5.23.0 integrations/tensor_parallel.py:63 (no such class)",
        _tensor_parallel,
        ("tp",),
    ),
    SpaceRule(
        "A11", "docs: emit accelerate (train_accelerate.py); torch 2.13 optim/_adafactor.py:393", _optimizer, WAY_FIELDS
    ),
    *map(_through_deepspeed, (*DEEPSPEED_RULES, *QUESTION_RULES)),
    SpaceRule("D2", f"{_LIBRARY} accelerator.py (_prepare_deepspeed)", _one_offload, ("optimizer_offload",)),
    *map(
        _without_deepspeed,
        (
            SpaceRule("P1", f"{_LIBRARY} utils/dataclasses.py (fsdp_version 2)", _one_rank, ("zero_stage",)),
            SpaceRule(
                "P4",
                f"{_LIBRARY} utils/dataclasses.py (TorchContextParallelConfig)",
                _context_kind,
                ("cp_kind", "cp"),
            ),
            SpaceRule("P5", f"{_LIBRARY} utils/fsdp_utils.py", _recompute, ("recompute", "activation_offload")),
            SpaceRule(
                "P6", f"{FSDP2}; nn/parallel/distributed.py", _overlap, ("overlap_grad_reduce", "overlap_param_gather")
            ),
            SpaceRule("P7", "docs: emit accelerate", _stage_recompute, ("recompute", "activation_offload")),
            TRACED_RECOMPUTE,
        ),
    ),
    *ADAPTER_RULES,
    *TOWER_RULES,
)

MODEL_RULES: tuple[SpaceRule, ...] = (
    training_kinds(
        "docs: emit accelerate (train_accelerate.py); peft tuners/lora, bitsandbytes",
        bases=("bf16", "nf4", "int8"),
        tasks=("language_model", "dpo", "orpo"),
        freezes_towers=True,
    ),
    packed_sequences(
        "docs: emit accelerate (train_accelerate.py feeds whole sequences; TRL packs, trl/data_utils.py:739)",
        instead="use padded sequences, or name --backend torchtitan, megatron or maxtext",
    ),
    *ADAPTER_QUESTION_RULES,
    *(
        replace(rule, source="docs: emit accelerate (the script sets up no fp8 recipe)") if rule.id == "M4" else rule
        for rule in SCRIPT_RULES
        if rule.id != FED_ITEMS.id
    ),
    FED_ITEMS,
    SpaceRule("A12", "transformers 5 (position embedding table)", positions),
    SpaceRule("A16", "docs: emit accelerate (train_accelerate.py); diffusers 0.42.1 transformer_wan.py", _sample_sides),
)
"""The script builds the same transformers models as the one for DeepSpeed, and diffusion transformers of diffusers."""

TABLE = RuleTable("accelerate", MODEL_RULES, STRATEGY_RULES)
violations = TABLE.violations


def spelled(s: Strategy, given: RuleInput) -> Strategy:
    """One spelling for switches that mean nothing beside the others, as the files give them back."""
    if way(s) == "DEEPSPEED":
        return spelled_for_deepspeed(s, given)
    changes = plain_spelling(s) | fsdp2_spelling(s, given)
    if s.pp == 1:
        changes |= {"schedule": "1f1b", "microbatch_group_size": 0}
    if s.zero_stage == 0:
        # DDP gathers nothing, and one rank reduces nothing.
        changes |= {"dp_replicate": 1, "dp_shard": s.dp, "overlap_param_gather": False}
        changes |= {} if data_parallel(given) else {"overlap_grad_reduce": False}
    return replace(s, **changes)


SPACE = Space(
    Columns(
        schedules=(),
        cp_kinds=("ring",),
        denoiser_cp_kinds=("all_to_all",),
        tensor_parallel=False,
        pipeline_parallel=False,
        zero_stages_with_pipeline=(),
        hybrid_zero_stages=(2, 3),
        axis_orders=(0,),
        expert_parallel=False,
        expert_tensor_parallel=False,
        activation_offload=False,
        overlap_ep=(False,),
        overlap_tp=False,
        overlap_data=((True, True), (True, False), (False, False)),
        recompute=("none", "full"),
    ),
    TABLE,
    spelled,
)
