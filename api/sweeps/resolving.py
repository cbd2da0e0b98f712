"""The sweep that a request means: names become documents, limits are checked, before anything is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from api.errors import RequestRefused
from api.planning.resolving import LARGEST_COUNT, Resolver, checked_constraints
from api.sweeps.resolved import ResolvedSweep
from api.wire.sweeps import SweepRequest
from planner.answers.sweep.question import SweepQuestion
from profiles.document import Document
from profiles.errors import MeshwrightError
from profiles.prediction.reference import ProfileReference
from profiles.validation import Finding, FindingsInvalid, require

T = TypeVar("T")
D = TypeVar("D", bound=Document)
OF_NAMES = frozenset({"schema_version", "models", "clusters", "constraints"})


def resolved_sweep(resolver: Resolver, request: SweepRequest) -> ResolvedSweep:
    """The sweep.  Raises FindingsInvalid, NotFound, DocumentInvalid with a pointer, RequestRefused."""
    _check_counts(request, resolver.settings.most_devices)
    _check_cells(request, resolver.settings.most_cells)
    models = _named(request.models, "/models", resolver.model)
    clusters = _named(request.clusters, "/clusters", lambda part: resolver.cluster(part, None))
    profiles: dict[str, ProfileReference] = {}
    for index, cluster in enumerate(clusters.values()):
        device = cluster.pools[0].device
        found = _at(f"/clusters/{index}", lambda device=device: resolver.profile(request.profile, device))  # type: ignore[misc]
        if found is not None:
            profiles[device.content_hash()] = found
    shared = {name: getattr(request, name) for name in SweepQuestion.model_fields if name not in OF_NAMES}
    question = SweepQuestion(
        **shared,
        models=tuple(models),
        clusters=tuple(clusters),
        constraints=checked_constraints(request.constraints),
    )
    return ResolvedSweep(
        question=question,
        models=models,
        clusters=clusters,
        profiles=profiles,
        price_per_device_hour=request.price_per_device_hour,
        top_k=request.top_k,
        time_limit_s=request.time_limit_s,
        seed=request.seed,
    )


def _named(parts: Sequence[str | Mapping[str, Any]], pointer: str, resolve: Callable[[Any], D]) -> dict[str, D]:
    """Each part under the word that its cells have: the name that was given, or the document's own."""
    found: dict[str, D] = {}
    for index, part in enumerate(parts):
        place = f"{pointer}/{index}"
        document = _at(place, lambda part=part: resolve(part))  # type: ignore[misc]
        word = part if isinstance(part, str) else str(getattr(document, "name"))  # noqa: B009  # both kinds have one
        if found.setdefault(word, document) != document:
            another = f"another {pointer.strip('/').removesuffix('s')} of this sweep is called {word}"
            raise FindingsInvalid([Finding("", another, "give each a name of its own")], place)
    return found


def _at(pointer: str, ask: Callable[[], T]) -> T:
    """What ``ask`` gives; its errors say where in the list the fault is."""
    try:
        return ask()
    except FindingsInvalid as error:
        raise FindingsInvalid(error.findings, pointer) from None
    except MeshwrightError as error:
        error.where = pointer
        raise


def _check_counts(request: SweepRequest, most_devices: int) -> None:
    findings = [
        Finding(f"/device_counts/{index}", f"{count:,} devices; this service plans up to {most_devices:,}", "ask fewer")
        for index, count in enumerate(request.device_counts)
        if count > most_devices
    ]
    for name in ("sequence_lengths", "global_batch_sizes"):
        findings += [
            Finding(f"/{name}/{index}", "is out of range", f"give a whole number up to {LARGEST_COUNT}")
            for index, count in enumerate(getattr(request, name))
            if count > LARGEST_COUNT
        ]
    for name in ("images_per_sample", "audio_clips_per_sample"):
        if getattr(request, name) > LARGEST_COUNT:
            findings.append(Finding(f"/{name}", "is out of range", f"give at most {LARGEST_COUNT}"))
    require(findings, "body")


def _check_cells(request: SweepRequest, most: int) -> None:
    cells = len(request.models) * len(request.clusters) * max(1, len(set(request.device_counts)))
    cells *= len(set(request.sequence_lengths)) * len(set(request.global_batch_sizes))
    if cells > most:
        raise RequestRefused(
            f"{cells:,} cells; this service takes up to {most:,} in one sweep",
            where="",
            hint="ask for fewer values of an axis, or in several sweeps",
        )
