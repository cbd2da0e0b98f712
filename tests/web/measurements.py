"""The measurements of the seeded service: public logs of two devices, and a profile that nobody measured.

They lie in the folder that ``MESHWRIGHT_PROFILES`` names, which the service reads too.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx

from profiles.catalogue import load_device
from tests.web.made_up_profile import made_up_profile

SAMPLES = Path(__file__).parents[1] / "samples" / "nccl-tests"
LOGS: dict[str, tuple[str, ...]] = {
    "a100-sxm4-40gb": ("superbench_nccl_allreduce.log", "superbench_nccl_allgather.log"),
    "h100-sxm5-80gb": ("aws_p5_batch_allreduce_mpirun_tagged.txt", "aws_p5_pyxis_prefixed_block2.txt"),
}
"""Device -> logs that were measured on it."""
MADE_UP = "made-up"


def seed_measurements(client: httpx.Client) -> None:
    """Import the logs, and name the made-up profile."""
    for device, logs in LOGS.items():
        files = [str(SAMPLES / log) for log in logs]
        command = [sys.executable, "-m", "planner.cli.main", "profile", "import", *files, "--device", device]
        subprocess.run(command, check=True, capture_output=True)
    reference = made_up_profile(load_device("h100-sxm5-80gb"), seed=1)
    body, new = {"profile_id": reference.profile_id}, {"If-None-Match": "*"}
    client.put(f"/v1/profiles/{MADE_UP}", json=body, headers=new).raise_for_status()
