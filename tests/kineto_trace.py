"""Small Kineto traces written event by event, with the arguments that Kineto would write."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

DEVICE = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936, "numSms": 132}
Args = dict[str, Any] | None
BASE_NS = 1_751_410_836_000_000_000


@dataclass
class KinetoTrace:
    """One rank; times in microseconds since ``BASE_NS``."""

    rank: int = 0
    world_size: int = 1
    num_devices: int = 1
    events: list[dict[str, Any]] = field(default_factory=list)
    next_id: int = 1

    def call(
        self, name: str, start: float, duration: float, tid: int = 1, cat: str = "cpu_op", args: Args = None
    ) -> int:
        """A host event; returns its External id."""
        number, self.next_id = self.next_id, self.next_id + 1
        event = {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": tid, "ts": start, "dur": duration}
        self.events.append({**event, "args": {"External id": number, **(args or {})}})
        return number

    def kernel(self, name: str, start: float, duration: float, launcher: int | None, args: Args = None) -> None:
        """A device kernel launched by a host event."""
        link = {} if launcher is None else {"External id": launcher}
        event = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": duration}
        self.events.append({**event, "args": {**link, "device": 0, "stream": 7, **(args or {})}})

    def collective(
        self, name: str, start: float, duration: float, elements: tuple[int, int], args: Args = None
    ) -> None:
        """A NCCL kernel with the metadata of PyTorch over all ranks."""
        ranks = list(range(self.world_size))
        known = {
            "Collective name": name, "In msg nelems": elements[0], "Out msg nelems": elements[1],
            "Group size": self.world_size, "dtype": "BFloat16", "Process Group Name": "0",
            "Process Group Ranks": str(ranks), "grid": [24, 1, 1],
        }  # fmt: skip
        self.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", start, duration, None,
                    args={**known, **(args or {})})  # fmt: skip

    def document(self) -> dict[str, Any]:
        """The whole file."""
        job = {"backend": "nccl", "rank": self.rank, "world_size": self.world_size, "nccl_version": "2.21.5"}
        return {
            "schemaVersion": 1,
            "deviceProperties": [{**DEVICE, "id": index} for index in range(self.num_devices)],
            "distributedInfo": job,
            "cuda_runtime_version": 12040,
            "baseTimeNanoseconds": BASE_NS,
            "traceEvents": self.events,
            "traceName": "trace.json",
        }

    def text(self) -> str:
        """The file as JSON."""
        return json.dumps(self.document())
