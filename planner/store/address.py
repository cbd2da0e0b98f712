"""The database address: an explicit URL, else ``$MESHWRIGHT_DATABASE``, else an SQLite file in the data folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from planner.store.errors import StoreUnavailable
from profiles.errors import DocumentInvalid

ENVIRONMENT_VARIABLE = "MESHWRIGHT_DATABASE"
SQLITE_PREFIX = "sqlite:///"

_DRIVERS = {
    "sqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}


def database_url(url: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """The database URL in SQLAlchemy's spelling.  A plain path means an SQLite file.

    Raises DocumentInvalid for a URL of another database system, naming where it came from.
    """
    variables = os.environ if environment is None else environment
    where = "--database" if url else f"${ENVIRONMENT_VARIABLE}"
    given = url or variables.get(ENVIRONMENT_VARIABLE) or SQLITE_PREFIX + str(default_path(variables))
    if "://" not in given:
        return SQLITE_PREFIX + str(Path(given).expanduser().absolute())
    scheme, rest = given.split("://", 1)
    driver = _DRIVERS.get(scheme)
    if driver is None:
        raise DocumentInvalid(
            f"{scheme!r} is not a database that Meshwright can use",
            where=where,
            hint="sqlite:////path/to/file.db, a plain path, or postgresql://user@host/database",
        )
    if driver == "sqlite" and not rest.strip("/"):
        raise DocumentInvalid("the SQLite URL names no file", where=where, hint="sqlite:////path/to/file.db")
    return f"{driver}://{rest}"


def default_path(environment: Mapping[str, str]) -> Path:
    """``$XDG_DATA_HOME/meshwright/meshwright.db``, with ``~/.local/share`` for an unset variable."""
    data_home = environment.get("XDG_DATA_HOME", "")
    # The XDG base directory specification: relative paths are to be ignored.
    base = Path(data_home) if data_home.startswith("/") else _home(environment) / ".local" / "share"
    return base / "meshwright" / "meshwright.db"


def sqlite_path(url: str) -> Path | None:
    """The file behind an SQLite URL; None for other databases and for ``:memory:``."""
    if not url.startswith(SQLITE_PREFIX):
        return None
    name = url.removeprefix(SQLITE_PREFIX).split("?", 1)[0]
    return None if name == ":memory:" else Path(name)


def jobs_path(path: Path) -> Path:
    """The file of a service's jobs beside a file of plans: ``plans.db`` -> ``plans.jobs.db``."""
    return path.with_name(f"{path.stem}.jobs{path.suffix or '.db'}")


def prepare_directory(url: str) -> None:
    """Create the folder of an SQLite file.  Raises StoreUnavailable when that is impossible."""
    path = sqlite_path(url)
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(
            f"the folder for the plan database cannot be created: {error.strerror or error}",
            where=str(path.parent),
            hint=f"make the folder writable, or point ${ENVIRONMENT_VARIABLE} at a file in a writable folder",
        ) from error
    if path.is_dir():
        raise DocumentInvalid(
            "the plan database is a folder", where=str(path), hint=f"point ${ENVIRONMENT_VARIABLE} at a file"
        )


def display(url: str) -> str:
    """The address as a person may see it: a path for SQLite, a URL without its password otherwise."""
    path = sqlite_path(url)
    if path is not None:
        return str(path)
    try:
        password = urlsplit(url).password
    except ValueError:
        return url.split("://", 1)[0] + "://..."
    return url.replace(f":{password}@", ":***@") if password else url


def _home(environment: Mapping[str, str]) -> Path:
    home = environment.get("HOME", "")
    return Path(home) if home else Path.home()
