"""The OpenAPI 3.1 description of the API: what FastAPI sees, plus the bodies that routes read themselves."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from api.wire.problem_details import MEDIA_TYPE, ProblemDetails
from api.wire.questions import (
    EmissionQuestion,
    EstimateQuestion,
    PlanQuestion,
    ProfileName,
    Question,
    StrategyText,
    ThroughputQuestion,
)
from api.wire.sweeps import SweepRequest
from api.wire.uploads import CompletionQuestion, ImportQuestion
from planner.backends.registry import backends
from planner.evidence.accuracy.report_document import AccuracyReport
from planner.operations.registry import OPERATIONS
from planner.question.problem import ANY
from planner.version import __version__

REF = "#/components/schemas/{model}"
BODIES: tuple[type[BaseModel], ...] = (
    Question,
    PlanQuestion,
    EstimateQuestion,
    ThroughputQuestion,
    EmissionQuestion,
    ProfileName,
    StrategyText,
    SweepRequest,
    CompletionQuestion,
    ImportQuestion,
    AccuracyReport,
    ProblemDetails,
    *(operation.body for operation in OPERATIONS if operation.body is not None),
)
"""Models that routes name only by reference."""

TITLES = {
    400: "The request cannot be accepted as it was sent",
    401: "No key or token, or one that does not count",
    403: "The key or token may not do this, or a page of another site asked",
    404: "There is no such thing",
    405: "The path does not know this method",
    408: "The body did not arrive in time",
    409: "It contradicts what is there",
    412: "Another version is the current one",
    413: "The body is too large",
    415: "The body is not plain JSON",
    421: "The Host header names no host of this service",
    422: "The request is wrong, or no plan fits",
    428: "If-Match is missing",
    429: "Too many requests, or the queue is full",
    500: "A mistake of the service",
    503: "The service or its database is away; repeat after Retry-After",
    504: "The time limit ended before any plan",
    507: "No space is left for the database",
}
ALWAYS = (400, 401, 403, 421, 422, 429, 500, 503, 507)
"""Every operation under /v1 can end so."""
READS_BODY = (408, 413, 415)

DESCRIPTION = """Plans how a large model runs on a cluster: proved, explained, ready to launch.

Errors are `application/problem+json` (RFC 9457) with a stable `slug`, a `request_id` and every fault in `errors[]`.
Sizes are bytes, times are seconds, bandwidth is one-way per device. Plans never change: their id is their content."""


def problems(*statuses: int, body: bool = False) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of an operation that can fail with ``statuses`` besides the usual ones."""
    schema = {"schema": {"$ref": REF.format(model="ProblemDetails")}}
    every = sorted({*ALWAYS, *statuses, *(READS_BODY if body else ())})
    return {status: {"description": TITLES[status], "content": {MEDIA_TYPE: schema}} for status in every}


def reads(model: type[BaseModel] | None, example: dict[str, Any]) -> dict[str, Any]:
    """The ``openapi_extra`` of an operation whose body is a ``model``; None = an object of several possible forms."""
    schema = {"type": "object"} if model is None else {"$ref": REF.format(model=model.__name__)}
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document; computed once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title="Meshwright",
            version=__version__,
            openapi_version="3.1.0",
            description=DESCRIPTION,
            routes=app.routes,
            separate_input_output_schemas=False,
        )
        _, bodies = models_json_schema(
            [(model, "validation") for model in BODIES], ref_template=REF.format(model="{model}")
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for name, schema in bodies["$defs"].items():
            schemas.setdefault(name, schema)
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        names = schemas["Constraints"]["properties"]["backends"]
        # No enumeration: a release may follow a name.
        names["items"]["examples"] = [ANY, *backends()]
        document["components"]["schemas"] = dict(sorted(schemas.items()))
        app.openapi_schema = document
    return app.openapi_schema
