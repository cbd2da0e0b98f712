"""The flags that commands share: one definition each, so that a flag means the same everywhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.backend_names import complete_backends
from planner.cli.output import OutputFormat
from planner.question.fp8_recipes import Fp8RecipeName
from planner.question.optimizers import OptimizerName


class PrecisionName(StrEnum):
    """Precision of the matrix products."""

    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"


class ObjectiveChoice(StrEnum):
    """What the search minimises, or of tokens a day finds the most."""

    STEP_TIME = "step_time"
    DEVICES = "devices"
    COST = "cost"
    TOKENS_PER_DAY = "tokens_per_day"


class PreferChoice(StrEnum):
    """Which plan of those that the model cannot tell apart."""

    RECOMMENDED = "recommended"
    FASTEST = "fastest"


Output = Annotated[OutputFormat, typer.Option("--output", "-o", help="How to print the answer.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes and no progress on stderr.")]
Model = Annotated[
    str,
    typer.Option("--model", "-m", metavar="M", help="HF config.json, Megatron args, model YAML, or a built-in name."),
]
ClusterReference = Annotated[
    str, typer.Option("--cluster", "-c", metavar="C", help="Cluster YAML or a built-in name (see clusters list).")
]
Devices = Annotated[int | None, typer.Option("--devices", "-n", metavar="N", help="Scale the cluster to N devices.")]
WorkloadFile = Annotated[
    Path | None, typer.Option("--workload", "-w", metavar="FILE", help="Workload YAML; flags below override it.")
]
GlobalBatchSize = Annotated[int | None, typer.Option("--global-batch-size", metavar="B", help="Samples a step.")]
SequenceLength = Annotated[int | None, typer.Option("--sequence-length", metavar="S", help="Tokens a sample.")]
Sample = Annotated[
    str | None,
    typer.Option("--sample", metavar="FxHxW", help="Frames, height, width of a sample (diffusion models)."),
]
Precision = Annotated[PrecisionName | None, typer.Option("--precision", help="Matrix precision (default bf16).")]
Optimizer = Annotated[
    OptimizerName | None, typer.Option("--optimizer", help="What updates the weights (default adam).")
]
Fp8Recipe = Annotated[
    Fp8RecipeName | None,
    typer.Option("--fp8-recipe", help="How operands of 8-bit products are scaled, with --precision fp8."),
]
OptimizerStates = Annotated[
    str | None,
    typer.Option(
        "--optimizer-states",
        metavar="K=V,...",
        help="Number formats of adam_precision_aware: first, second and master, for example first=fp8,second=fp16.",
    ),
]
SourceLength = Annotated[
    int | None,
    typer.Option("--source-length", metavar="S", min=1, help="Tokens a sample of an encoder-decoder's encoder."),
]
Images = Annotated[
    int | None, typer.Option("--images", metavar="N", min=0, help="Images a sample, for models with a vision tower.")
]
AudioClips = Annotated[
    int | None,
    typer.Option("--audio-clips", metavar="N", min=0, help="Clips of audio a sample, for models with an audio tower."),
]
Routing = Annotated[
    str | None,
    typer.Option(
        "--routing",
        metavar="even|zipf:A|FILE",
        help="How tokens spread over routed experts: even, zipf:EXPONENT, or a file with the tokens of each expert"
        " (default: as published logs show).",
    ),
]
Training = Annotated[
    str | None,
    typer.Option(
        "--training",
        metavar="KIND[,K=V]...",
        help="What learns: pretrain (default), full, lora, qlora; options rank=16, targets=all-linear or q+k+v+o+gate"
        "+up+down, dora, ends, base=nf4|int8|gptq, task=language_model|dpo|orpo|reward,"
        " reference=resident|offloaded|shared|precomputed, frozen_towers=all or vision+audio.",
    ),
]
Sequences = Annotated[
    str | None,
    typer.Option(
        "--sequences",
        metavar="padded|packed,...",
        help="Lengths of documents (mean=N, p50=N, p99=N, or file=FILE) and how they fill sequences: padded, or packed"
        " with packing=concatenated|greedy|balanced (default: each sequence is one document).",
    ),
]
Objective = Annotated[
    ObjectiveChoice,
    typer.Option("--objective", help="What to minimise; tokens_per_day: the most, with failures and spare nodes."),
]
Reliability = Annotated[
    str | None,
    typer.Option(
        "--reliability",
        metavar="K=V,...",
        help="For --objective tokens_per_day: storage_bandwidth_bytes_per_s=2e12,repair_hours=48, and what else"
        " `meshwright goodput` takes.",
    ),
]
STORAGE_BANDWIDTH = typer.Option(
    "--storage-bandwidth", metavar="GB/S", help="What the storage takes and gives, all nodes together."
)
FailureRate = Annotated[
    float | None,
    typer.Option("--failure-rate", metavar="X", help="Failures of one device an hour, in place of a published run's."),
]
NoStore = Annotated[bool, typer.Option("--no-store", help="Do not keep the plans in the database.")]
Price = Annotated[
    float | None, typer.Option("--price", metavar="X", help="Price of a device hour, for --objective cost.")
]
MaxStepTime = Annotated[
    float | None, typer.Option("--max-step-time", metavar="SECONDS", help="Refuse plans that are slower a step.")
]
MinTokensPerSecond = Annotated[
    float | None, typer.Option("--min-tokens-per-s", metavar="X", help="Refuse plans with a lower rate.")
]
Pin = Annotated[
    list[str] | None,
    typer.Option("--pin", metavar="K=V,...", help="Fix a strategy field, for example tp=8. Repeatable."),
]
Forbid = Annotated[
    list[str] | None,
    typer.Option("--forbid", metavar="K,...", help="Exclude an axis or switch, for example cp. Repeatable."),
]
Backend = Annotated[
    str,
    typer.Option(
        "--backend",
        metavar="B[==RELEASE],...",
        help="Software that may run it: names of backends list; any: all that files can be written for;"
        " unrestricted: the whole declared space, for study.",
        autocompletion=complete_backends,
    ),
]
MaybeBackend = Annotated[
    str | None,
    typer.Option(
        "--backend",
        metavar="B[==RELEASE],...",
        help="Software that may run it: names of backends list; any (default; with --from that of the script): all"
        " that files can be written for;"
        " unrestricted: the whole declared space, for study.",
        autocompletion=complete_backends,
    ),
]
MemoryMargin = Annotated[
    float | None,
    typer.Option("--memory-margin", metavar="F", help="Part of device memory kept free, 0 to 1; instead of --fits."),
]
Fits = Annotated[
    float | None,
    typer.Option("--fits", metavar="P", help="Least chance that the plan fits in memory, 0 to 1 (default 0.95)."),
]
Prefer = Annotated[
    PreferChoice,
    typer.Option("--prefer", help="Among plans about as fast as the fastest: the surest and simplest, or the fastest."),
]
Profile = Annotated[
    str,
    typer.Option("--profile", metavar="P", help="Measurements to use: auto (what is stored), none, a file or an id."),
]
Calibration = Annotated[
    str | None,
    typer.Option(
        "--calibration",
        metavar="FILE|ID",
        help="Correct predictions by the factors of a back-end (see profile calibrate); never applied unasked.",
    ),
]
TopK = Annotated[int, typer.Option("--top", metavar="K", help="Runners-up to report.")]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", metavar="SECONDS", help="Stop searching and report the gap.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of every tie-break.")]
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="Plan database (default: $MESHWRIGHT_DATABASE, else SQLite).",
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Ask the service at URL (default: $MESHWRIGHT_SERVER, else this machine; key: $MESHWRIGHT_API_KEY).",
    ),
]
PlanReference = Annotated[
    str,
    typer.Argument(metavar="PLAN", help="Stored plan id, unique prefix or label; a plan JSON file; an emitted folder."),
]
