"""A short nccl-tests output as the tool prints it, for tests that need a file which an importer reads."""

from __future__ import annotations

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


def all_reduce_text(good: str = GOOD, bad: str = "") -> str:
    """An all_reduce over two GPUs of one node: six observations from the good rows."""
    return HEAD + good + bad + TAIL
