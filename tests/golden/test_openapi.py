"""The API's contract is a file: UPDATE_GOLDEN=1 rewrites it, and the difference is reviewed."""

from __future__ import annotations

import json
import os
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


@cache
def operations() -> dict[str, dict[str, Any]]:
    return {
        name_of(path, method): each for path, found in document()["paths"].items() for method, each in found.items()
    }


def name_of(path: str, method: str) -> str:
    return f"{method.upper()} {path}"


# From the file, so that collection builds no service; that it is the document's is tested below.
PATHS = json.loads(GOLDEN.read_text(encoding="utf-8"))["paths"]
OPERATIONS = [name_of(path, method) for path, found in PATHS.items() for method in found]
UNDER_V1 = [name for name in OPERATIONS if " /v1" in name]


def test_the_document_is_the_golden_one() -> None:
    text = json.dumps(document(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8"), "UPDATE_GOLDEN=1 rewrites it; then look at the difference"


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_says_what_it_does(name: str) -> None:
    operation = operations()[name]
    assert operation["summary"]
    assert operation["description"], "the function's docstring"
    assert operation["tags"]


@pytest.mark.parametrize("name", UNDER_V1)
def test_every_operation_can_fail_and_says_how(name: str) -> None:
    responses = operations()[name]["responses"]
    assert {"400", "401", "403", "422", "429", "500", "503"} <= set(responses)
    for status, response in responses.items():
        if int(status) >= 400:
            assert list(response["content"]) == [MEDIA_TYPE]
            assert response["content"][MEDIA_TYPE]["schema"]["$ref"].endswith("/ProblemDetails")
    assert operations()[name]["security"] == [{"ApiKey": []}]


@pytest.mark.parametrize("name", UNDER_V1)
def test_every_body_is_described_with_an_example(name: str) -> None:
    if not name.startswith(("POST", "PUT")) or name.endswith(":cancel"):
        return
    content = operations()[name]["requestBody"]["content"]["application/json"]
    assert content["example"]
    assert content["schema"] == {"type": "object"} or content["schema"]["$ref"]
    assert {"413", "415"} <= set(operations()[name]["responses"])


def test_every_reference_leads_somewhere() -> None:
    schemas = document()["components"]["schemas"]
    text = json.dumps(document())
    names = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= set(schemas)
