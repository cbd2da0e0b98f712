"""The API's contract is a file: UPDATE_GOLDEN=1 rewrites it, and the difference is reviewed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from api.app import openapi_document
from api.wire.problem_details import MEDIA_TYPE

GOLDEN = Path(__file__).parent / "openapi.json"


@cache
def document() -> dict[str, Any]:
    return openapi_document()


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


OPERATIONS = dict(operations())
UNDER_V1 = {name: each for name, each in OPERATIONS.items() if " /v1" in name}


def test_the_document_is_the_golden_one() -> None:
    text = json.dumps(document(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8"), "UPDATE_GOLDEN=1 rewrites it; then look at the difference"


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_says_what_it_does(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation["summary"]
    assert operation["description"], "the function's docstring"
    assert operation["tags"]


@pytest.mark.parametrize("name", UNDER_V1)
def test_every_operation_can_fail_and_says_how(name: str) -> None:
    responses = UNDER_V1[name]["responses"]
    assert {"400", "401", "403", "422", "429", "500", "503"} <= set(responses)
    for status, response in responses.items():
        if int(status) >= 400:
            assert list(response["content"]) == [MEDIA_TYPE]
            assert response["content"][MEDIA_TYPE]["schema"]["$ref"].endswith("/ProblemDetails")
    assert UNDER_V1[name]["security"] == [{"ApiKey": []}]


@pytest.mark.parametrize("name", UNDER_V1)
def test_every_body_is_described_with_an_example(name: str) -> None:
    if not name.startswith(("POST", "PUT")) or name.endswith(":cancel"):
        return
    content = UNDER_V1[name]["requestBody"]["content"]["application/json"]
    assert content["example"]
    assert content["schema"] == {"type": "object"} or content["schema"]["$ref"]
    assert {"413", "415"} <= set(UNDER_V1[name]["responses"])


def test_every_reference_leads_somewhere() -> None:
    schemas = document()["components"]["schemas"]
    text = json.dumps(document())
    names = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= set(schemas)
