"""Requests made from the OpenAPI document, good and bad, and what every answer must be."""

from __future__ import annotations

from typing import Any

import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
BUSY = 503
"""The service may be busy: a search of a generated question outlasts its few seconds and there is no queue to go to."""


def operations(document: dict[str, Any]) -> dict[str, Any]:
    """Every operation of the document, as schemathesis sees it."""
    schema = schemathesis.openapi.from_dict(document)
    found = [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]
    return {each.label: each for each in found}


def send(client: TestClient, operation: Any, examples: int) -> int:
    """Send generated requests of one operation; returns how many.  Raises what a check finds."""
    sent = 0

    @settings(
        max_examples=examples,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(operation.as_strategy())
    def check(case: Any) -> None:
        nonlocal sent
        sent += 1
        kwargs = case.as_transport_kwargs(base_url="http://testserver")
        cookies = kwargs.pop("cookies", None)
        del cookies  # the service reads none, and a client that holds them cannot be shared
        response = client.request(**kwargs, follow_redirects=False)
        if response.status_code != BUSY:
            case.validate_response(response, checks=CHECKS)

    check()
    return sent
