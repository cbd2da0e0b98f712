"""The cluster that a request's files describe: completed from a base, or refused at the part that would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from api.uploads.answers import files_read
from api.uploads.reading import findings_of, findings_of_names, read_uploads
from api.wire.problem_details import in_fields
from api.wire.uploads import ClusterCompletion
from profiles.cluster import Cluster
from profiles.complete_cluster import complete_cluster
from profiles.errors import Conflict, DocumentInvalid, MeshwrightError, ProfileMissing
from profiles.import_outcomes import Outcome, topologies_of
from profiles.merge_topologies import merge_topologies
from profiles.validation import Finding, FindingsInvalid, require


def completed(payload: Mapping[str, Any]) -> ClusterCompletion:
    """The cluster and where each value comes from.

    Raises FindingsInvalid (every name and every file that cannot be used), ProfileMissing, Conflict, DocumentInvalid;
    each points at a part of the request.
    """
    outcomes = read_uploads(payload)
    findings = [*findings_of_names(payload), *findings_of(outcomes)]
    if not findings and not topologies_of(outcomes):
        hint = "send what nvidia-smi topo -m, ibnetdiscover, a Slurm topology.conf, ... say"
        findings.append(Finding("/files", "none of the files describes a topology", hint))
    require(findings, "body")
    cluster, notes = _cluster(outcomes, payload)
    unused = [outcome.result.where for outcome in outcomes if outcome.topology is None]
    return ClusterCompletion(
        cluster=cluster,
        notes=(*(in_fields(note) for note in notes), *(f"{name}: shows no topology, not used" for name in unused)),
        files=files_read(outcomes),
    )


def _cluster(outcomes: Sequence[Outcome], payload: Mapping[str, Any]) -> tuple[Cluster, list[str]]:
    base = Cluster.model_validate(payload["base"]) if payload["base"] is not None else None
    try:
        return complete_cluster(
            merge_topologies(topologies_of(outcomes)), base=base, device=payload["device"], name=payload["name"]
        )
    except MeshwrightError as error:
        _point(error)
    except Exception as error:
        raise DocumentInvalid(
            f"no cluster follows from the files ({type(error).__name__})",
            where="/files",
            hint="send them one by one to find the one that is damaged",
        ) from None


def _point(error: MeshwrightError) -> NoReturn:
    """Raise the error with the part of the request that repairs it."""
    where = error.where or ""
    if isinstance(error, FindingsInvalid):
        found = [Finding("/files", f"{each.pointer}: {each.what}", each.hint) for each in error.findings]
        raise FindingsInvalid(found, "body") from None
    if isinstance(error, ProfileMissing):
        error.where = "/device" if where.endswith("/device") else "/base"
    elif isinstance(error, Conflict | DocumentInvalid) and not where.startswith("--"):
        error.where = "/files"
    raise error
