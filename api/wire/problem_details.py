"""Errors on the wire: RFC 9457 ``application/problem+json``, with one finding per fault.

``type`` is a stable address made of the error's slug; programs branch on ``slug``, people read ``title``, ``detail``
and ``errors[]``.  ``pointer`` is a JSON pointer (RFC 6901) into the request body, or a header or parameter's name.
"""

from __future__ import annotations

import json
import re
from http import HTTPStatus

from pydantic import Field

from profiles import validation
from profiles.document import Document
from profiles.errors import MeshwrightError
from profiles.validation import FindingsInvalid

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "https://meshwright.dev/errors/"
"""An identifier, not a page to fetch; the pages are docs/reference/errors.md#<slug>."""

FLAG_POINTERS = {
    "--model": "/model",
    "--cluster": "/cluster",
    "--devices": "/devices",
    "--pool": "/pools",
    "--workload": "/workload",
    "--global-batch-size": "/workload/global_batch_size",
    "--sequence-length": "/workload/sequence_length",
    "--precision": "/workload/precision",
    "--fp8-recipe": "/workload/fp8_recipe",
    "--optimizer": "/workload/optimizer",
    "--optimizer-states": "/workload/optimizer_states",
    "--source-length": "/workload/source_length",
    "--images": "/workload/images_per_sample",
    "--audio-clips": "/workload/audio_clips_per_sample",
    "--routing": "/workload/routing",
    "--training": "/workload/training",
    "--sequences": "/workload/sequences",
    "--strategy": "/strategy",
    "--layers": "/chunk_layers",
    "--pin": "/constraints/pins",
    "--why-not": "why_not",
    "--from": "/text",
    "--vocab-size": "/vocab_size",
    "--emit": "backend",
    "--forbid": "/constraints/forbids",
    "--backend": "/constraints/backends",
    "--memory-margin": "/constraints/memory_margin_fraction",
    "--fits": "/constraints/fits",
    "--max-step-time": "/constraints/max_step_time_s",
    "--min-tokens-per-s": "/constraints/min_tokens_per_s",
    "--objective": "/objective/minimize",
    "--price": "/objective/price_per_device_hour",
    "--profile": "/profile",
    "--calibration": "/calibration",
    "--time-limit": "/time_limit_s",
    "--top": "/top_k",
    "--seed": "/seed",
    "--base": "/base",
    "--device": "/device",
    "--format": "/format",
    "--set": "/facts",
    "--keep-going": "/keep_going",
    "--limit": "limit",
    "--changes": "changes",
    "--label": "name",
    "--launcher": "launcher",
    "--hosts": "hosts",
    "--switches": "switches",
    "--network-tier": "network_tier",
    "--topology-label": "topology_label",
    "--image": "image",
    "--namespace": "namespace",
    "--files-claim": "files_claim",
    "--env": "env",
}
"""What the planner calls a part of a question (by its flag) -> where that part is in a request."""

_FLAG = re.compile(r"--[a-z][a-z-]*")


class Finding(Document):
    """One fault: where it is, what it is, what would repair it."""

    pointer: str = Field(
        description="JSON pointer into the body, or the header or parameter that is at fault; a field that a text or a"
        " parameter spells out follows after a slash"
    )
    detail: str
    hint: str | None = None
    also: tuple[str, ...] = Field(
        default_factory=tuple,
        exclude_if=lambda value: not value,
        description="pointers of the other fields of the rule: a change of one of them repairs it too",
    )


class ProblemDetails(Document):
    """An error, in full."""

    type: str = Field(description="stable address of the kind of error")
    slug: str = Field(description="the last part of type: what programs branch on")
    title: str = Field(description="the kind of error in words; the same for every error of this kind")
    status: int = Field(description="HTTP status")
    detail: str = Field(description="this error in words")
    request_id: str | None = Field(default=None, description="the request's id in logs; also the X-Request-Id header")
    errors: tuple[Finding, ...] = Field(default=(), description="every fault that was found")
    binding: str | None = Field(default=None, description="no-feasible-plan: the constraint that rules out every plan")
    pruned: dict[str, int] = Field(default_factory=dict, description="no-feasible-plan: strategies by why they fell")


def problem_details(error: MeshwrightError, request_id: str | None = None) -> ProblemDetails:
    """The wire form of one of our errors."""
    kind = next(each for each in type(error).__mro__ if "slug" in vars(each))
    title = (kind.__doc__ or error.slug).splitlines()[0].rstrip(".")
    many = isinstance(error, FindingsInvalid) and len(error.findings) > 1
    return ProblemDetails(
        type=TYPE_PREFIX + error.slug,
        slug=error.slug,
        title=title,
        status=error.http_status,
        detail="several things are wrong; see errors" if many else in_fields(error.what),
        request_id=request_id,
        errors=_findings(error),
        binding=getattr(error, "binding", None),
        pruned=dict(getattr(error, "pruned", {})),
    )


def plain_problem(status: int, detail: str, request_id: str | None = None) -> ProblemDetails:
    """An error of HTTP itself (404, 405, 500): its slug is the status's own phrase."""
    phrase = HTTPStatus(status).phrase
    slug = re.sub(r"[^a-z]+", "-", phrase.lower())
    return ProblemDetails(
        type=TYPE_PREFIX + slug, slug=slug, title=phrase, status=status, detail=detail, request_id=request_id
    )


def problem_bytes(problem: ProblemDetails) -> bytes:
    """A problem as it is sent."""
    return json.dumps(problem.model_dump(mode="json", exclude_none=True)).encode()


def _findings(error: MeshwrightError) -> tuple[Finding, ...]:
    if isinstance(error, FindingsInvalid):
        base = FLAG_POINTERS.get(error.place, error.place if error.place.startswith("/") else "")
        return tuple(finding_in_fields(each, base) for each in error.findings)
    if error.http_status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # Where the service itself fails, the place is a path or an address of the host: nothing for a client.
        return ()
    if error.where is None and error.hint is None:
        return ()
    detail, hint = in_fields(error.what), in_fields(error.hint or "") or None
    return (Finding(pointer=_pointer(error.where or ""), detail=detail, hint=hint),)


def _pointer(where: str) -> str:
    """``--devices``, ``body#/pools/0`` and ``workload#/routing`` as a pointer; anything else as it is."""
    flag = where.split(" ", maxsplit=1)[0]
    if flag in FLAG_POINTERS:
        return FLAG_POINTERS[flag]
    head, hash_sign, pointer = where.partition("#")
    if hash_sign:
        return (f"/{head}" if head == "workload" else head if head.startswith("/") else "") + pointer
    return "" if where == "body" else where


def finding_in_fields(found: validation.Finding, base: str = "") -> Finding:
    """A finding of the planner as a request is told it; ``base`` stands before its pointers."""
    return Finding(
        pointer=base + found.pointer,
        detail=in_fields(found.what),
        hint=in_fields(found.hint) or None,
        also=tuple(FLAG_POINTERS.get(place, base + place) for place in found.also),
    )


def in_fields(text: str) -> str:
    """The planner's words with the names of request fields in place of flags."""
    return _FLAG.sub(lambda match: FLAG_POINTERS.get(match[0], match[0]).removeprefix("/").replace("/", "."), text)
