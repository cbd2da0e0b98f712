"""The operator's settings of the service: each one once, with its default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from api.access.host_names import ANY, allowed_name, hosts_of_environment
from api.access.oidc.settings import OidcSettings
from api.http.patience import ConnectionSettings
from api.retention import RetentionSettings
from api.telemetry.logs import LogFormat
from api.telemetry.tracing import TracingSettings
from profiles.document import Document
from profiles.safe_yaml import load_document_file
from profiles.validation import read_document

MIB = 2**20
AllowedHost = Annotated[str, AfterValidator(allowed_name)]


class Settings(Document):
    """The service's settings; ``meshwright serve`` fills them from its flags and from the file of ``--settings``."""

    database: str | None = Field(default=None, description="URL; None = $MESHWRIGHT_DATABASE, else the data folder")
    authentication: bool = Field(default=False, description="demand a key or a token with every request under /v1")
    allowed_hosts: tuple[AllowedHost, ...] = Field(
        default=(), description="names that the service is asked by, besides this machine's and --host; * = any"
    )
    oidc: OidcSettings | None = Field(default=None, description="whose bearer tokens count beside API keys")
    tracing: TracingSettings | None = Field(default=None, description="where spans go; None = nowhere")
    log_format: LogFormat = Field(default="text", description="json: one object a line")
    connections: ConnectionSettings = Field(default=ConnectionSettings(), description="patience with slow clients")
    retention: RetentionSettings = Field(default=RetentionSettings(), description="how long things are kept")
    body_limit_bytes: int = Field(default=2 * MIB, gt=0)
    profile_limit_bytes: int = Field(default=16 * MIB, gt=0, description="body limit of uploaded profiles")
    solver_processes: int = Field(default=2, ge=1, le=64, description="processes that search while a client waits")
    quick_processes: int = Field(default=1, ge=1, le=64, description="processes for estimates and what needs no search")
    processes_of_caller: int | None = Field(
        default=None,
        ge=1,
        description="of either kind, those that one caller may use at once; None = with authentication all but one",
    )
    solver_memory_bytes: int = Field(default=8 * 2**30, gt=0, description="address space of each such process")
    agents: bool = Field(default=False, description="answer agents (Model Context Protocol) at /mcp")
    synchronous_s: float = Field(default=10.0, gt=0, description="a search that takes longer becomes a job")
    quick_s: float = Field(default=60.0, gt=0, description="longest estimate or view of a plan")
    most_devices: int = Field(default=65_536, gt=0, description="largest cluster of a question")
    most_layers: int = Field(default=1_000, gt=0, description="largest model of a question")
    most_counts: int = Field(default=64, gt=0, description="device counts of one throughput request")
    most_cells: int = Field(default=1_000, gt=0, description="questions of one sweep")
    requests_per_s: float = Field(default=100.0, gt=0, description="sustained rate of one API key")
    burst: int = Field(default=400, gt=0, description="requests that a key may send at once")
    streams: int = Field(default=200, ge=1, description="event streams that are open at once")
    streams_of_caller: int = Field(default=32, ge=1, description="of them, those of one caller")
    cached_answers: int = Field(default=1_024, ge=0, description="answers kept in memory, by content")
    job_concurrency: int = Field(default=1, ge=0, description="jobs that the embedded worker runs at once; 0 = none")

    def most_of_caller(self, processes: int) -> int:
        """Of so many processes, those that one caller may use at once."""
        if self.processes_of_caller is not None:
            return min(self.processes_of_caller, processes)
        return max(processes - 1, 1) if self.authentication else processes

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.oidc is not None and not self.authentication:
            raise ValueError("oidc is of no use without authentication: true (--auth keys)")
        if ANY in self.allowed_hosts and not self.authentication:
            raise ValueError("allowed_hosts: * would let any web page act as admin without authentication: true")
        return self


def settings_from(file: Path | None, **flags: Any) -> Settings:
    """Settings of a YAML or JSON file; ``flags`` that are not None win, then ``$MESHWRIGHT_ALLOWED_HOSTS``.

    Raises DocumentInvalid, NotFound.
    """
    said = load_document_file(file) if file is not None else {}
    given = {name: value for name, value in flags.items() if value is not None}
    hosts = hosts_of_environment()
    if hosts is not None:
        given.setdefault("allowed_hosts", hosts)
    return read_document(Settings, {**said, **given} if isinstance(said, dict) else said, str(file or "settings"))
