"""The publication of a row: a readable group name for each source string.

Reports group rows by publication, because each has its own conventions, noise and trust.  A source that the table
does not know is grouped by its repository, paper number or host name.
"""

from __future__ import annotations

import re

KNOWN_SOURCES: tuple[tuple[str, str], ...] = (
    (r"huggingface_data|Ultra-Scale", "HF Ultra-Scale (nanotron)"),
    (r"imec_data/uci|UCI", "UCI (4 x A100)"),
    (r"VIA-Research/vTrain.*single", "vTrain, one node"),
    (r"VIA-Research/vTrain", "vTrain, many nodes"),
    (r"mosaicml/llm-foundry", "llm-foundry (FSDP)"),
    (r"NVIDIA-NeMo/Megatron-Bridge", "Megatron-Bridge"),
    (r"NVIDIA-NeMo/Automodel", "NeMo Automodel"),
    (r"NeMo-Framework-Launcher", "NeMo launcher"),
    (r"NVIDIA(-NeMo)?/NeMo\b|docs\.nvidia\.com/nemo-framework", "NeMo"),
    (r"dgxc-benchmarking", "dgxc-benchmarking"),
    (r"NVIDIA/Megatron-LM:tests", "Megatron-LM CI (memory)"),
    (r"bigscience", "BLOOM tuning"),
    (r"2205\.05198|Korthikanti", "Korthikanti et al."),
    (r"2104\.04473", "Narayanan et al. (SC'21)"),
    (r"2201\.11990", "MT-NLG 530B"),
    (r"2402\.15627|MegaScale", "MegaScale"),
    (r"2407\.21783", "Llama 3 report"),
    (r"zero-bubble|2401\.10241", "Zero-bubble"),
    (r"2504\.14960", "MoE Parallel Folding"),
    (r"InternEvo", "InternEvo"),
    (r"torchtitan|awsome-distributed-training", "torchtitan"),
    (r"fms-acceleration", "fms-acceleration"),
    (r"fms-fsdp|foundation-model-stack", "fms-fsdp"),
    (r"MindSpeed", "MindSpeed-LLM (Ascend)"),
    (r"[Mm]ax[Tt]ext|tpu-recipes|gpu-recipes", "MaxText and cloud recipes"),
    (r"aws-neuron", "Neuron (Trainium)"),
    (r"mlcommons|[Mm][Ll][Pp]erf", "MLPerf training"),
    (r"SimuMax", "SimuMax"),
    (r"[Ss]ailor", "Sailor"),
    (r"NeuSight", "NeuSight"),
    (r"[Ll]i[Bb]ai", "LiBai"),
    (r"Primus", "Primus"),
    (r"xtuner", "xtuner"),
)
REPOSITORY = re.compile(r"^github:([^/\s]+/[^/:@\s]+)")
PAPER = re.compile(r"^(arXiv:\d+\.\d+)")
HOST = re.compile(r"^https?://([^/\s]+)")


def source_group(source: str) -> str:
    """Readable name of the publication that ``source`` points to."""
    for pattern, name in KNOWN_SOURCES:
        if re.search(pattern, source):
            return name
    for rule in (REPOSITORY, PAPER, HOST):
        match = rule.match(source)
        if match:
            return match[1]
    return source.split(maxsplit=1)[0][:60] if source.split() else "unnamed"
