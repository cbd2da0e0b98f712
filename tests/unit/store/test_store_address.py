from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from planner.store.address import database_url, default_path, display, prepare_directory, sqlite_path
from planner.store.errors import StoreUnavailable
from profiles.errors import DocumentInvalid

REPOSITORY = Path(__file__).parents[3]


def test_explicit_url_wins_over_the_environment() -> None:
    assert database_url("sqlite:////a/b.db", {"MESHWRIGHT_DATABASE": "sqlite:////c.db"}) == "sqlite:////a/b.db"


def test_environment_wins_over_the_data_folder() -> None:
    assert database_url(None, {"MESHWRIGHT_DATABASE": "sqlite:////c.db", "XDG_DATA_HOME": "/x"}) == "sqlite:////c.db"


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ({"XDG_DATA_HOME": "/data", "HOME": "/home/ann"}, "/data/meshwright/meshwright.db"),
        ({"HOME": "/home/ann"}, "/home/ann/.local/share/meshwright/meshwright.db"),
        ({"XDG_DATA_HOME": "relative", "HOME": "/home/ann"}, "/home/ann/.local/share/meshwright/meshwright.db"),
    ],
)
def test_default_path_follows_the_xdg_rules(environment: dict[str, str], path: str) -> None:
    assert default_path(environment) == Path(path)
    assert database_url(None, environment) == f"sqlite:///{path}"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgres_spellings_choose_psycopg(scheme: str) -> None:
    assert database_url(f"{scheme}://u@h/d", {}) == "postgresql+psycopg://u@h/d"


def test_plain_path_is_an_sqlite_file(tmp_path: Path) -> None:
    url = database_url(str(tmp_path / "x.db"), {})
    assert sqlite_path(url) == tmp_path / "x.db"


@pytest.mark.parametrize("url", ["mysql://h/d", "sqlite://", "sqlite:///"])
def test_unusable_urls_are_refused(url: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        database_url(url, {})
    assert caught.value.where == "--database"
    assert caught.value.hint is not None
    with pytest.raises(DocumentInvalid) as caught:
        database_url(None, {"MESHWRIGHT_DATABASE": url})
    assert caught.value.where == "$MESHWRIGHT_DATABASE"


def test_directory_is_created(tmp_path: Path) -> None:
    prepare_directory(f"sqlite:///{tmp_path}/a/b/c.db")
    assert (tmp_path / "a" / "b").is_dir()


def test_directory_that_cannot_be_created_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable) as caught:
        prepare_directory(f"sqlite:///{tmp_path}/file/sub/c.db")
    assert caught.value.where == str(tmp_path / "file" / "sub")


def test_database_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="is a folder"):
        prepare_directory(f"sqlite:///{tmp_path}")


def test_display_hides_the_password() -> None:
    assert display("postgresql+psycopg://ann:secret@h/d") == "postgresql+psycopg://ann:***@h/d"
    assert "secret" not in display("postgresql+psycopg://ann:secret@[broken/d")
    assert display("sqlite:////a/b.db") == "/a/b.db"


def test_importing_the_store_imports_no_sqlalchemy() -> None:
    code = "import sys, planner.store; sys.exit('sqlalchemy' in sys.modules or 'alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0


def test_opening_and_saving_imports_no_alembic(tmp_path: Path) -> None:
    code = (
        "import sys; from planner.store import open_store; from tests.plan_factory import make_plan\n"
        f"with open_store({str(tmp_path / 'p.db')!r}) as store: store.save_plan(make_plan(), 0.1)\n"
        "sys.exit('alembic' in sys.modules or 'psycopg' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0
