"""What decides how much of the time a job trains: failures, storage, restarts, repairs, spare nodes."""

from __future__ import annotations

from pydantic import Field

from profiles.document import Document


class Reliability(Document):
    """What decides how much of the time a job trains; only the storage has no usual value."""

    storage_bandwidth_bytes_per_s: float = Field(
        gt=0, description="what the storage takes and gives, all nodes together"
    )
    asynchronous: bool = Field(
        default=False, description="the step loop waits for the copy to the host only, not for the storage"
    )
    failures_of: str | None = Field(
        default=None, description="a published run whose failures are taken; null = one on this kind of device"
    )
    failures_per_device_hour: float | None = Field(
        default=None, ge=0, le=1, description="failures of one device an hour, in place of a published run's"
    )
    restart_s: float | None = Field(
        default=None, ge=0, description="from a failure to the first step; null = 600 s (MegaScale) and the reading"
    )
    repair_hours: float | None = Field(
        default=None, gt=0, description="until a failed node is back; null = another node is always there"
    )
    spare_nodes: int | None = Field(
        default=None, ge=0, le=10_000, description="nodes that stand by; null = as many as pay, where repairs are known"
    )
