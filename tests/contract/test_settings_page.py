"""The page for operators names every setting of the service that a file can make, with its default."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import BaseModel

from api.access.oidc.settings import OidcSettings
from api.http.patience import ConnectionSettings
from api.retention import RetentionSettings
from api.settings import Settings
from api.telemetry.tracing import TracingSettings
from profiles.safe_yaml import load_yaml_text
from tests.command_line import REPOSITORY

PAGE = (REPOSITORY / "docs" / "how-to" / "operate-the-service.md").read_text(encoding="utf-8")
GROUPS: dict[str, type[BaseModel]] = {
    "oidc": OidcSettings,
    "retention": RetentionSettings,
    "connections": ConnectionSettings,
    "tracing": TracingSettings,
}
OPTIONAL = {"jwks_file"}


def shown() -> dict[str, Any]:
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    found: dict[str, Any] = load_yaml_text(block, "the page")
    return found


def test_the_file_on_the_page_is_one_that_the_service_takes() -> None:
    settings = Settings.model_validate(shown())
    assert settings.oidc is not None
    assert settings.tracing is not None


def test_every_setting_is_named() -> None:
    assert {name for name in Settings.model_fields if f"`{name}`" not in PAGE and name not in shown()} == set()


@pytest.mark.parametrize("group", GROUPS)
def test_every_setting_of_a_group_is_shown_with_its_default(group: str) -> None:
    values = shown()[group]
    assert set(values) | OPTIONAL >= set(GROUPS[group].model_fields)
    for name, field in GROUPS[group].model_fields.items():
        assert f"{name}" in PAGE
        if name in values and not field.is_required():
            said = values[name]
            assert (tuple(said) if isinstance(said, list) else said) == field.default, name
