"""Launches of several ranks on a CPU machine, where a rank now and then dies in native code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

RANK_ABORT = "terminate called without an active exception"
"""How such a rank dies, without a Python error: seen three times in some hundred launches of torch's gloo on a busy
machine, under DeepSpeed and under the native trainer; five minutes of launches, six at a time, did not show it.  The
cause is not found.  One more launch decides; anything else fails at once."""


REPOSITORY = Path(__file__).parents[1]


def cpu_environment(**extra: str) -> dict[str, str]:
    """This process's environment for ranks on the CPU: the repository importable, one thread a rank, no devices."""
    own = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(REPOSITORY)}
    return {**os.environ, **own, **extra}


def torchrun(python: str, ranks: int) -> tuple[str, ...]:
    """The words before the script, on this machine alone."""
    return (python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}")


def launched(
    command: Sequence[str], environment: Mapping[str, str], *, cwd: Path | None = None, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """One launch; a second one where a rank died of ``RANK_ABORT``, which is said on the real stderr."""
    for attempt in range(2):
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        if attempt or done.returncode == 0 or RANK_ABORT not in done.stderr:
            break
        print(f"{' '.join(command)}: a rank aborted ({RANK_ABORT}); launched again", file=sys.__stderr__)
    return done
