"""nccl-tests output for tests: a short whole one, and pieces that tests put together with what they ask of it."""

from __future__ import annotations

from pathlib import Path

from profiles.importers.nccl_tests import FORMAT
from profiles.importing.imported import Imported
from profiles.observations.records import CollectiveObservation
from tests.importing import read, written

HEAD = """\
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validate: 1
#
# Using devices
#  Rank  0 Group  0 Pid 1942267 on trainer-07 device  0 [0x0f] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 1942268 on trainer-07 device  1 [0x2d] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
TAIL = """\
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 20.0
#
"""


def _row(size_bytes: int, time: str, bandwidth: str) -> str:
    both = f"{time:>8} {bandwidth:>7} {bandwidth:>7}      0 "
    return f"{size_bytes:>12} {size_bytes // 4:>13}     float     sum      -1 {both}{both}\n"


GOOD = _row(1 << 20, "100.0", "10.49") + _row(2 << 20, "110.0", "19.07") + _row(4 << 20, "140.0", "29.96")
BAD = _row(8 << 20, "nan", "nan")

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


def all_reduce_text(good: str = GOOD, bad: str = "") -> str:
    """An all_reduce over two GPUs of one node: six observations from the good rows."""
    return HEAD + good + bad + TAIL


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
