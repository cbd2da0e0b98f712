"""Uploads of local files: a cluster from topology files, measurements from logs (``client.uploads``)."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from api.client.transport import Transport
from api.wire.uploads import NAMED, ClusterCompletion, ImportAnswer
from profiles.errors import DocumentInvalid, NotFound


class Uploads:
    """The part of a client that sends files."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def complete_cluster(
        self,
        files: Sequence[Path],
        *,
        base: str | None = None,
        device: str | None = None,
        name: str = NAMED,
        facts: Mapping[str, str] | None = None,
        format_name: str | None = None,
    ) -> ClusterCompletion:
        """The cluster that topology files describe, and where each value comes from; nothing is stored.

        ``cluster`` of the answer goes into a question as it is.  Raises ProblemReported (profile-missing, conflict,
        document-invalid with a finding for each file at ``/files/N``).
        """
        body = {**_body(files, facts, format_name), "base": base, "device": device, "name": name}
        return self._transport.ask(ClusterCompletion, "POST", "/v1/clusters:complete", body=body)

    def import_measurements(
        self,
        files: Sequence[Path],
        *,
        facts: Mapping[str, str] | None = None,
        format_name: str | None = None,
        keep_going: bool = False,
        dry_run: bool = False,
    ) -> ImportAnswer:
        """Store what logs and traces measured; all files or none, unless ``keep_going``.  Needs the scope admin."""
        body = {**_body(files, facts, format_name), "keep_going": keep_going, "dry_run": dry_run}
        return self._transport.ask(ImportAnswer, "POST", "/v1/profiles:import", body=body)


def _body(files: Sequence[Path], facts: Mapping[str, str] | None, format_name: str | None) -> dict[str, Any]:
    return {"files": [_file(Path(path)) for path in files], "facts": dict(facts or {}), "format": format_name}


def _file(path: Path) -> dict[str, str]:
    """A file as a request carries it: its base name, because folders may hold user names."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise NotFound("there is no such file", where=str(path), hint="check the path") from None
    except OSError as error:
        raise DocumentInvalid(f"the file cannot be read: {error.strerror}", where=str(path)) from None
    return {"name": path.name, "content_base64": base64.b64encode(content).decode("ascii")}
