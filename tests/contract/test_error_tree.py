"""Every error has a name for programs, an exit code of the design, and a place in the tree drawn in its module."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys

import pytest

import api
import planner
import profiles
import solver
from profiles.errors import MeshwrightError

EXIT_CODES = {1, 2, 3, 4, 5, 6, 7, 8}
HTTP_STATUSES = {400, 401, 403, 404, 408, 409, 412, 413, 415, 421, 422, 428, 429, 500, 503, 504, 507}

# Modules that need an extra or a running Alembic; they define no errors (checked below by name).
NOT_IMPORTED = re.compile(
    r"planner\.native\..*|planner\.backends\.native\.trainer(\..*)?|planner\.store\.migrations(\..*)?"
    r"|api\.worker\.__main__|planner\.backends\.accelerate\.tiny_run_worker"
)


@pytest.fixture(scope="module")
def errors() -> list[type[MeshwrightError]]:
    """Every class of ours; not at import, because each worker would import the whole house to collect its tests."""
    for package in (api, planner, profiles, solver):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not NOT_IMPORTED.fullmatch(module.name):
                importlib.import_module(module.name)
    found: list[type[MeshwrightError]] = [MeshwrightError]
    for known in found:
        found += [cls for cls in known.__subclasses__() if cls not in found]
    ours = ("planner", "profiles", "solver", "api")
    return [cls for cls in found if cls.__module__.split(".")[0] in ours]


def test_the_walk_finds_the_tree(errors: list[type[MeshwrightError]]) -> None:
    names = {cls.__name__ for cls in errors}
    assert {"MeshwrightError", "DocumentInvalid", "NoFeasiblePlan", "BackEndRefused", "StoreFull"} <= names


def test_slugs_are_unique(errors: list[type[MeshwrightError]]) -> None:
    """A class without its own slug is the same error to a program as its parent."""
    slugs = [cls.slug for cls in errors if "slug" in vars(cls)]
    assert sorted(slugs) == sorted(set(slugs))


def test_every_error_is_complete(errors: list[type[MeshwrightError]]) -> None:
    assert {error.__name__: why for error in errors if (why := incomplete(error))} == {}


def incomplete(error: type[MeshwrightError]) -> list[str]:
    own = "slug" in vars(error)
    drawn = sys.modules[error.__module__].__doc__ or ""
    parent = next((base for base in error.__mro__[1:] if issubclass(base, MeshwrightError)), error)
    right = {
        "exit code and status of its parent": own
        or (error.exit_code, error.http_status) == (parent.exit_code, parent.http_status),
        "slug": re.fullmatch(r"[a-z]+(-[a-z]+)*", error.slug),
        "exit code": error.exit_code in EXIT_CODES,
        "HTTP status": error.http_status in HTTP_STATUSES,
        "docstring": (error.__doc__ or "").strip(),
        f"place in the tree at the top of {error.__module__}": not own or error.__name__ in drawn,
    }
    return [what for what, holds in right.items() if not holds]


def test_the_exit_code_drawn_is_the_exit_code(errors: list[type[MeshwrightError]]) -> None:
    drawn = {error: inspect.getdoc(sys.modules[error.__module__]) or "" for error in errors}
    rows = {error: re.search(rf"\b{error.__name__}\b.*?exit (\d)", text) for error, text in drawn.items()}
    assert {
        error.__name__ for error, row in rows.items() if row is not None and int(row[1]) != error.exit_code
    } == set()
