"""The environment of one batch of observations: device, software and machine."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from profiles.document import Document


class Environment(Document):
    """Everything known about the machine; empty text or None = the source does not say.

    ``device`` is the catalogue name where ``device_reported`` could be recognised (``profiles.device_names``).
    Host names, addresses and serial numbers never appear here: only their hashed counts do.
    """

    schema_version: Literal[1] = 1
    device: str = Field(default="", description="catalogue name: h100-sxm5-80gb; empty = not recognised")
    device_reported: str = Field(default="", description="as the tool printed it: NVIDIA H100 80GB HBM3")
    num_devices: int | None = Field(default=None, gt=0)
    num_nodes: int | None = Field(default=None, gt=0)
    devices_per_node: int | None = Field(default=None, gt=0)
    driver_version: str = ""
    runtime_version: str = Field(default="", description="CUDA, ROCm, CANN")
    framework: str = ""
    framework_version: str = ""
    communication_library: str = Field(default="", description="nccl, rccl, hccl, mpi, ucx, ...")
    communication_library_version: str = ""
    transport: str = Field(default="", description="network plug-in or transport that was used: IB, OFI, Socket")
    clocks_locked: bool | None = None
    clock_hz: float | None = Field(default=None, gt=0, description="of the compute units")
    power_cap_w: float | None = Field(default=None, gt=0)
    topology_fingerprint: str = Field(default="", description="SHA-256 of the topology without names")
    captured_at: str = Field(default="", description="ISO 8601, as far as the source says")
    note: str = ""
