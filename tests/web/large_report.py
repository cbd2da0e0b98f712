"""Runs by the thousand for the accuracy page: ``python -m tests.web.large_report ADDRESS`` uploads ``large``.

Measured times are drawn around made-up ones, from milliseconds to minutes; what is predicted of each run is real.
"""

from __future__ import annotations

import sys
from itertools import product

import httpx
import numpy as np

from tests.web.seeds import ANSWER_S, accepted, accuracy_report

NAME = "large"
NUM_RUNS = 3500
SHAPES = tuple(product((1, 2), (2, 4, 8), (1, 2), (2048, 8192), (32, 128), ("H100-SXM-80GB", "A100-SXM-80GB")))
"""Micro-batch, tensor ranks, pipeline ranks, tokens a sample, samples a batch, device."""
NUM_SOURCES = 24


def runs(seed: int = 1) -> list[dict[str, str]]:
    """Changes of the plain run, all different."""
    random = np.random.default_rng(seed)
    spread = np.exp(random.normal(0.0, 0.3, NUM_RUNS))
    return [_run(index, factor) for index, factor in enumerate(spread)]


def _run(index: int, factor: float) -> dict[str, str]:
    microbatch, tensor, pipeline, tokens, samples, device = SHAPES[index % len(SHAPES)]
    seconds = 1.2 * samples / 32 * tokens / 8192 * (3.0 if device.startswith("A100") else 1.0) * factor
    return {
        "id": f"{index % NUM_SOURCES}-{index}",
        "source": f"github:lab{index % NUM_SOURCES}/runs:table.md",
        "device": device,
        "mbs": str(microbatch),
        "tp": str(tensor),
        "pp": str(pipeline),
        "seq_len": str(tokens),
        "gbs": str(samples),
        "step_time_s": f"{seconds:.5f}",
        "peak_mem_gib": f"{20 + 10 * microbatch * factor:.2f}",
    }


def main() -> None:
    """Predict all runs, and put the report, unless it is there already."""
    body = accuracy_report(runs())
    with httpx.Client(base_url=sys.argv[1], timeout=ANSWER_S) as client:
        kept = client.put(f"/v1/accuracy/{NAME}", json=body, headers={"If-None-Match": "*"})
        if kept.status_code != httpx.codes.PRECONDITION_FAILED:
            accepted(kept, NAME)


if __name__ == "__main__":
    main()
