"""The environment of a measurement: device, driver, software and the switches that change a kernel's choice."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from profiles.device_names import catalogue_device
from profiles.measure.clocks import ClockReading
from profiles.measure.device import MeasuredDevice, import_torch
from profiles.observations.environment import Environment
from profiles.observations.records import Scalar

_SWITCHES = (
    "CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "NVIDIA_TF32_OVERRIDE", "TORCH_BLAS_PREFER_CUBLASLT",
    "PYTORCH_TUNABLEOP_ENABLED", "HIPBLASLT_TENSILE_LIBPATH", "NCCL_ALGO", "NCCL_PROTO", "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS", "NCCL_NVLS_ENABLE", "NCCL_P2P_DISABLE", "NCCL_TUNER_PLUGIN", "HCCL_ALGO",
    "HCCL_BUFFSIZE", "TASK_QUEUE_ENABLE", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
)  # fmt: skip
"""Environment variables that change speeds.  Their values never hold names of hosts; paths are not recorded."""


def environment_of(device: MeasuredDevice, clocks: ClockReading) -> Environment:
    """Everything known about the device and the software, without names of hosts."""
    torch = import_torch()
    reported = device_name(device)
    return Environment(
        device=catalogue_device(reported) or "",
        device_reported=reported,
        num_devices=1,
        num_nodes=1,
        devices_per_node=1,
        driver_version=clocks.driver_version,
        runtime_version=_runtime(torch, device),
        framework="torch",
        framework_version=str(torch.__version__),
        clock_hz=clocks.clock_hz,
        power_cap_w=clocks.power_cap_w,
        captured_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def device_name(device: MeasuredDevice) -> str:
    """As the driver prints it; the CPU by its model name."""
    if not device.is_host:
        return str(device.module.get_device_name(device.device))
    try:
        match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return f"cpu: {match[1].strip() if match else platform.machine()}"


def environment_key(environment: Environment) -> str:
    """Hash of what makes two environments the same: not the time of day, not the clock of the moment."""
    return environment.model_copy(update={"captured_at": "", "clock_hz": None}).content_hash()


def sidecar(device: MeasuredDevice) -> dict[str, Scalar]:
    """Switches of torch and of the process that a reader may need to explain a number."""
    torch = import_torch()
    facts: dict[str, Scalar] = {
        "backend": device.kind,
        "cache_flush_bytes": device.flush_bytes,
        "threads": torch.get_num_threads(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
        "bf16_reduced_precision_reduction": bool(torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction),
    }
    if device.kind in ("cuda", "rocm"):
        facts["preferred_blas_library"] = str(torch.backends.cuda.preferred_blas_library())
        facts["compute_units"] = int(device.properties.multi_processor_count)
    if device.is_host:
        facts["cpu_capability"] = torch.backends.cpu.get_cpu_capability()
    facts |= {name: os.environ[name] for name in _SWITCHES if "/" not in os.environ.get(name, "/")}
    return facts


def _runtime(torch: Any, device: MeasuredDevice) -> str:
    if device.kind == "cuda":
        return f"cuda {torch.version.cuda}"
    if device.kind == "rocm":
        return f"rocm {torch.version.hip}"
    if device.kind == "xpu":
        return f"xpu {getattr(torch.version, 'xpu', '')}".strip()
    return ""
