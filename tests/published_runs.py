"""Published training runs, as they are asked about: what ran, on what, with which strategy, and the step measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from planner.model.load import load_model
from planner.model.spec import ModelSpec
from planner.question.optimizers import OptimizerName
from planner.question.problem import Constraints, Problem, Workload
from planner.question.work_kind import Precision
from profiles.catalogue import load_cluster

NEMOTRON = """
name: nemotron-4-340b
num_layers: 96
hidden_size: 18432
num_heads: 96
num_kv_heads: 8
intermediate_size: 73728
vocab_size: 256000
max_sequence_length: 4096
mlp: squared_relu
norm: layer
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A published run: as it is asked about, and the step that its source measured (None = it states none)."""

    model: str
    cluster: str
    devices: int
    batch: int
    sequence: int
    precision: Precision
    backend: str
    strategy: str
    measured_s: float | None = None
    optimizer: OptimizerName = "adam"


TURING = ("gpt-530b", "dgx-a100-80g")
GPT3 = ("gpt3-175b", "dgx-a100-80g")
FULL = {
    "mt-nlg-530b-280": Run(
        *TURING, 2240, 1920, 2048, "bf16", "megatron-deepspeed", "tp=8,pp=35,dp=8,recompute=full", 60.1
    ),
    "mt-nlg-530b-350": Run(
        *TURING, 2800, 1920, 2048, "bf16", "megatron-deepspeed", "tp=8,pp=35,dp=10,recompute=full", 50.2
    ),
    "mt-nlg-530b-420": Run(
        *TURING, 3360, 1920, 2048, "bf16", "megatron-deepspeed", "tp=8,pp=35,dp=12,recompute=full", 44.4
    ),
    "sc21-175b-384": Run(*GPT3, 384, 1536, 2048, "fp16", "megatron==2.5", "tp=8,pp=12,zero=0,recompute=full", 76.8),
    "sc21-175b-1536": Run(*GPT3, 1536, 1536, 2048, "fp16", "megatron==2.5", "tp=8,pp=12,zero=0,recompute=full", 20.8),
    "sc21-1t": Run(
        "gpt-1t", "dgx-a100-80g", 3072, 3072, 2048, "fp16", "megatron==2.5", "tp=8,pp=64,zero=0,recompute=full", 102.63
    ),
    "bloom-176b": Run(
        *("bloom-176b", "dgx-a100-80g", 384, 2048, 2048, "bf16", "megatron-deepspeed"),
        "tp=4,pp=12,dp=8,mbs=2,zero=1,recompute=full",
        104.7,
    ),
}
"""MT-NLG: arXiv 2201.11990, section 2.4; SC'21: arXiv 2104.04473, tables 1 and 2; BLOOM: bigscience tr11-176B-ml."""
OTHERS = {
    # Optimizer states and gradients are sharded (arXiv 2407.21783, section 3.3.2): ZeRO-2, no recompute, interleaved.
    "llama-3-405b": Run(
        *("llama-3.1-405b", "dgx-h100", 16384, 2048, 8192, "bf16", "megatron"),
        "tp=8,pp=16,dp=128,zero=2,vpp=8,recompute=none",
        6.46,
    ),
    # arXiv 2406.11704, table 2.
    "nemotron-4-340b": Run(
        "nemotron", "dgx-h100", 6144, 2304, 4096, "bf16", "megatron", "tp=8,pp=12,vpp=8,dp=64,zero=1", 8.0
    ),
    # DualPipe keeps twice the parameters; its V-shaped form is the nearest schedule there is.  Norms, up-projections of
    # latent attention and SwiGLU outputs are replayed (arXiv 2412.19437, sections 3.2.3 and 3.3.3).
    "deepseek-v3": Run(
        *("deepseek-v3", "dgx-h800", 2048, 15360, 4096, "fp8", "unrestricted"),
        "pp=16,ep=64,dp=128,zero=1,schedule=dualpipev,overlap_ep=true,recompute_modules=norm+activation+mla_up_proj",
        19.9,
        "adam_bf16_states",
    ),
}


def problem_of_run(run: Run, folder: Path) -> Problem:
    """The question that the run answers; ``folder`` takes the file of a model that has no name here."""
    return Problem(
        model=model_of_run(run, folder),
        cluster=load_cluster(run.cluster, run.devices),
        workload=Workload(
            global_batch_size=run.batch,
            sequence_length=run.sequence,
            precision=run.precision,
            optimizer=run.optimizer,
        ),
        constraints=Constraints(backends=(run.backend,)),
    )


def model_of_run(run: Run, folder: Path) -> ModelSpec:
    """Its model."""
    if run.model != "nemotron":
        return load_model(run.model)
    path = folder / "nemotron-4-340b.yaml"
    path.write_text(NEMOTRON)
    return load_model(str(path))
