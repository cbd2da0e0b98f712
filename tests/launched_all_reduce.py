"""The script of a rank in tests of launchers: sum the ranks over gloo, say who and where this rank is.

It is run as a text beside the launcher's files, and imports nothing of ours.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "CUDA_DEVICE_MAX_CONNECTIONS")


def main() -> None:
    """Join the group of the environment and report, one line a rank."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    total = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(total)
    words = [f"{name}={os.environ.get(name)}" for name in NAMES]
    # One write: unbuffered, print() writes word by word, and a launcher mixes the words of its ranks.
    os.write(sys.stdout.fileno(), (" ".join(["SUMMED", str(int(total.item())), *words, *sys.argv[1:]]) + "\n").encode())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
