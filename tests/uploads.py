"""Files as a request carries them: real samples, and what somebody damaged."""

from __future__ import annotations

import base64
from pathlib import Path

SAMPLES = Path(__file__).parent / "samples"
SLURM = "topology/topograph_expected_slurm_tree_topology.conf"
TOPO_M = "topo/mlperf_v5.0_google_h200_topo_m_tabs_ansi.txt"
ALL_REDUCE = "nccl-tests/aws_p5_batch_allreduce_mpirun_tagged.txt"


def upload(name: str, content: bytes | str) -> dict[str, str]:
    """A file of this name and content."""
    raw = content.encode() if isinstance(content, str) else content
    return {"name": name, "content_base64": base64.b64encode(raw).decode()}


def uploaded(sample: str, name: str | None = None) -> dict[str, str]:
    """A sample of ``tests/samples``."""
    path = SAMPLES / sample
    return upload(path.name if name is None else name, path.read_bytes())
