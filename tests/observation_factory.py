"""Small imports made by hand, for tests of the store and of the command line."""

from __future__ import annotations

from collections.abc import Sequence

from profiles.importing.imported import Batch, Imported
from profiles.observations.environment import Environment
from profiles.observations.records import (
    CollectiveObservation,
    IterationObservation,
    LinkObservation,
    OperatorObservation,
)
from profiles.observations.source import Source
from profiles.observations.timing import Timing

H100 = Environment(
    device="h100-sxm5-80gb",
    device_reported="NVIDIA H100 80GB HBM3",
    runtime_version="12.8",
    communication_library="nccl",
    communication_library_version="2.27.3",
)


def matmul(m: int, time_s: float, *, dtype: str = "bf16", **shape: int) -> OperatorObservation:
    """A matmul of m x 4096 x 1024."""
    sizes = {"m": m, "n": 4096, "k": 1024, **shape}
    return OperatorObservation("matmul", "aten::mm", Timing(time_s, "median", 20), "forward", dtype, sizes)


def all_reduce(size_bytes: int, time_s: float, *, group_size: int = 8) -> CollectiveObservation:
    """An all_reduce over one node."""
    timing = Timing(time_s, "mean", 20)
    return CollectiveObservation("all_reduce", size_bytes, group_size, timing, "fp32", num_nodes=1, row=7)


def one_of_each() -> Imported:
    """Every kind of observation, with every optional part used somewhere, and a failed case of two kinds."""
    full = Timing(2e-3, "median", 10, 1e-3, 1.1e-3, 2.5e-3, 3e-3, 2e-4)
    failed = OperatorObservation(
        "attention", "flash", None, "backward", "fp8", {"head_dim": 128}, causal=True, ok=False, error="out of memory"
    )
    batch = Batch(
        H100,
        operators=[
            matmul(16, 1e-5),
            OperatorObservation(
                *("norm", "rms_norm", full),
                detail={"é": "ü", "fused": True, "blocks": 3, "ratio": 0.5},
                weights_bytes=8,
                row=3,
            ),
            failed,
        ],
        collectives=[
            all_reduce(1 << 20, 1e-4),
            CollectiveObservation("barrier", 0, None, None, ok=False, error="timed out", in_place=False),
        ],
        links=[LinkObservation("device_to_device", "device:0", "device:1", "one_way", 1 << 30, 4e11, None, "max")],
        iterations=[
            IterationObservation(full, 5, 0, "gpt", {"tp": 8, "sp": True}, 64, 1024, 1, 4096, 4e14, 1, 2, 3, 4),
            IterationObservation(None, out_of_memory=True, ok=False, error="CUDA out of memory"),
        ],
    )
    return Imported("test", batches=[batch])


def imported(
    operators: Sequence[OperatorObservation] = (),
    collectives: Sequence[CollectiveObservation] = (),
    environment: Environment = H100,
) -> Imported:
    """One batch of these."""
    return Imported("test", batches=[Batch(environment, list(operators), list(collectives))])


def source(content: str, parser_version: int = 1, format_name: str = "test-format") -> Source:
    """A file whose hash is made of this text."""
    digest = content.encode().hex().ljust(64, "0")[:64]
    return Source(
        kind="imported", format=format_name, file_name="run.txt", file_sha256=digest, parser_version=parser_version
    )
