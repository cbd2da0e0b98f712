"""The measurement of one training step: time, host time, kernels, memory.

    step_time_s            median over steps, each between two device events, the device idle before each
    running_step_time_s    mean of steps submitted one after the other without waiting, as a training loop runs
    host_s                 median wall time until a step's last kernel was submitted
    host_after_profiler_s  the same after the profiler ran, to see whether it left something behind
    host_cpu_s             median processor time of the process in a step (the backward pass has a thread of its own)
    num_kernels, kernel_s  kernels, copies and fills of one step, and the sum of their times (torch.profiler)
    peak_allocated_bytes, peak_reserved_bytes    torch's allocator, over all steps after the warm-up
    device_used_bytes      what the driver says is in use on the device, after the steps

A step that the host bounds has ``host_s`` near ``step_time_s`` and ``kernel_s`` far below it.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

import torch

WARM_UPS = 3
FEWEST_STEPS, MOST_STEPS = 4, 12
TIME_OF_STEPS_S = 2.0
TOP_KERNELS = 24
_ANNOTATIONS = ("Optimizer.", "ProfilerStep", "Torch-Compiled", "## ")
"""Names of ranges, which the profiler lists beside the kernels in them."""
Step = Callable[[], object]


def measure_step(step: Step, device: torch.device, *, kernels: bool = True) -> dict[str, Any]:
    """Warm up, then measure; errors of the step pass through."""
    on_device = device.type == "cuda"
    for _ in range(WARM_UPS):
        step()
    _wait(device)
    if on_device:
        torch.cuda.reset_peak_memory_stats(device)
    first_s = _timed(step, device)[0]
    count = round(min(max(TIME_OF_STEPS_S / first_s, FEWEST_STEPS), MOST_STEPS))
    samples = [_timed(step, device) for _ in range(count)]
    running_s = _running(step, device, max(count // 2, 3))
    seconds = [each[0] for each in samples]
    found: dict[str, Any] = {
        "step_time_s": median(seconds),
        "fastest_s": min(seconds),
        "slowest_s": max(seconds),
        "num_steps": count,
        "running_step_time_s": running_s,
        "host_s": median(each[1] for each in samples),
        "host_cpu_s": median(each[2] for each in samples),
    }
    if on_device:
        free, total = torch.cuda.mem_get_info(device)
        found |= {
            "peak_allocated_bytes": torch.cuda.max_memory_allocated(device),
            "peak_reserved_bytes": torch.cuda.max_memory_reserved(device),
            "device_used_bytes": total - free,
            "nvidia_smi_mib": nvidia_smi("memory.used"),
            "sm_clock_mhz": nvidia_smi("clocks.sm"),
        }
    if kernels:
        found |= kernels_of(step, device)
        found["host_after_profiler_s"] = min(_timed(step, device)[1] for _ in range(2))
    return found


def kernels_of(step: Step, device: torch.device) -> dict[str, Any]:
    """Kernels of one step by torch's profiler; empty where it fails, which must not lose the case."""
    activity = torch.profiler.ProfilerActivity
    kind = activity.CUDA if device.type == "cuda" else activity.CPU
    try:
        with torch.profiler.profile(activities=[kind]) as profiler:
            step()
            _wait(device)
        wanted = "CUDA" if device.type == "cuda" else "CPU"
        events = profiler.profiler.kineto_results.events()
        return kernel_table(
            (each.name(), each.duration_ns())
            for each in events
            if each.device_type().name == wanted and not each.name().startswith(_ANNOTATIONS)
        )
    except (RuntimeError, AttributeError, TypeError) as error:
        return {"kernels_error": str(error)[:200]}


def kernel_table(events: Iterable[tuple[str, int]]) -> dict[str, Any]:
    """Number and summed time of (name, nanoseconds), and the kernels that take longest: name -> [number, seconds]."""
    totals: dict[str, list[float]] = {}
    for name, nanoseconds in events:
        entry = totals.setdefault(name[:120], [0, 0.0])
        entry[0] += 1
        entry[1] += nanoseconds * 1e-9
    longest = sorted(totals.items(), key=lambda item: -item[1][1])[:TOP_KERNELS]
    return {
        "num_kernels": sum(int(each[0]) for each in totals.values()),
        "kernel_s": sum(each[1] for each in totals.values()),
        "longest_kernels": {name: [int(count), round(seconds, 7)] for name, (count, seconds) in longest},
    }


def nvidia_smi(what: str) -> float | None:
    """One number of ``nvidia-smi --query-gpu``; None where it does not answer."""
    command = ("nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits", "-i", "0")
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout
        return float(said.split()[0])
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError):
        return None


def _timed(step: Step, device: torch.device) -> tuple[float, float, float]:
    """(seconds on the device, host seconds, processor seconds) of one step, the device idle before it."""
    _wait(device)
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    if device.type != "cuda":
        step()
        spent_s = time.perf_counter() - wall_s
        return spent_s, spent_s, time.process_time() - cpu_s
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    begin.record()
    step()
    end.record()
    host_s, spent_cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e-3, host_s, spent_cpu_s


def _running(step: Step, device: torch.device, count: int) -> float:
    _wait(device)
    wall_s = time.perf_counter()
    for _ in range(count):
        step()
    _wait(device)
    return (time.perf_counter() - wall_s) / count


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
