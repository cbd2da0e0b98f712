"""Time to simulate one step: 32 stages, 512 micro-batches, two chunks a device, interleaved 1F1B.

The order is known, as in a search that looks at many durations of it; chunks are drawn in 1 +- 10 %.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.measurement import Measurement, Spec
from planner.predict.schedule.paths import ChunkTimes
from planner.predict.schedule.run import run_pipeline

TARGET_S = 0.002
STAGES, CHUNKS_A_DEVICE, MICROBATCHES = 32, 2, 512
RUNS_A_SAMPLE = 20


def pipeline_run(repeats: int) -> list[Measurement]:
    """Seconds of one run, the mean of ``RUNS_A_SAMPLE``."""
    numbers = np.random.default_rng(0)
    sizes = (STAGES, CHUNKS_A_DEVICE, MICROBATCHES, 0)
    samples, cpu_s, answer = [], [], ""
    for repeat in range(repeats + 1):
        work = numbers.uniform(0.9, 1.1, STAGES * CHUNKS_A_DEVICE)
        times = ChunkTimes(work, 2 * work, work)
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        for _ in range(RUNS_A_SAMPLE):
            ran = run_pipeline("interleaved", sizes, times, 0.01)
        if repeat:  # the first one writes the order
            samples.append((time.perf_counter() - start_s) / RUNS_A_SAMPLE)
            cpu_s.append((time.process_time() - start_cpu_s) / RUNS_A_SAMPLE)
        answer = f"{len(ran.order.kind):,} actions"
    task = f"simulate a step of {STAGES} stages and {MICROBATCHES} micro-batches, interleaved"
    return [Measurement("pipeline-run", task, "s", TARGET_S, tuple(samples), tuple(cpu_s), details={"answer": answer})]


PIPELINE_RUN = Spec("pipeline-run", pipeline_run)
