"""The strategies that Megatron-LM 2.5 can run.

NVIDIA/Megatron-LM tag v2.5 (e269e20064, 2021-08-10, the merge of the scripts of arXiv 2104.04473).

- Schedules: 1F1B, and interleaved with ``--num-layers-per-virtual-pipeline-stage`` (megatron/schedules.py:28-42;
  arguments.py:573); there is no other.  Interleaved: pp > 2 (arguments.py:119), micro-batches % pp == 0
  (schedules.py:33-36), the group is pp (schedules.py:148-175; no flag for another).
- Layers: num_layers % pp == 0 (model/transformer.py:551), num_layers % vpp == 0 (:564); every chunk holds
  num_layers / pp / vpp layers (:569).  vpp itself has no upper limit below layers / pp; the paper uses 1 and 2
  (arXiv 2104.04473, section 5.3.2).
- sp: no flag; ``--sequence-parallel`` came on 2022-04-28 (cfd2e21607, arXiv 2205.05198), first tag with it 23.04
  (arguments.py:778).
- Recompute: ``--checkpoint-activations`` (arguments.py:393) replays all layers, ``--checkpoint-num-layers`` (:400) is
  the length of a replayed block (model/transformer.py:615-619).  v2.6 (2021-08-27) replaces it by
  ``--activations-checkpoint-method uniform|block`` (its arguments.py:417-433); ``block`` replays the first N layers of
  a stage, so for ``megatron==2.6`` say ``whole_recompute=False``.  Selective: 2022-05-16 (bbab79f869).
- ZeRO: none; ``--use-distributed-optimizer``: 2022-02-10 (329fe5820f), merged 2022-06-08 (d07d29df14).
- Data parallelism: ``--DDP-impl local`` (default, arguments.py:578) all-reduces after the last backward pass
  (training.py:368-372): overlap off; ``torch`` (training.py:246) overlaps with the last micro-batch through no_sync
  (schedules.py:118-119), without a pipeline only, and excludes fp32 accumulation (arguments.py:152-154).
- cp: 2023-10-12 (292543d342); experts: 2021-12-17 (be136206d2), expert parallelism 2023-10-06 (e8c22152ea); overlap
  of gradients in ``local``: 2023-09-05 (2d5220a424).
- Rank order tp, dp, pp (mpu/initialize.py:110-117, 153-156).
- Devices: NVIDIA ("Megatron requires CUDA", megatron/initialize.py:47).
- Models: GPT, BERT, T5 with learned positions, LayerNorm, GELU and full key-value heads: arguments.py has no flag for
  rotary positions, gated MLPs, grouped key-value heads or experts.

Letters: A ``arguments.py``, T ``model/transformer.py`` and ``mpu``, S ``schedules.py``, N no flag says it, W the
workload, M the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.backends.backend import Space
from planner.backends.megatron.model_rules_2021 import MODEL_RULES
from planner.backends.rules.columns import Columns
from planner.backends.rules.divisibility import exact_batch, heads, positions
from planner.backends.rules.packed_sequences import packed_sequences
from planner.backends.rules.pipeline import end_problem, placement_problem
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule, used_kinds
from planner.backends.rules.training_kinds import training_kinds
from planner.strategy.strategy import Strategy

_TAG = "Megatron-LM v2.5 megatron"
_PLAIN: Mapping[str, int | bool] = {
    "sp": False,
    "cp": 1,
    "ep": 1,
    "etp": 1,
    "zero_stage": 0,
    "optimizer_offload": False,
    "activation_offload": False,
    "overlap_param_gather": False,
    "overlap_tp": False,
    "overlap_ep": False,
}
"""What a release of 2021 has no flag for, and the value that it runs with."""


def no_flag(source: str, allowed: tuple[str, ...] = ()) -> tuple[SpaceRule, ...]:
    """A rule for each field that has no flag, but for those ``allowed``."""

    def rule(number: int, name: str, plain: int | bool) -> SpaceRule:
        def check(given: RuleInput) -> str | None:
            value = getattr(given.strategy, name)
            return None if value == plain else f"no flag says {name}={value}: it runs with {name}={plain}"

        return SpaceRule(f"N{number}", source, check, (name,))

    return tuple(
        rule(number, name, plain) for number, (name, plain) in enumerate(_PLAIN.items(), 1) if name not in allowed
    )


def spelled(s: Strategy, given: RuleInput) -> Strategy:
    """One spelling for switches that mean nothing beside the others."""
    interleaved = s.schedule == "interleaved" and s.vpp > 1
    return replace(
        s,
        cp_kind="none" if s.cp == 1 else s.cp_kind,
        sp=s.sp and s.tp > 1,
        overlap_tp=s.overlap_tp and s.tp > 1,
        overlap_param_gather=s.overlap_param_gather and s.zero_stage > 0,
        recompute_modules=s.recompute_modules if s.recompute == "selective" else (),
        schedule="1f1b" if s.num_chunks == 1 else s.schedule,
        microbatch_group_size=(s.microbatch_group_size or s.pp) if interleaved else 0,
    )


def widths(given: RuleInput) -> str | None:
    """Do the MLPs divide over tp?"""
    for kind in used_kinds(given.model):
        if kind.mlp and kind.mlp.intermediate_size % given.strategy.tp:
            return f"MLP width {kind.mlp.intermediate_size} does not divide over tp={given.strategy.tp}"
    return None


def whole_recompute(given: RuleInput) -> str | None:
    """Is every layer recomputed, or none?"""
    s = given.strategy
    if s.recompute == "selective":
        return "activation checkpointing replays whole layers: recompute must be full or none"
    for stage in given.layout or ():
        wanted = sum(chunk.num_layers for chunk in stage.chunks) if s.recompute == "full" else 0
        if sum(stage.recompute.num_layers_per_chunk) != wanted:
            return f"activation checkpointing replays all layers or none, not some of stage {stage.stage}"
    return None


def stages_outermost(given: RuleInput) -> str | None:
    """Are pipeline stages the outermost axis?"""
    if given.strategy.axis_order == "tp-cp-ep-dp-pp":
        return None
    return "pipeline stages are the outermost axis: axis_order must be tp-cp-ep-dp-pp"


def chunks_in_place(given: RuleInput) -> str | None:
    """Are all chunks there once, in the order of the layers, on the ranks where the schedule runs them?"""
    return placement_problem(given, of_chunk=end_problem)


def schedule(given: RuleInput) -> str | None:
    """Is the schedule 1F1B, or interleaved with several chunks a rank?"""
    s = given.strategy
    if s.schedule not in ("1f1b", "interleaved"):
        return f"there is no schedule {s.schedule}: 1f1b and interleaved"
    if (s.schedule == "interleaved") != (s.vpp > 1):
        return f"schedule {s.schedule} with vpp={s.vpp}: interleaved means vpp > 1 and 1f1b means vpp = 1"
    return None


def interleaved_stages(given: RuleInput) -> str | None:
    """Has the interleaved schedule more than two stages?"""
    s = given.strategy
    return f"the interleaved schedule needs pp > 2, not {s.pp}" if s.vpp > 1 and s.pp <= 2 else None


def interleaved_micro_batches(given: RuleInput) -> str | None:
    """Do the micro-batches fill whole groups of pp?"""
    s = given.strategy
    if s.vpp == 1:
        return None
    if s.num_microbatches % s.pp:
        return f"the interleaved schedule needs a multiple of pp={s.pp} micro-batches, not {s.num_microbatches}"
    if s.microbatch_group_size not in (0, s.pp):
        return f"micro-batches run in groups of pp={s.pp}, not of {s.microbatch_group_size}"
    return None


def equal_chunks(given: RuleInput) -> str | None:
    """Does every chunk hold equally many layers?"""
    s, layers = given.strategy, given.model.num_layers
    if layers % s.num_chunks:
        return f"{layers} layers do not divide into pp x vpp = {s.num_chunks} equal chunks"
    if given.layers_per_chunk is not None and len(set(given.layers_per_chunk)) > 1:
        return "all chunks hold equally many layers"
    return None


def torch_ddp(given: RuleInput) -> str | None:
    """Does torch's DDP, the one that overlaps, run this?"""
    s = given.strategy
    if not s.overlap_grad_reduce:
        return None
    if s.pp > 1:
        return "gradients are reduced behind the last backward pass of a pipeline: overlap_grad_reduce must be off"
    if given.workload.gradient_dtype == "fp32":
        return "--DDP-impl torch excludes gradients in fp32: overlap_grad_reduce must be off"
    return None


def precision(given: RuleInput) -> str | None:
    """Does the release train in these numbers?"""
    workload = given.workload
    if workload.precision == "fp8":
        return "there is no fp8 training; use precision fp16 or bf16"
    if workload.precision == "bf16" and workload.gradient_dtype != "fp32":
        return "bf16 weights accumulate and reduce gradients in fp32; use gradient_dtype fp32 or precision fp16"
    return None


def optimizer(given: RuleInput) -> str | None:
    """Is the optimizer one that ``--optimizer`` knows?"""
    name = given.workload.optimizer
    return None if name in ("adam", "sgd") else f"--optimizer is adam or sgd, not {name}"


PROBLEM_RULES: tuple[SpaceRule, ...] = (
    training_kinds("Megatron-LM v2.5 megatron/arguments.py: no flag says it"),
    packed_sequences(f"{_TAG}/arguments.py: --reset-attention-mask masks all pairs of a sequence"),
    SpaceRule("A3", f"{_TAG}/arguments.py:217", positions),
    SpaceRule("W1", f"{_TAG}/arguments.py:133-145, 528", precision),
    SpaceRule("W2", f"{_TAG}/arguments.py:430", optimizer),
)
"""Those that no strategy mends, as the model's."""
STRATEGY_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("A1", f"{_TAG}/microbatches.py", exact_batch(), ("micro_batch_size", "num_microbatches", "dp")),
    SpaceRule("A2", f"{_TAG}/arguments.py:119", interleaved_stages, ("vpp", "pp")),
    SpaceRule("S1", f"{_TAG}/schedules.py:28-42", schedule, ("schedule", "vpp")),
    SpaceRule(
        "S2",
        f"{_TAG}/schedules.py:33-36, 148-175",
        interleaved_micro_batches,
        ("num_microbatches", "pp", "microbatch_group_size", "micro_batch_size", "vpp"),
    ),
    SpaceRule("T1", f"{_TAG}/model/transformer.py:551, 564-569", equal_chunks, ("pp", "vpp")),
    SpaceRule("T2", f"{_TAG}/model/transformer.py:133-138", heads, ("tp",)),
    SpaceRule("T3", f"{_TAG}/mpu/layers.py:237, 337", widths, ("tp",)),
    SpaceRule("T4", f"{_TAG}/mpu/initialize.py:110-117, 153-156", stages_outermost, ("axis_order",)),
    SpaceRule("T5", f"{_TAG}/model/transformer.py:573-587", chunks_in_place, ("pp", "vpp")),
    SpaceRule("A4", f"{_TAG}/arguments.py:152-154, schedules.py:118", torch_ddp, ("overlap_grad_reduce", "pp")),
    SpaceRule("A5", f"{_TAG}/arguments.py:393-405", whole_recompute, ("recompute",)),
    *no_flag(f"{_TAG}/arguments.py: no flag says it"),
)

SPACE_2021 = Space(
    columns=Columns(
        schedules=("1f1b", "interleaved"),
        sequence_parallel=(False,),
        expert_parallel=False,
        hybrid_sharding=False,
        group_factors=(1,),
        recompute=("none", "full"),
        cp_kinds=(),
        zero_stages=(0,),
        zero_stages_with_pipeline=(0,),
        axis_orders=(0,),
        expert_tensor_parallel=False,
        optimizer_offload=False,
        activation_offload=False,
        overlap_ep=(False,),
        overlap_tp=False,
        overlap_data=((False, False), (True, False)),
        overlap_grad_with_pipeline=False,
        uniform_recompute=True,
        even_layers=True,
        whole_recompute=True,
    ),
    rules=RuleTable("megatron", (*PROBLEM_RULES, *MODEL_RULES), STRATEGY_RULES),
    spelled=spelled,
)
