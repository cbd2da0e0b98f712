"""What happens when the world breaks: full disk, read-only or damaged file, lost server, ``kill -9``."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.store import open_store
from planner.store.errors import StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from tests.plan_factory import make_model, make_plan
from tests.postgres_server import PostgresServer, server_programs

REPOSITORY = Path(__file__).parents[2]


def plan_ids(store_path: Path) -> set[str]:
    with open_store(str(store_path)) as store:
        return {record.plan_id for record in store.list_plans(limit=1000)}


def assert_sound(path: Path) -> None:
    """SQLite itself finds no damage, and no row refers to nothing."""
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    finally:
        connection.close()


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )


# --- Damaged or foreign files ---------------------------------------------------------------------------------------


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but somebody's notes\n" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt) as caught:
        open_store(str(path))
    assert caught.value.where == str(path)
    assert caught.value.exit_code == 2
    assert path.read_bytes() == before


def test_a_damaged_database_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "plans.db"
    with open_store(str(path)) as store:
        for layers in range(1, 20):
            store.save_plan(make_plan(model=make_model(layers)), 0.1)
    data = bytearray(path.read_bytes())
    # Everything behind the first page: the schema's page stays readable, the tables do not.
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreCorrupt) as caught, open_store(str(path)) as store:
        store.list_plans()
    assert "backup" in (caught.value.hint or "")


# --- Read-only ------------------------------------------------------------------------------------------------------

# Imports first: afterwards root has become nobody, who may not read the interpreter's folder.
READ_ONLY = """
import os, sys
from planner.store import open_store, repository
from planner.store.errors import StoreError
from tests.plan_factory import make_plan
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    with open_store(sys.argv[1]) as store:
        store.save_plan(make_plan(), 0.1)
except StoreError as error:
    print(type(error).__name__, error.exit_code)
    print(error)
else:
    print("stored")
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that an unprivileged user can enter; pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="mwro"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_read_only_database_is_one_clear_error(open_folder: Path) -> None:
    path = open_folder / "plans.db"
    with open_store(str(path)):
        pass
    path.chmod(0o444)
    open_folder.chmod(0o555)
    done = python(READ_ONLY, str(path))
    open_folder.chmod(0o755)
    assert done.stdout.splitlines()[0] in {"StoreReadOnly 2", "StoreUnavailable 2"}, done.stdout + done.stderr
    assert str(path) in done.stdout
    assert "hint:" in done.stdout
    assert plan_ids(path) == set()


def test_a_folder_that_cannot_be_written_is_one_clear_error(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    done = python(READ_ONLY, str(open_folder / "deep" / "plans.db"))
    assert done.stdout.startswith("StoreUnavailable 2"), done.stdout + done.stderr
    done = python(READ_ONLY, str(open_folder / "plans.db"))
    assert done.stdout.startswith("StoreUnavailable 2"), done.stdout + done.stderr
    open_folder.chmod(0o755)
    assert list(open_folder.iterdir()) == []


# --- No space -------------------------------------------------------------------------------------------------------

FILL = """
import resource, signal, sys
from planner.store import open_store
from planner.store.errors import StoreFull
from tests.plan_factory import make_model, make_plan
plans = [make_plan(model=make_model(layers)) for layers in range(1, 2000)]
with open_store(sys.argv[1]) as store:
    store.save_plan(plans[0], 0.1)
    if len(sys.argv) > 2:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
    saved = 0
    try:
        for plan in plans:
            store.save_plan(plan, 0.1)
            saved += 1
    except StoreFull as error:
        print("full", error.exit_code, saved)
        print(error)
"""


def assert_filled_cleanly(done: subprocess.CompletedProcess[str], path: Path) -> None:
    first = done.stdout.splitlines()[0].split() if done.stdout else []
    assert first[:2] == ["full", "2"], done.stdout + done.stderr
    saved = int(first[2])
    assert saved > 0
    assert "hint: free disk space" in done.stdout
    assert_sound(path)
    # The plan that did not fit left no document behind; those before it are whole.
    assert len(plan_ids(path)) == saved
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM documents WHERE kind = 'plan'").fetchone() == (saved,)
    connection.close()


def test_a_full_quota_loses_only_the_plan_that_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "plans.db"
    assert_filled_cleanly(python(FILL, str(path), str(300 * 1024)), path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
def test_a_full_disk_loses_only_the_plan_that_does_not_fit(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        path = tmp_path / "plans.db"
        done = python(FILL, str(path))
        # As the user would: make space, then go on.
        subprocess.run(["mount", "-o", "remount,size=8m", str(tmp_path)], check=True)
        assert_filled_cleanly(done, path)
        with open_store(str(path)) as store:
            assert store.save_plan(make_plan(model=make_model(5000)), 0.1)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
def test_a_disk_without_any_space_is_one_clear_error(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(tmp_path)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        with pytest.raises((StoreFull, StoreUnavailable)), open_store(str(tmp_path / "plans.db")) as store:
            store.save_plan(make_plan(), 0.1)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


# --- Killed and locked ----------------------------------------------------------------------------------------------

SAVE_FOREVER = """
import itertools, sys
from planner.store import open_store
from tests.plan_factory import make_model, make_plan
with open_store(sys.argv[1]) as store:
    for layers in itertools.count(1):
        print(store.save_plan(make_plan(model=make_model(layers)), 0.1), flush=True)
"""


@pytest.mark.parametrize("after_s", [0.0, 0.013, 0.05])
def test_kill_in_the_middle_of_saving_leaves_a_sound_database(tmp_path: Path, after_s: float) -> None:
    path = tmp_path / "plans.db"
    with subprocess.Popen(
        [sys.executable, "-c", SAVE_FOREVER, str(path)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        confirmed = {writer.stdout.readline().strip()}
        time.sleep(after_s)
        writer.send_signal(signal.SIGKILL)
        confirmed |= {line.strip() for line in writer.stdout if line.endswith("\n")}
    assert_sound(path)
    kept = plan_ids(path)
    # What was confirmed is there; at most the one plan in flight is there beyond.
    assert confirmed <= kept
    assert len(kept - confirmed) <= 1
    with open_store(str(path)) as store:
        for plan_id in kept:
            assert store.get_plan(plan_id).plan_id == plan_id


def test_kill_between_the_statements_of_one_save_leaves_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "plans.db"
    code = (
        "import os, signal, sys\n"
        "from planner.store import open_store, saving\n"
        "from tests.plan_factory import make_plan\n"
        "saving.insert_search = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "with open_store(sys.argv[1]) as store: store.save_plan(make_plan(), 0.1)\n"
    )
    assert python(code, str(path)).returncode == -signal.SIGKILL
    assert_sound(path)
    assert plan_ids(path) == set()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM documents").fetchone() == (0,)
    connection.close()


def test_a_lock_that_is_never_released_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.store.engine.BUSY_TIMEOUT_MS", 50)
    path = tmp_path / "plans.db"
    with open_store(str(path)) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            store.save_plan(make_plan(), 0.1)
        # Readers are not blocked by a writer.
        assert store.list_plans() == ()
        other.execute("ROLLBACK")
        other.close()
        store.save_plan(make_plan(), 0.1)


# --- PostgreSQL -----------------------------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="the PostgreSQL driver is not installed")
    with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
        open_store(f"postgresql://ann:secret@/plans?host={tmp_path}")
    assert "secret" not in str(caught.value)
    assert "MESHWRIGHT_DATABASE" in (caught.value.hint or "")


@pytest.mark.postgres
def test_a_database_that_does_not_exist_is_one_clear_error(postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        open_store(postgres_server.url("never_created"))
    assert "never_created" in str(caught.value)


@pytest.mark.postgres
def test_a_read_only_server_is_one_clear_error(postgres_url: str) -> None:
    with open_store(postgres_url) as store:
        first = store.save_plan(make_plan(), 0.1)
    read_only = f"{postgres_url}&options=-c%20default_transaction_read_only%3Don"
    with open_store(read_only) as store:
        assert store.resolve(first) == first
        with pytest.raises(StoreReadOnly):
            store.save_plan(make_plan(model=make_model(3)), 0.1)
        with pytest.raises(StoreReadOnly):
            store.service().is_ready()


@pytest.mark.postgres
def test_a_server_that_dies_is_one_clear_error_and_keeps_what_it_confirmed() -> None:
    programs = server_programs()
    if programs is None:
        pytest.skip("PostgreSQL server programs are not installed")
    server = PostgresServer(programs)
    server.start()
    try:
        url = server.create_database("dying")
        with open_store(url) as store:
            plan_id = store.save_plan(make_plan(), 0.1)
            server.halt()
            with pytest.raises(StoreError) as caught:
                store.save_plan(make_plan(model=make_model(3)), 0.1)
            assert isinstance(caught.value, StoreUnavailable)
            server.resume()
            assert store.resolve(plan_id) == plan_id
            store.save_plan(make_plan(model=make_model(3)), 0.1)
    finally:
        server.stop()


def test_a_malformed_url_is_one_clear_error() -> None:
    pytest.importorskip("psycopg", reason="the PostgreSQL driver is not installed")
    with pytest.raises(StoreUnavailable) as caught:
        open_store("postgresql://host:notaport/plans")
    assert caught.value.exit_code == 2
