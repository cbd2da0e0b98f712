"""The device on which torch runs: one interface for cuda, rocm (torch.cuda on HIP), npu, xpu and cpu.

Work runs on one stream of its own, because a graph can only be captured away from the default stream and the backward
pass runs on the stream of its forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from profiles.errors import DocumentInvalid

if TYPE_CHECKING:
    import torch

BackendKind = Literal["cuda", "rocm", "npu", "xpu", "cpu"]

_LAST_LEVEL_CACHE_BYTES: dict[BackendKind, int] = {"rocm": 256 << 20, "npu": 192 << 20, "xpu": 408 << 20}
"""Where the driver does not tell: MI300X Infinity Cache, Ascend 910B L2, Data Center GPU Max L2 (datasheets)."""
_CPU_FLUSH_LIMIT_BYTES = 64 << 20
"""A virtual machine reports the whole socket's cache; flushing it all before each call would take most of the time."""
_TILE = 1 << 22
_DTYPE_NAMES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp8": "float8_e4m3fn", "int32": "int32"}


def import_torch() -> Any:
    """The torch module.  Raises DocumentInvalid with the install command where it is missing."""
    try:
        return import_module("torch")
    except ImportError:
        raise DocumentInvalid(
            "measuring needs PyTorch, which is not installed",
            where="profile measure",
            hint="pip install 'meshwright[torch]'",
        ) from None


@dataclass(slots=True)
class MeasuredDevice:
    """One device and what the protocol needs of it."""

    kind: BackendKind
    device: torch.device
    flush_bytes: int
    module: Any
    """``torch.cuda``, ``torch.npu``, ``torch.xpu`` or ``torch.cpu``."""
    own_stream: Any = None
    _flush: Any = field(default=None)
    _tile: Any = field(default=None)

    @property
    def is_host(self) -> bool:
        """Whether the device is the CPU: calls return when they are done."""
        return self.kind == "cpu"

    @property
    def properties(self) -> Any:
        """The backend's device properties; None on the CPU."""
        return None if self.is_host else self.module.get_device_properties(self.device)

    def dtype(self, name: str) -> torch.dtype:
        """The torch dtype called bf16, fp16, fp32 or fp8."""
        found: torch.dtype = getattr(import_torch(), _DTYPE_NAMES[name])
        return found

    def synchronize(self) -> None:
        """Wait for all submitted work."""
        if not self.is_host:
            self.module.synchronize(self.device)

    def release(self) -> None:
        """Give cached memory back, so that the next block starts from an empty allocator."""
        if not self.is_host:
            self.module.empty_cache()

    def free_bytes(self) -> int:
        """Memory that new tensors can take."""
        if not self.is_host:
            return int(self.module.mem_get_info(self.device)[0])
        for line in _text("/proc/meminfo").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return 4 << 30

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Run what follows on the device's own stream."""
        if self.own_stream is None:
            yield
            return
        with self.module.stream(self.own_stream):
            yield

    def flush_cache(self) -> None:
        """Write more than the last-level cache holds, so that the next call reads from memory."""
        if not self.flush_bytes:
            return
        if self._flush is None:
            torch = import_torch()
            self._flush = torch.empty(self.flush_bytes // 4, dtype=torch.int32, device=self.device)
        self._flush.zero_()

    def normal(self, shape: Sequence[int], dtype: str = "bf16") -> torch.Tensor:
        """Standard normal numbers: zeros would draw less power and run faster than real data.

        The CPU repeats one tile of numbers, because drawing them would take longer than measuring.
        """
        the_torch = import_torch()
        through = "bf16" if dtype == "fp8" else dtype
        if self.is_host:
            numbers = self._tiled(the_torch, tuple(shape))
        else:
            numbers = the_torch.randn(tuple(shape), device=self.device, dtype=self.dtype(through))
        # A copy on the host: all tensors are cut from one tile, and must not share its memory.
        made: torch.Tensor = numbers.to(self.dtype(dtype), copy=self.is_host)
        return made

    def _tiled(self, torch: Any, shape: tuple[int, ...]) -> Any:
        if self._tile is None:
            self._tile = torch.randn(_TILE)
        count = 1
        for size in shape:
            count *= size
        whole = self._tile if count <= _TILE else self._tile.repeat(-(-count // _TILE))
        return whole[:count].reshape(shape)


def open_device(backend: str = "auto", index: int = 0, *, flush_bytes: int | None = None) -> MeasuredDevice:
    """The device to measure on.  ``flush_bytes`` None = twice the last-level cache; 0 = never flush.

    Raises DocumentInvalid where torch or the backend is missing.
    """
    torch = import_torch()
    kind = _present(torch) if backend == "auto" else _wanted(torch, backend)
    if kind == "cpu":
        flush = _host_flush_bytes() if flush_bytes is None else flush_bytes
        return MeasuredDevice("cpu", torch.device("cpu"), flush, torch.cpu)
    device = torch.device("cuda" if kind == "rocm" else kind, index)
    module = getattr(torch, device.type)
    module.set_device(device)
    if flush_bytes is None:
        cache = int(getattr(module.get_device_properties(device), "L2_cache_size", 0))
        flush_bytes = 2 * max(cache, _LAST_LEVEL_CACHE_BYTES.get(kind, 64 << 20 if not cache else 0))
    return MeasuredDevice(kind, device, flush_bytes, module, module.Stream(device=device))


def present_backends() -> list[BackendKind]:
    """Backends that work on this machine, fastest first; the CPU is always one."""
    torch = import_torch()
    found: list[BackendKind] = []
    if torch.cuda.is_available():
        found.append("rocm" if torch.version.hip else "cuda")
    if _npu(torch):
        found.append("npu")
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        found.append("xpu")
    return [*found, "cpu"]


def _present(torch: Any) -> BackendKind:
    return present_backends()[0]


def _wanted(torch: Any, backend: str) -> BackendKind:
    for kind in present_backends():
        if kind == backend or (kind == "rocm" and backend == "cuda"):
            return kind
    raise DocumentInvalid(
        f"torch finds no {backend} device here",
        where="--backend",
        hint=f"this machine has: {', '.join(present_backends())}; torch {torch.__version__}",
    )


def _npu(torch: Any) -> bool:
    """Whether Ascend's plug-in is installed and sees a device; importing it adds ``torch.npu``."""
    try:
        import_module("torch_npu")
    except ImportError:
        return False
    return bool(torch.npu.is_available())


def _host_flush_bytes() -> int:
    size = _text("/sys/devices/system/cpu/cpu0/cache/index3/size").strip()
    cache = int(size[:-1]) << 10 if size.endswith("K") and size[:-1].isdigit() else 32 << 20
    return min(2 * cache, _CPU_FLUSH_LIMIT_BYTES)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
