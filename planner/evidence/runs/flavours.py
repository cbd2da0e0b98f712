"""The flavours: how each back-end runs what a row leaves unsaid.

A row names degrees; the software decides the rest: the dtype in which gradients are reduced, what overlaps, how layers
are dealt to stages, and what its memory figure means.  These are facts of the software (its defaults, or what the
source writes about its runs), never numbers fitted to the rows.  ``planner.evidence.runs.software`` reads which library
a row is of; a row of none that is known takes Megatron-Core's defaults, which most published tables use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from planner.backends.accelerate import physics as accelerate
from planner.backends.deepspeed import physics as deepspeed
from planner.backends.hugging_face import physics as hugging_face
from planner.backends.llm_foundry import physics as llm_foundry
from planner.backends.megascale import physics as megascale
from planner.backends.megatron import physics as megatron
from planner.backends.megatron_bridge import physics as megatron_bridge
from planner.backends.megatron_deepspeed import physics as megatron_deepspeed
from planner.backends.nanotron import physics as nanotron
from planner.backends.nemo import physics as nemo
from planner.backends.nemo_automodel import physics as nemo_automodel
from planner.backends.pytorch_fsdp import physics as pytorch_fsdp
from planner.backends.torchtitan import physics as torchtitan
from planner.evidence.runs.software import library_of
from planner.predict.physics.host import EAGER_LAUNCH_S
from planner.predict.physics.physics import TUNED, Physics
from planner.question.training import EVERY_TARGET, AdapterTarget
from planner.strategy.strategy import RecomputePolicy

MemoryMeaning = Literal["allocated", "reserved", "process", "resident"]
"""allocated: torch's max_memory_allocated; reserved: its pool; process: what nvidia-smi shows; resident: what stays
allocated between steps (weights, gradients, optimizer)."""
MemoryRank = Literal["worst", "first", "last"]
Dealing = Literal["even", "by_compute"]


@dataclass(frozen=True, slots=True)
class Flavour:
    """Defaults of one back-end as one kind of publication runs it."""

    name: str
    backend: str = ""
    """Back-end that it is of, ``NAME`` or ``NAME==RELEASE``; empty = the source does not say."""
    traits: Physics = TUNED
    gradient_dtype: Literal["fp32", "bf16"] = "fp32"
    zero_stage: int = 1
    sequence_parallel: bool = True
    overlap_grad_reduce: bool = True
    overlap_param_gather: bool = True
    overlap_tp: bool = False
    expert_tensor_parallel_is_tp: bool = True
    dealing: Dealing = "even"
    memory: MemoryMeaning = "allocated"
    memory_rank: MemoryRank = "worst"
    recompute: RecomputePolicy | None = None
    """What the runs recomputed, where the row's column is known to say something else."""
    shards_by_default: bool = False
    """Rows without degrees shard parameters over all devices, each taking its part of the batch at once (JAX)."""
    sharding: str = ""
    """How the runs sharded, where the row's column is known to say something else."""
    step_bytes: float = 0.0
    """Bytes a parameter of this rank's part that the optimizer step allocates as one block each, and frees: an
    allocator without expandable segments cannot cut them from what activations have left, so its pool holds both."""
    whole_layers: bool = False
    """Layers run whole by PyTorch on each device: their memory is ``planner.evidence.runs.whole_layer_memory``'s."""
    forced_balance: bool = False
    """Whether such runs spread tokens evenly over experts by force, or drop what is above the mean."""
    adapts: tuple[AdapterTarget, ...] = EVERY_TARGET
    """Matrices that adapters are on where a row does not name them."""
    megatron_defaults: bool = False
    """Blank feed-forward width = 4 h (8/3 h when gated), blank vocabulary = GPT-2's: Megatron-LM arguments.py."""


NANOTRON = Flavour(
    "nanotron", backend="nanotron", traits=nanotron.NANOTRON, overlap_param_gather=False, dealing="by_compute",
    memory="resident", memory_rank="first",
)  # fmt: skip
"""fp32 accumulation (notes of the rows); ZeRO-1 gathers after the step; stages balanced by FLOPs of their blocks
(nanotron models/base.py, build_model).  Rank 0 prints max_memory_allocated after its counter was reset behind the last
backward pass (trainer.py, log_memory): state of the first stage and what the optimizer step allocates, in GiB."""
NANOTRON_MEETING = replace(NANOTRON, name="nanotron, ranks meet", traits=nanotron.NANOTRON_MEETING)
NANOTRON_STALLING = replace(NANOTRON, name="nanotron, stages stall", traits=nanotron.NANOTRON_STALLING)
VTRAIN = Flavour(
    "Megatron-DeepSpeed, plain DDP", backend="megatron-deepspeed", zero_stage=0, sequence_parallel=False,
    overlap_grad_reduce=False, gradient_dtype="bf16", traits=megatron_deepspeed.MEGATRON_DEEPSPEED,
)  # fmt: skip
"""16-bit all_reduce after the last backward, no buckets (notes of the rows)."""
VTRAIN_ONE_NODE = replace(VTRAIN, name="Megatron-DeepSpeed, plain DDP, activations kept", recompute="none")
"""The recompute column is ``use_checkpoint`` of vTrain's simulator, which itself replays no last stage
(src/predictor.py), and so nothing without a pipeline.  The measured layers of this part replay nothing on any stage:
a layer of hidden 2048 takes 2.0 ms a sample more for each sample, with or without a pipeline; with a replay that were
223 TFLOP/s of an A100 in matmuls, unfused softmax and point-wise work together, without 167."""
MEGATRON_2021 = Flavour(
    "Megatron-LM before 2023", backend="megatron==2.5", zero_stage=0, sequence_parallel=False,
    overlap_grad_reduce=False, overlap_param_gather=False, gradient_dtype="bf16", memory="process",
    traits=megatron.MEGATRON_2021,
)  # fmt: skip
"""No sequence parallelism, no distributed optimizer, one blocking all_reduce of 16-bit gradients."""
MEGATRON_2022 = replace(MEGATRON_2021, name="Megatron-LM of 2022", backend="megatron==23.04")
"""The same with sequence parallelism and selective recompute, where a row says so (arXiv 2205.05198, section 6)."""
FLAT_STEP_BYTES = 6.0
"""A flat 16-bit gradient and its fp32 copy (DeepSpeed, runtime/zero/stage_1_and_2.py, step,
flatten_dense_tensors_aligned and its cast; InternEvo, solver/optimizer/hybrid_zero_optim.py, _step)."""
MEGATRON_DEEPSPEED = replace(
    MEGATRON_2021, name="Megatron-DeepSpeed", backend="megatron-deepspeed",
    traits=replace(megatron_deepspeed.MEGATRON_DEEPSPEED_PIPELINE, accumulation_bytes=6.0),
    step_bytes=FLAT_STEP_BYTES,
)  # fmt: skip
"""MT-NLG and BLOOM: the same Megatron under DeepSpeed's pipeline engine (arXiv 2201.11990, section 3.1; bigscience),
which sends and receives in turn on the stream that computes (deepspeed, runtime/pipe/p2p.py, send: no async_op).
Autograd adds each micro-batch's gradient to the one before: two reads and a write of 16 bit a parameter
(runtime/pipe/engine.py, _exec_backward_pass)."""
BIGSCIENCE_1B3 = replace(MEGATRON_DEEPSPEED, sharding="zero1")
"""Its launcher sets ZERO_STAGE=1 (bigscience@9e64edec2, train/tr3-1B3-baseline/tr3m-1B3-emb-norm-pile.slurm, 117)."""
SAILOR = replace(MEGATRON_DEEPSPEED, name="Sailor (Megatron-DeepSpeed)", memory="allocated")
"""It is built on Megatron-DeepSpeed (eth-easl/sailor, README)."""
FSDP = Flavour(
    "PyTorch FSDP",
    backend="pytorch-fsdp",
    zero_stage=3,
    gradient_dtype="bf16",
    sequence_parallel=False,
    traits=pytorch_fsdp.PYTORCH_FSDP,
)
"""MixedPrecision(param and reduce 16-bit), as llm-foundry's PURE mode and fms-fsdp set it."""
LLM_FOUNDRY = Flavour(
    "llm-foundry (FSDP)",
    backend="llm-foundry",
    zero_stage=3,
    gradient_dtype="bf16",
    sequence_parallel=False,
    traits=llm_foundry.LLM_FOUNDRY,
)
LLM_FOUNDRY_FP32 = replace(LLM_FOUNDRY, name="llm-foundry (FSDP), fp32 reduction", gradient_dtype="fp32")
"""``mp_mode=DEFAULT`` in the notes of a row: Composer then reduces gradients in fp32 (from memory of its manual)."""
LLM_FOUNDRY_FIRST = replace(
    LLM_FOUNDRY_FP32, name="llm-foundry (FSDP), first tables", traits=llm_foundry.LLM_FOUNDRY_FIRST
)
TORCHTITAN = Flavour(
    "torchtitan (FSDP2)", backend="torchtitan", zero_stage=3, memory="reserved", traits=torchtitan.TORCHTITAN
)
"""fp32 gradient reduction (training.mixed_precision_reduce), memory = max_memory_reserved over ranks."""
NEMO = Flavour(
    "NeMo performance recipe", backend="nemo", overlap_tp=True, expert_tensor_parallel_is_tp=False,
    gradient_dtype="bf16", traits=nemo.NEMO, forced_balance=True, adapts=("q", "k", "v"),
)  # fmt: skip
"""User-buffer tp overlap, overlapped distributed optimizer, 16-bit gradient reduction (NeMo performance recipes).
Benchmarks: the router is force-balanced, or experts drop what exceeds their capacity (Megatron-Bridge, its performance
recipes and apply_moe_token_drop).  LoRA is on ``linear_qkv`` alone (NVIDIA/NeMo@v2.0.0, examples/nlp/language_modeling/
tuning/conf/megatron_gpt_finetuning_config.yaml:105; @v2.2.0 and v2.4.0, nemo/collections/llm/recipes/llama3_70b.py:397;
Megatron-Bridge@v0.4.2, scripts/performance/configs/llama/llama3_llm_finetune.py:219)."""
BRIDGE = replace(
    NEMO, name="Megatron-Bridge performance recipe", backend="megatron-bridge==0.5.1", traits=megatron_bridge.RECIPES
)
"""The same recipes from container 25.09 on."""
NEMO_2_2 = replace(
    NEMO, name="NeMo performance recipe of 25.02", backend="nemo==2.2.0", traits=nemo.NEMO_2_2,
    expert_tensor_parallel_is_tp=True,
)  # fmt: skip
"""Recipes until then left the experts' tensor parallelism to Megatron-Core's default, which is tp.  Inferred from
published Grok configurations: ep = dp at every size, and the same one a fifth faster from 25.05 on."""
NEMO_2_1 = replace(
    NEMO_2_2, name="NeMo performance recipe of 2023 and 2024", backend="nemo==2.1.0", traits=nemo.NEMO_2_1
)
MEGATRON_CI = Flavour(
    "Megatron-LM functional test",
    backend="megatron",
    traits=megatron.MEGATRON_TEST,
    zero_stage=0,
    sequence_parallel=False,
    overlap_grad_reduce=False,
    overlap_param_gather=False,
    memory="allocated",
    memory_rank="last",
    megatron_defaults=True,
)
"""Every switch is off unless the row's flags name it; the logging rank is the last one (README)."""
AUTOMODEL = Flavour(
    "NeMo Automodel (FSDP2)", backend="nemo-automodel", zero_stage=3, sequence_parallel=False,
    traits=nemo_automodel.AUTOMODEL,
)  # fmt: skip
"""Hugging Face models under FSDP2: eager point-wise operators, scaled_dot_product_attention."""
NEUSIGHT = Flavour(
    "Hugging Face eager, one forward and backward pass",
    backend="hugging-face",
    zero_stage=0,
    traits=hugging_face.HUGGING_FACE,
)
SIMUMAX = Flavour(
    "Megatron-LM without overlap", backend="megatron", overlap_grad_reduce=False, overlap_param_gather=False
)
"""The ground-truth table says that these runs overlap nothing."""
INTERNEVO = Flavour(
    "InternEvo", backend="internevo", gradient_dtype="bf16", sequence_parallel=False, memory="process",
    overlap_param_gather=False,
    step_bytes=FLAT_STEP_BYTES,
    traits=replace(
        TUNED, launch_s=EAGER_LAUNCH_S, unfused=frozenset({"norm", "cross_entropy"}), accumulation_bytes=6.0,
        zero_all_reduces=True,
    ),
)  # fmt: skip
"""Eager PyTorch.  Norms take a copy of the hidden states in fp32, and are replayed where layers are not; logits turn to
fp32, from which accuracy and perplexity of every micro-batch are made beside the loss (InternLM/InternEvo@c628a8c,
internlm/model/modeling_internlm.py, _dropout_and_norm_attn and dropout_selective_checkpoint; core/naive_amp.py:157;
model/metrics.py, AccPerplex.update).  Counted as several passes of PyTorch's own operators, which is more than its
norms move (46 bytes an element, counted 90) and less than its loss and metrics do (about 75 a logit, counted 45).
Autograd sums 16-bit gradients once a micro-batch; they are reduced after the last one
(solver/optimizer/hybrid_zero_optim.py).  Whatever ``zero1`` is, every rank gets all gradients (the same, 300, and
optimizer/utils.py, 117: an all_reduce), and a step ends when all weights are back (broadcast_params: its handles are
waited for unless overlap_sync_param, which the configurations leave False)."""
JAX = Flavour(
    "JAX / MaxText", backend="maxtext", zero_stage=3, gradient_dtype="fp32", sequence_parallel=False, overlap_tp=True,
    shards_by_default=True,
)  # fmt: skip
"""ici_fsdp_parallelism = -1 and no gradient accumulation are MaxText's defaults (configs/base.yml)."""
ZERO_BUBBLE = replace(
    MEGATRON_2021, name="zero-bubble (Megatron-LM of 2023, fp16)", sequence_parallel=True, memory="allocated"
)
"""Megatron-LM's local kernels without flash attention, fp16, dropout as it is by default (examples/pretrain_zbh1.sh);
the paper counts kept activations with the scores, s b (34 h + 5 a s) (arXiv 2401.10241, section 2.1)."""
BF16_OPTIMIZER = replace(
    MEGATRON_2021, name="Megatron-DeepSpeed, bf16", backend="megatron-deepspeed", gradient_dtype="fp32",
    traits=replace(
        megatron.MEGATRON_2021, reduce_bucket_elements=deepspeed.DEEPSPEED.reduce_bucket_elements, blocking_hops=True,
        accumulation_bytes=megatron_deepspeed.MEGATRON_DEEPSPEED_PIPELINE.accumulation_bytes,
    ),
)  # fmt: skip
"""DeepSpeed's BF16_Optimizer accumulates and reduces gradients in fp32, beside 16-bit ones
(runtime/bf16_optimizer.py; bytes: ``megatron_deepspeed.MEGATRON_DEEPSPEED_PIPELINE``)."""
MEGASCALE = Flavour("MegaScale", backend="megascale", zero_stage=2, overlap_tp=True, traits=megascale.MEGASCALE)
"""ZeRO-2, chunks of an interleaved pipeline, tensor-parallel collectives fused with matmuls (arXiv 2402.15627, sections
2 and 3.2)."""
DEFAULT = Flavour("Megatron-Core defaults")
SOME_FSDP = replace(FSDP, backend="")
"""A row that says FSDP, and not whose."""

TRANSFORMERS_ON_ONE = Flavour(
    "Hugging Face trainer", backend="accelerate", zero_stage=3, gradient_dtype="bf16", sequence_parallel=False,
    traits=accelerate.ACCELERATE, whole_layers=True,
)  # fmt: skip
"""transformers' Trainer, SFTTrainer and scripts around them; several devices: FSDP unless the row says otherwise."""
TRANSFORMERS_DEEPSPEED = replace(
    TRANSFORMERS_ON_ONE, name="Hugging Face models under DeepSpeed", backend="deepspeed", traits=deepspeed.DEEPSPEED
)
TORCHTUNE = Flavour(
    "torchtune", zero_stage=3, gradient_dtype="bf16", sequence_parallel=False, whole_layers=True,
    traits=replace(hugging_face.TRANSFORMERS, name="torchtune", summary="torchtune", norm_copies=2.0),
)  # fmt: skip
"""Recipes of its own layers: plain PyTorch modules, bf16 weights and states by default (recipes, dtype=bf16)."""
LITGPT = replace(
    TORCHTUNE, name="litgpt", traits=replace(hugging_face.TRANSFORMERS, name="litgpt", summary="litgpt under Fabric")
)
COMPILED_FSDP = Flavour(
    "PyTorch FSDP2, compiled", zero_stage=3, gradient_dtype="fp32", sequence_parallel=False, whole_layers=True,
    traits=replace(hugging_face.TRANSFORMERS, name="fsdp2-compiled", summary="FSDP2, compiled", fp32_shards=True),
)  # fmt: skip
PLAIN_GATE = replace(TUNED, keeps_gate_output=True, unfused=frozenset({"activation", "rope"}))
PADDLE = Flavour("PaddleNLP", gradient_dtype="bf16", memory="process", traits=PLAIN_GATE)
"""Fused norms and flash attention by flags; SiLU, product and rotation are Paddle's own kernels (FlagPerf@1b5a03039,
training/nvidia/llama1_7B-paddle/config: use_fused_rms_norm; PaddleNLP, transformers/llama/modeling.py, LlamaMLP)."""
MEGATRON_2023 = Flavour(
    "Megatron-LM of 2023", memory="process", traits=replace(PLAIN_GATE, attention_output_copies=1.0)
)
"""FlagScale, a fork of Megatron-LM of 2023: SwiGLU as torch's silu and product, flash-attention's package on transposed
copies (Megatron-LM 23.x, core/transformer/mlp.py, model/transformer.py FlashSelfAttention)."""
FLAGSCALE = Flavour("Megatron-DeepSpeed since FlashAttention", memory="process", sequence_parallel=False)

OF_ITS_LIBRARY = (NANOTRON, LLM_FOUNDRY, TORCHTITAN, JAX, AUTOMODEL, NEMO, BRIDGE, MEGASCALE)
"""Flavours whose library is called like the back-end."""
FLAVOURS: tuple[tuple[str, Flavour], ...] = (
    *((flavour.backend.partition("==")[0], flavour) for flavour in OF_ITS_LIBRARY),
    ("nemo-2.1", NEMO_2_1),
    ("nemo-2.2", NEMO_2_2),
    ("vtrain-one-node", VTRAIN_ONE_NODE),
    ("vtrain", VTRAIN),
    ("megatron-test", MEGATRON_CI),
    ("megatron-deepspeed-2021", MEGATRON_DEEPSPEED),
    ("bigscience-1b3", BIGSCIENCE_1B3),
    ("megatron-2023", MEGATRON_2023),
    ("megatron-2021", MEGATRON_2021),
    ("megatron-2022", MEGATRON_2022),
    ("fms-fsdp", FSDP),
    ("simumax", SIMUMAX),
    ("hf-one-pass", NEUSIGHT),
    ("sailor", SAILOR),
    ("internevo", INTERNEVO),
    ("zero-bubble", ZERO_BUBBLE),
    ("hf-trainer", TRANSFORMERS_ON_ONE),
    ("hf-fsdp", TRANSFORMERS_ON_ONE),
    ("hf-deepspeed", TRANSFORMERS_DEEPSPEED),
    ("torchtune", TORCHTUNE),
    ("litgpt", LITGPT),
    ("pytorch-fsdp2", COMPILED_FSDP),
    ("paddlenlp", PADDLE),
    ("megatron-deepspeed", FLAGSCALE),
)
"""Library, as ``planner.evidence.runs.software_rules`` names it, and its defaults."""


STUDIED_DEVICES = re.compile(r"^(a100|a800|h100|h800|h200)\b", re.IGNORECASE)
UNDER_NEMO = frozenset(each.name for each in (megatron_bridge.RECIPES, nemo.NEMO, nemo.NEMO_2_2, nemo.NEMO_2_1))
STUDIED_UNDER_NEMO = re.compile(r"^(a100|h100|h200|b200|b300|gb200|gb300)\b", re.IGNORECASE)
"""Devices on which spreads of whole steps were found (``Physics.time_spread``): a row of another device has the prior's
interval, because a kernel library that is new to a device may be far from the rates of older ones."""


def studied_on(flavour: Flavour, device: str) -> bool:
    """Whether the spread of this flavour's physics was found on devices like this one."""
    known = STUDIED_UNDER_NEMO if flavour.traits.name in UNDER_NEMO else STUDIED_DEVICES
    return known.search(device) is not None


def flavour_of_library(library: str, zero_or_fsdp: str) -> Flavour:
    """Defaults for a row: of its library, else FSDP where the row says so, else Megatron-Core."""
    known = dict(FLAVOURS).get(library)
    if known is not None:
        return known
    return SOME_FSDP if "fsdp" in zero_or_fsdp.lower() else DEFAULT


def flavour_of(source: str, zero_or_fsdp: str) -> Flavour:
    """The same for the library that a source's words name."""
    return flavour_of_library(library_of(source), zero_or_fsdp)
