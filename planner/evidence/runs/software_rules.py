"""The rules by which a row's software is read from its own words: one table, first match of a fact wins.

A rule looks for a pattern in some columns of the row and gives one fact one value.  Facts are those of
``planner.evidence.runs.software``; a column of the fact's own name (``attention``, ``training``, ...) goes before every
rule, so a CSV can state what its rows' words do not.  Rules of the column ``source`` with ``publication`` state what a
publication says about all of its runs, outside of its rows: they are facts of software, never numbers, and
``meshwright accuracy`` leaves them out when it judges a source as unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

NOTES = ("framework", "notes")
ANYWHERE = ("framework", "notes", "source")
SOURCE = ("source",)


@dataclass(frozen=True, slots=True)
class Rule:
    """``pattern`` in one of ``columns`` gives ``fact`` its ``value``."""

    fact: str
    value: str
    columns: tuple[str, ...]
    pattern: str
    why: str
    publication: bool = False

    def says(self, words: dict[str, str]) -> bool:
        """Whether the row's words match."""
        return any(_compiled(self.pattern).search(words[column]) for column in self.columns)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _published(value: str, pattern: str, why: str) -> Rule:
    return Rule("library", value, SOURCE, pattern, why, publication=True)


def _library(value: str, pattern: str, columns: tuple[str, ...] = SOURCE, why: str = "the library by its name") -> Rule:
    return Rule("library", value, columns, pattern, why)


LIBRARY_RULES: tuple[Rule, ...] = (
    _published("nanotron", r"huggingface_data|Ultra-Scale", "the Ultra-Scale Playbook's sweep was run with nanotron"),
    _published(
        "vtrain-one-node", r"vTrain:data/ground_truth_single", "Megatron-DeepSpeed, plain DDP, nothing replayed"
    ),
    _published("vtrain", r"vTrain", "Megatron-DeepSpeed, plain DDP without buckets"),
    _library("nanotron", r"\bnanotron\b", ANYWHERE),
    _library("megatron-test", r"NVIDIA/Megatron-LM:tests", why="Megatron-LM's own functional tests, by their folder"),
    _published("bigscience-1b3", r"bigscience:experiments/tr3m", "its launcher shards the optimizer (ZERO_STAGE=1)"),
    _published("megatron-deepspeed-2021", r"2201\.11990|bigscience", "Megatron-LM of 2021 under DeepSpeed's engine"),
    _published("megatron-2021", r"2104\.04473", "Megatron-LM before sequence parallelism and flash attention"),
    _published("megatron-2022", r"2205\.05198", "Megatron-LM with sequence parallelism and selective recompute"),
    _library(
        "megatron-2021", r"Megatron-LM commit \w+ \(20(19|20|21)\)", NOTES, "Megatron-LM by the date of its commit"
    ),
    _library("llm-foundry", r"llm-foundry"),
    _library("fms-fsdp", r"fms-fsdp|foundation-model-stack/(?!fms-acceleration)"),
    _library(
        "hf-deepspeed",
        r"\bHF\b[^;]*DeepSpeed|(?<!FSDP )(\b|_)pytorch_deepspeed\b",
        NOTES,
        "transformers under DeepSpeed",
    ),
    _library(
        "hf-trainer", r"SFTTrainer|HF Trainer|\bhf-trainer\b|transformers\.Trainer", NOTES, "transformers' Trainer"
    ),
    _library("torchtitan", r"torchtitan", ANYWHERE),
    _library("torchtitan", r"awsome-distributed-training", why="its Llama example runs torchtitan"),
    _library("maxtext", r"maxtext|paxml|tpu-recipes|levanter", ANYWHERE, "JAX compiled by XLA"),
    _library("nemo-automodel", r"Automodel", ANYWHERE),
    _library("paddlenlp", r"PaddleNLP", NOTES),
    _library("megatron-2023", r"\bFlagScale \(Megatron", NOTES, "FlagScale of 2023, a fork of Megatron-LM"),
    _library("megatron-deepspeed", r"\bMegatron-DeepSpeed, flash", NOTES, "Megatron-DeepSpeed since FlashAttention"),
    _library(
        "nemo-2.1",
        r"\bNeMo 24\.\d\d|\brelease v?24\.\d\d|\bNeMo Framework Launcher",
        NOTES,
        "NeMo of 2023 and 2024, by its release",
    ),
    _library("nemo-2.2", r"\brelease v?25\.0[0-3]\b", NOTES, "NeMo before 25.04, by its release"),
    _library("nemo", r"Megatron-Bridge|NeMo|nemo-framework|dgxc-benchmarking"),
    _library("nemo", r"NVIDIA NeMo|\bNeMo (Framework|container)", NOTES, "NeMo by its name in the notes"),
    _published(
        "nemo", r"mlcommons|MLPerf", "MLPerf's submissions of language models run NeMo unless they say otherwise"
    ),
    _published("simumax", r"SimuMax", "Megatron-LM whose communication overlaps nothing"),
    _published("hf-one-pass", r"NeuSight", "transformers, eager, one forward and backward pass in fp32"),
    _published("sailor", r"sailor", "built on Megatron-DeepSpeed"),
    _library("internevo", r"InternEvo", ANYWHERE),
    _published("zero-bubble", r"zero-bubble|2401\.10241", "Megatron-LM of 2023, fp16, no flash attention"),
    _library("megascale", r"2402\.15627|MegaScale", why="arXiv 2402.15627 is MegaScale's own paper"),
    _library("torchtune", r"torchtune", ANYWHERE),
    _library("litgpt", r"litgpt|lit-gpt", ANYWHERE),
    _library("hf-fsdp", r"QLoRA[^;]*bitsandbytes|fsdp_qlora", ANYWHERE, "transformers layers over bitsandbytes, FSDP"),
    _library("hf-fsdp", r"vectorlm", ANYWHERE, "transformers layers under FSDP"),
    _library("pytorch-fsdp2", r"\(FSDP2, torch\.compile", NOTES, "PyTorch FSDP2 around compiled transformers layers"),
)
"""Which software it was.  Names of files, repositories and papers count only where they name the software itself."""

KIND_RULES: tuple[Rule, ...] = (
    Rule("training", "full", NOTES, r"(^|; )full[ -]?(parameter |fine-?tun)", "all weights learn, with any plug-in"),
    Rule(
        "training",
        "qlora",
        ("notes", "model"),
        r"\bqlora\b|lora[^;]*(gptq|nf4|4.?bit)",
        "adapters on quantised weights",
    ),
    Rule("training", "lora", ("notes", "model"), r"(?<!q-)(?<!kv-)\blora\b|\bpeft\b", "adapters on frozen weights"),
    Rule("quantization", "gptq", NOTES, r"gptq", "4 bit in groups of 128, fp16 scales"),
    Rule("quantization", "nf4-dq", NOTES, r"nf4-dq", "NormalFloat 4 with quantised scales, which the row names"),
    Rule("quantization", "int8", NOTES, r"bnb\.int8|8-bit (base|weights)", "bitsandbytes int8"),
    Rule("quantization", "none", NOTES, r"quantization none", "weights as they are trained"),
    Rule("quantization", "nf4", NOTES, r"bnb\.nf4", "litgpt: NormalFloat 4, fp32 scales of 64"),
    Rule(
        "quantization",
        "nf4-dq",
        NOTES,
        r"nf4|bitsandbytes|\bqlora\b|bnb",
        "QLoRA's NormalFloat 4 with quantised scales",
    ),
    Rule("task", "rl", NOTES, r"\bRL (trainer )?step\b", "a policy step with log-probabilities"),
)
"""What learns, and on what."""

KERNEL_RULES: tuple[Rule, ...] = (
    Rule("compiled", "no", NOTES, r"\beager\b|compile off|without compile|not compiled", "PyTorch as it comes"),
    Rule("compiled", "thunder", NOTES, r"\bthunder\b", "Lightning's thunder, with a data parallelism of its own"),
    Rule(
        "compiled",
        "yes",
        NOTES,
        r"(?<!not )\bcompiled?\b|torch\.?compile",
        "a compiler fuses point-wise work",
    ),
    Rule(
        "attention",
        "unfused",
        NOTES,
        r"eager attention|attn_implementation=eager|attention-backend=unfused",
        "batched matmuls around a softmax",
    ),
    Rule("attention", "best", NOTES, r"flash.?att\w*.?3\b|FA3|cudnn", "the fastest published kernel of the device"),
    Rule("attention", "flash2", NOTES, r"flash.?att|\bSDPA\b|\bsdpa\b|FA2", "FlashAttention-2"),
    Rule("kernels", "liger", NOTES, r"\bliger\b", "Liger: Triton norms, rotation, SwiGLU, and loss"),
    Rule(
        "kernels", "fast-kernels", NOTES, r"\bfoak\b|unsloth|fast.kernels", "fused adapters, norms, rotation and loss"
    ),
    Rule("kernels", "te", NOTES, r"TransformerEngine|\bTE\b", "TransformerEngine"),
    Rule("loss", "plain", NOTES, r"cumulative flags up to (baseline|\+compile)", "before the table's chunked loss"),
    Rule("loss", "chunked", NOTES, r"chunked cross.?entropy|liger|fused linear", "logits in parts"),
    Rule("loss", "chunked", ANYWHERE, r"torchtune", "CEWithChunkedOutputLoss is its recipes' default"),
    Rule(
        "loss",
        "log-probabilities",
        NOTES,
        r"\bRL trainer step\b",
        "log-probabilities and entropies of sampled tokens, in chunks: whole logits would exceed what such rows hold",
    ),
    Rule("loss", "fused", NOTES, r"\bfoak\b|unsloth", "one Triton kernel over the logits"),
    Rule(
        "loss",
        "wide",
        NOTES,
        r"\bNeMo 24\.\d\d|\brelease v?24\.\d\d|\bNeMo Framework Launcher",
        "before Megatron-LM could take TransformerEngine's loss (0f60adbd3, 8 March 2025): fp32 logits",
    ),
    Rule(
        "loss",
        "fused",
        NOTES,
        r"torchtitan.*compile.*\btorch 2\.(8|9|[1-9]\d)",
        "torchtitan compiled its loss in autumn 2024 (e10cb9494 to e8977b007) and does since spring 2025 (d1f62be73)",
    ),
    Rule(
        "loss",
        "fused",
        SOURCE,
        r"torchtitan:benchmarks/\S*_2025(0[5-9]|1[0-2])",
        "the same, by the month of the benchmark",
        publication=True,
    ),
)
"""How it is computed."""

MEMORY_RULES: tuple[Rule, ...] = (
    Rule("states", "paged8bit", NOTES, r"\bpaged", "8-bit moments in managed memory, outside torch's allocator"),
    Rule("states", "8bit", NOTES, r"8.?bit (Adam|AdamW|optim)|AdamW?8bit", "two 8-bit moments, no master copy"),
    Rule(
        "states",
        "sharded16bit",
        NOTES,
        r"full finetune;[^;]*requirements_granite",
        "its scenario sets no bf16 flag: Accelerate casts nothing up (scenarios-granite.yaml; accelerate PR 2674)",
        publication=True,
    ),
    Rule("states", "16bit", NOTES, r"pure bf16|bf16-true|pure 16", "weights, gradients and moments in 16 bit"),
    Rule("residual", "16bit", NOTES, r"accelerated-peft|foak", "its plugin leaves norms and embedding in 16 bit"),
    Rule("step_in_backward", "yes", NOTES, r"optimizer.in.backward", "gradients are used and freed one by one"),
    Rule(
        "step_in_backward",
        "yes",
        NOTES,
        r"cumulative flags up to \+(activation offloading|8-bit)",
        "torchtune's table adds them after the optimizer in backward",
        publication=True,
    ),
    Rule("offload", "parameters", ("zero_or_fsdp", "notes"), r"cpu.offload", "shards wait on the host"),
    Rule(
        "offload",
        "activations",
        NOTES,
        r"activation offloading|checkpointing=Offload|activations offloaded",
        "layer inputs wait on the host",
    ),
    Rule("memory_figure", "reserved", NOTES, r"max.reserved|reserved memory", "the allocator's pool"),
    Rule(
        "memory_figure",
        "allocated",
        NOTES,
        r"peak allocated|max allocated|max.memory.allocated|ACTIVE|torch peak",
        "tensors in use",
    ),
    Rule(
        "memory_figure",
        "process",
        NOTES,
        r"nvidia-smi|memory as printed \('G'\)|rounded to GiB|largest pipeline stage",
        "what the driver counts, context and pool included",
    ),
)
"""What the memory figure counts, and what is kept."""

RULES: tuple[Rule, ...] = (*LIBRARY_RULES, *KIND_RULES, *KERNEL_RULES, *MEMORY_RULES)
