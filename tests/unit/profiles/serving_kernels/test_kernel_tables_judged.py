"""Tables against the rows that they were made of, where the package with the rows is installed."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.kernel_tables import log_errors
from profiles.errors import NotFound
from profiles.importers.aiconfigurator.installed import package_version
from profiles.serving_kernels import rates_of_system, shipped, wheel
from profiles.serving_kernels.build import MOST_LOST
from tests.sampling import drawn

CASES = [
    (system, place, kernel)
    for system in ("a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm", "gb200", "gb300", "l40s", "b60")
    for place in ("vllm", "sglang", "tensorrt-llm")
    for kernel in ("matmul", "prefill", "decode", "experts", "latent_decode", "collective")
]


@pytest.mark.parametrize(("system", "place", "kernel"), drawn(CASES, 1))
def test_rows_come_back(system: str, place: str, kernel: str) -> None:
    try:
        package_version()
    except NotFound as error:
        pytest.skip(f"the measured rows are not installed: {error.hint}")
    for key, rows in wheel.kernel_rows(system, place, rates_of_system(system), {kernel}).items():
        if len(rows.logs) < 200:
            continue
        table = shipped.table(system, place, key)
        assert table is not None
        some = rows.chosen(slice(0, None, -(-len(rows.logs) // 2000)))
        assert np.median(np.abs(log_errors(table, some))) < MOST_LOST, key
