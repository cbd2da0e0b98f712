"""Killed imports, full disks, read-only folders, two writers: a batch is there whole or not at all."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from profiles.importing.imported import Batch, Imported
from profiles.observation_store.errors import ProfileStoreError, ProfileStoreFull, ProfileStoreUnwritable
from profiles.observation_store.files import store_lock, write_rows
from profiles.observation_store.query import select
from profiles.observation_store.schema import Kind
from profiles.observation_store.store import ObservationStore
from tests.command_line import REPOSITORY, shell_environment
from tests.observation_factory import H100, imported, matmul, source

MANY_ROWS = 300_000

WRITER = """
import sys
from pathlib import Path
import pyarrow as pa
from profiles.importing.imported import Batch, Imported
from profiles.observation_store.store import ObservationStore
from tests.observation_factory import H100, source
from profiles.observation_store import files

stop_at = sys.argv[2]
rename, write_rows = Path.rename, files.write_rows

def stopping_rename(self, target):
    if stop_at == "rows-published" and Path(target).suffix == ".json":
        print("ready", flush=True)
        sys.stdin.read()
    return rename(self, target)

def stopping_write(kind, tables, path):
    write_rows(kind, tables, path)
    if stop_at == "rows-written":
        print("ready", flush=True)
        sys.stdin.read()

Path.rename = stopping_rename
import profiles.observation_store.store as store
store.write_rows = stopping_write
table = pa.table({"operator": ["norm"] * 1000, "name": ["x"] * 1000, "time_s": [1.0] * 1000})
ObservationStore(Path(sys.argv[1])).add(Imported("t", batches=[Batch(H100, operator_table=table)]), source("a"))
"""


@pytest.fixture
def store(tmp_path: Path) -> ObservationStore:
    return ObservationStore(tmp_path / "profiles")


def many_rows() -> Imported:
    times = pa.array(range(1, MANY_ROWS + 1), pa.float64())
    names = pa.array([f"kernel {number}" for number in range(MANY_ROWS)])
    table = pa.table({"operator": pa.repeat("kernel", MANY_ROWS), "name": names, "time_s": times})
    return Imported("test", batches=[Batch(H100, operator_table=table)])


def files_of(store: ObservationStore) -> list[str]:
    """Everything but empty folders and the lock."""
    found = (path.relative_to(store.folder) for path in store.folder.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if path.name != ".lock")


@pytest.mark.parametrize("stop_at", ["rows-written", "rows-published"])
def test_a_killed_import_leaves_nothing_visible(store: ObservationStore, stop_at: str) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(store.folder), stop_at],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
        env=shell_environment(),
    )
    assert writer.stdout is not None
    assert writer.stdin is not None
    assert writer.stdout.readline() == b"ready\n"
    assert files_of(store) != []
    assert store.states() == []
    writer.send_signal(signal.SIGKILL)
    writer.wait(300)
    writer.stdout.close()
    writer.stdin.close()
    assert store.states() == []
    assert select(store, "operators").num_rows == 0
    # The next import cleans up, and finds nothing in its way.
    (stored,) = store.add(imported([matmul(1, 1e-3)]), source("b"))
    batch_id = stored.batch.batch_id
    assert files_of(store) == [f"batches/{batch_id}.json", f"operators/{batch_id}.parquet"]


def test_a_living_import_is_not_cleaned_away(store: ObservationStore) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(store.folder), "rows-written"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
        env=shell_environment(),
    )
    assert writer.stdout is not None
    assert writer.stdin is not None
    assert writer.stdout.readline() == b"ready\n"
    store.add(imported([matmul(1, 1e-3)]), source("b"))
    writer.stdin.close()
    assert writer.wait(300) == 0
    writer.stdout.close()
    assert select(store, "operators").num_rows == 1001
    assert len(store.states()) == 2
    assert [name for name in files_of(store) if name.startswith("partial")] == []


def _add_with_a_small_disk(folder: Path, limit_bytes: int) -> None:
    """In a process of its own, whose files may not grow beyond the limit."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    try:
        ObservationStore(folder).add(many_rows(), source("a"))
    except ProfileStoreFull as error:
        os._exit(0 if "nothing was stored" in (error.hint or "") else 3)
    except BaseException:
        os._exit(4)
    os._exit(5)


@pytest.mark.parametrize("limit_bytes", [100, 100_000])
def test_a_full_disk_is_one_clear_error_and_leaves_nothing(store: ObservationStore, limit_bytes: int) -> None:
    assert _exit_code(_add_with_a_small_disk, store.folder, limit_bytes) == 0
    assert store.states() == []
    assert files_of(store) == []
    assert store.add(many_rows(), source("a"))[0].new
    assert select(store, "operators", columns=["time_s"]).num_rows == MANY_ROWS


def test_a_real_full_file_system(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(small)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small file system")
    try:
        store = ObservationStore(small / "profiles")
        store.add(imported([matmul(1, 1e-3)]), source("first"))
        with pytest.raises(ProfileStoreFull):
            store.add(many_rows(), source("a"))
        assert len(store.states()) == 1
        assert select(store, "operators").num_rows == 1
        assert store.add(imported([matmul(2, 1e-3)]), source("b"))[0].new
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_the_second_of_several_batches_that_fails_takes_the_first_along(
    store: ObservationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def full_at_the_second(kind: Kind, tables: list[pa.Table], path: Path) -> None:
        if written:
            raise OSError(28, "No space left on device")
        written.append(path)
        write_rows(kind, tables, path)

    monkeypatch.setattr("profiles.observation_store.store.write_rows", full_at_the_second)
    twice = Imported("test", batches=[Batch(H100, [matmul(1, 1e-3)]), Batch(H100, [matmul(2, 1e-3)])])
    with pytest.raises(ProfileStoreFull):
        store.add(twice, source("a"))
    assert written
    assert files_of(store) == []


def _add_without_rights(folder: Path, _: int) -> None:
    """Root may write everywhere, so the process becomes somebody else."""
    # What is loaded only now could lie where nobody else may read.
    ObservationStore(folder.parent / "loads-everything").add(imported([matmul(2, 1e-3)]), source("b"))
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    try:
        ObservationStore(folder).add(imported([matmul(2, 1e-3)]), source("b"))
    except ProfileStoreUnwritable as error:
        os._exit(0 if error.where == str(folder) else 3)
    except BaseException:
        os._exit(4)
    os._exit(5)


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder that another user can reach but not write; pytest closes its own to others whenever a session starts."""
    with tempfile.TemporaryDirectory(prefix="meshwright-open-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_a_folder_that_may_not_be_written(open_path: Path) -> None:
    store = ObservationStore(open_path / "profiles")
    store.add(imported([matmul(1, 1e-3)]), source("a"))
    for path in (store.folder, *store.folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = files_of(store)
    assert _exit_code(_add_without_rights, store.folder, 0) == 0
    assert files_of(store) == before
    assert select(store, "operators").num_rows == 1
    for path in (store.folder, *store.folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "profiles").write_text("not a folder")
    with pytest.raises(ProfileStoreError) as caught:
        ObservationStore(tmp_path / "profiles").add(imported([matmul(1, 1e-3)]), source("a"))
    assert caught.value.exit_code == 2


def _add_batches(folder: Path, first: int) -> None:
    store = ObservationStore(folder)
    for number in range(first, first + 10):
        store.add(imported([matmul(1, 1e-3)]), source(f"file {number}"))
    os._exit(0)


@pytest.mark.slow
def test_writers_at_once_lose_nothing(store: ObservationStore) -> None:
    context = multiprocessing.get_context("spawn")
    # Overlapping ranges: half of the batches are added by two writers.
    writers = [context.Process(target=_add_batches, args=(store.folder, first)) for first in (0, 5, 10)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(300)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert len(store.batches()) == 20
    assert select(store, "operators").num_rows == 20
    assert [name for name in files_of(store) if name.startswith("partial")] == []


def test_a_dead_writer_holds_no_lock(store: ObservationStore) -> None:
    context = multiprocessing.get_context("spawn")
    holder = context.Process(target=_hold_the_lock, args=(store.folder,))
    holder.start()
    while not (store.folder / "held").exists():
        time.sleep(0.01)
    holder.kill()
    holder.join(300)
    (store.folder / "held").unlink()
    assert store.add(imported([matmul(1, 1e-3)]), source("a"))[0].new


def _hold_the_lock(folder: Path) -> None:
    with store_lock(folder):
        (folder / "held").touch()
        time.sleep(60)


def _exit_code(target: Callable[[Path, int], None], folder: Path, argument: int) -> int | None:
    process = multiprocessing.get_context("spawn").Process(target=target, args=(folder, argument))
    process.start()
    process.join(300)
    return process.exitcode
