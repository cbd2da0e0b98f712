"""Writes what a device run ran on: ``python -m benchmarks.device_run.environment FILE [cuda|cpu]``."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "transformers", "accelerate", "triton", "deepspeed", "megatron-core", "numpy", "nvidia-cublas",
            "nvidia-cudnn-cu13", "nvidia-nccl-cu13")  # fmt: skip
QUERY = "name,driver_version,memory.total,power.limit,clocks.max.sm,clocks.max.memory,ecc.mode.current,pstate"


def environment(kind: str) -> dict[str, Any]:
    """Device, driver and software; never a host's name."""
    import torch

    found: dict[str, Any] = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cpu": _cpu(),
        "packages": {name: _version(name) for name in PACKAGES},
        "cuda": torch.version.cuda,
    }
    if kind != "cuda" or not torch.cuda.is_available():
        return {**found, "device": "cpu"}
    properties = torch.cuda.get_device_properties(0)
    free, total = torch.cuda.mem_get_info(0)
    return {
        **found,
        "device": torch.cuda.get_device_name(0),
        "compute_capability": ".".join(str(part) for part in torch.cuda.get_device_capability(0)),
        "multiprocessors": properties.multi_processor_count,
        "l2_bytes": properties.L2_cache_size,
        "memory_bytes": total,
        "context_bytes": total - free,
        "nvidia_smi": dict(zip(QUERY.split(","), _smi(QUERY).split(", "), strict=False)),
        "nvcc": _said("nvcc", "--version").splitlines()[-1:],
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else ""


def _smi(query: str) -> str:
    return _said("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits", "-i", "0").strip()


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


if __name__ == "__main__":
    found = environment(sys.argv[2] if len(sys.argv) > 2 else "cuda")
    Path(sys.argv[1]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found))
