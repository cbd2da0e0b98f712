from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.backends.checking.environment import ENVIRONMENT_VARIABLE, is_ready, make_ready, overlay, overlays_folder
from planner.backends.checking.validator import Validator
from planner.backends.folders.catalogue import parse_requirement, validator, validators
from planner.errors import DocumentInvalid, ValidatorUnavailable

PLAIN = Validator("thing", "1.0", Path("thing.py"), applies=lambda _: True, request=lambda _: {})


@pytest.fixture(autouse=True)
def _overlays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "overlays"))


def test_the_folder_is_the_variable_then_the_cache() -> None:
    assert overlays_folder({ENVIRONMENT_VARIABLE: "/x/y"}) == Path("/x/y")
    assert overlays_folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/meshwright/validators")
    assert overlays_folder({"XDG_CACHE_HOME": "relative"}) == Path.home() / ".cache/meshwright/validators"


def test_what_needs_nothing_is_ready() -> None:
    assert is_ready(PLAIN, "1.0")
    assert not overlay(PLAIN, "1.0").exists()


def test_an_overlay_is_filled_once_and_by_version() -> None:
    calls = []

    def fill(folder: Path, version: str) -> None:
        calls.append(version)
        (folder / "module.py").write_text("x = 1\n")

    made = replace(PLAIN, install=fill)
    assert not is_ready(made, "1.0")
    folder = make_ready(made, "1.0")
    assert (folder / "module.py").is_file()
    assert make_ready(made, "1.0") == folder
    assert make_ready(made, "2.0") != folder
    assert calls == ["1.0", "2.0"]


def test_a_failed_install_leaves_nothing() -> None:
    def fill(folder: Path, version: str) -> None:
        (folder / "half").write_text("")
        raise ValidatorUnavailable("no", where="here")

    with pytest.raises(ValidatorUnavailable):
        make_ready(replace(PLAIN, install=fill), "1.0")
    assert list(overlays_folder().iterdir()) == []


def test_a_release_that_nobody_has_is_one_clear_error() -> None:
    made = replace(PLAIN, packages=lambda version: (f"/nowhere/thing-{version}.whl",))
    with pytest.raises(ValidatorUnavailable, match="thing could not be installed") as caught:
        make_ready(made, "9.9")
    assert caught.value.where == "--with thing"
    assert caught.value.exit_code == 3


def test_a_module_that_the_interpreter_lacks_is_named() -> None:
    made = replace(PLAIN, base_modules=("no_such_module_here",))
    assert not is_ready(made, "1.0")
    with pytest.raises(ValidatorUnavailable, match="no_such_module_here"):
        make_ready(made, "1.0")


@pytest.mark.parametrize("name", list(validators()))
def test_every_validator_is_found_under_its_name(name: str) -> None:
    found = validator(name)
    assert found.name == name
    assert parse_requirement(name) == (found, found.default_version)
    assert parse_requirement(f" {name} == 1.2.3 ")[1] == "1.2.3"


@pytest.mark.parametrize("text", ["", "nothing", "nothing==1", "torchrun==", "torchrun== >=2", "torchrun==../x"])
def test_a_requirement_that_names_no_version_is_refused(text: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        parse_requirement(text)
    assert caught.value.where == "--with"
    assert caught.value.hint
