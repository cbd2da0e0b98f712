"""What can an operator choose about the service?  Every knob, once, with its default."""

from __future__ import annotations

from pydantic import Field

from profiles.document import Document

MIB = 2**20
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})


class Settings(Document):
    """The service's settings; ``meshwright serve`` fills them from its flags."""

    database: str | None = Field(default=None, description="URL; None = $MESHWRIGHT_DATABASE, else the data folder")
    authentication: bool = Field(default=False, description="demand an API key with every request under /v1")
    body_limit_bytes: int = Field(default=2 * MIB, gt=0)
    profile_limit_bytes: int = Field(default=16 * MIB, gt=0, description="body limit of uploaded profiles")
    solver_processes: int = Field(default=2, ge=1, le=64, description="processes that search while a client waits")
    quick_processes: int = Field(default=1, ge=1, le=64, description="processes for estimates and views of a plan")
    solver_memory_bytes: int = Field(default=8 * 2**30, gt=0, description="address space of each such process")
    synchronous_s: float = Field(default=10.0, gt=0, description="a search that takes longer becomes a job")
    quick_s: float = Field(default=60.0, gt=0, description="longest estimate or view of a plan")
    most_devices: int = Field(default=65_536, gt=0, description="largest cluster of a question")
    most_layers: int = Field(default=1_000, gt=0, description="largest model of a question")
    most_counts: int = Field(default=64, gt=0, description="device counts of one throughput request")
    requests_per_s: float = Field(default=100.0, gt=0, description="sustained rate of one API key")
    burst: int = Field(default=400, gt=0, description="requests that a key may send at once")
    cached_answers: int = Field(default=1_024, ge=0, description="answers kept in memory, by content")
    job_concurrency: int = Field(default=1, ge=0, description="jobs that the embedded worker runs at once; 0 = none")
