"""Pieces of nccl-tests text that tests put together, and what they ask of the result."""

from __future__ import annotations

from pathlib import Path

from profiles.importers.nccl_tests import FORMAT
from profiles.importing.imported import Imported
from profiles.observations.records import CollectiveObservation
from tests.importing import read, written

NEW_HEADER = """\
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
SETTINGS = (
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "
    "validation: 1 graph: 0\n"
)
AR_ROW = (
    "   134217728      33554432     float     sum      -1"
    "    592.8  226.39  396.19      0    592.1  226.69  396.71      0\n"
)
AG_ROW = (
    "   134217728       4194304     float    none      -1"
    "    592.8  226.39  198.09      0    592.1  226.69  198.35      0\n"
)


def rank_lines(count: int, per_host: int, num_groups: int = 1, name: str = "NVIDIA H100 80GB HBM3") -> str:
    return "".join(
        f"#  Rank {rank:2d} Group {rank % num_groups:2d} Pid {4000 + rank:6d} on  secret-host-{rank // per_host} "
        f"device {rank % per_host:2d} [0000:{rank % per_host:02x}:00] {name}\n"
        for rank in range(count)
    )


def text_of(tmp_path: Path, content: str, name: str = "log.txt", **given: str) -> Imported:
    return read(FORMAT, written(tmp_path, name, content), given=given)


def only(imported: Imported) -> list[CollectiveObservation]:
    assert len(imported.batches) == 1
    return imported.batches[0].collectives


def codes(imported: Imported) -> list[str]:
    return [flag.code for flag in imported.flags]
