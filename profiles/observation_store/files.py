"""A batch appears whole or not at all: staging folders, one short lock, renames, leftovers of killed imports.

    <folder>/.lock                       held while files are published, never while data is written
    <folder>/partial/<random>/           what an import is writing; its own lock tells whether the writer lives
    <folder>/<kind>/<batch_id>.parquet   rows; without the file below they are a leftover and nobody reads them
    <folder>/batches/<batch_id>.json     written last: this is what makes a batch visible
    <folder>/withdrawn/<batch_id>.<n>.json

Locks are advisory (``flock``): the kernel drops them with their process, so nothing ever waits for the dead.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from profiles.observation_store.address import BATCHES
from profiles.observation_store.checking import complete, stored_names
from profiles.observation_store.errors import of_os_error
from profiles.observation_store.schema import KINDS, Kind, columns_of

WITHDRAWN, PARTIAL = "withdrawn", "partial"
ROWS_AT_ONCE = 1 << 20
ROWS_A_GROUP = 1 << 18


@contextlib.contextmanager
def staging_folder(folder: Path) -> Iterator[Path]:
    """A folder of one's own on the same disk; removed at the end, and by the next import if this one is killed.

    Raises ProfileStoreUnwritable or ProfileStoreFull, also for errors of the block inside.
    """
    try:
        with contextlib.ExitStack() as stack:
            with store_lock(folder):
                _remove_leftovers(folder)
                path = Path(tempfile.mkdtemp(dir=folder / PARTIAL))
                stack.callback(shutil.rmtree, path, ignore_errors=True)
                stack.enter_context(_flock(path / "lock"))
            yield path
    except OSError as error:
        raise of_os_error(error, folder) from None


@contextlib.contextmanager
def store_lock(folder: Path) -> Iterator[None]:
    """Nobody else publishes or cleans meanwhile.  Creates the folders."""
    for name in (*KINDS, BATCHES, WITHDRAWN, PARTIAL):
        (folder / name).mkdir(parents=True, exist_ok=True)
    with _flock(folder / ".lock"):
        yield


def write_rows(kind: Kind, tables: Sequence[pa.Table], path: Path) -> None:
    """One Parquet file of a kind, slice by slice, on the disk when this returns."""
    names = {name for table in tables for name in stored_names(kind, table)}
    columns = [column for column in columns_of(kind) if column.name in names]
    ordered = [column.name for column in columns]
    schema = pa.schema([(column.name, column.type) for column in columns])
    repeated = [column.name for column in columns if not pa.types.is_floating(column.type)]
    with path.open("wb") as file:
        with pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=repeated) as writer:
            for table in tables:
                for start in range(0, table.num_rows, ROWS_AT_ONCE):
                    piece = complete(kind, table.slice(start, ROWS_AT_ONCE), ordered)
                    writer.write_table(piece, row_group_size=ROWS_A_GROUP)
        file.flush()
        os.fsync(file.fileno())


def write_text(path: Path, text: str) -> None:
    """A small file, on the disk when this returns."""
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def publish(folder: Path, staging: Path) -> list[str]:
    """Move everything staged into place, rows before records; returns the ids that were there already.

    To be called without the lock.  A batch that another process published meanwhile stays as it is.
    """
    with store_lock(folder):
        records = sorted((staging / BATCHES).glob("*.json"))
        present = [record.stem for record in records if (folder / BATCHES / record.name).exists()]
        new = [record for record in records if record.stem not in present]
        for kind in KINDS:
            for record in new:
                rows = staging / kind / f"{record.stem}.parquet"
                if rows.exists():
                    rows.rename(folder / kind / rows.name)
            _sync(folder / kind)
        for record in new:
            record.rename(folder / BATCHES / record.name)
        _sync(folder / BATCHES)
    return present


def create_new(path: Path, text: str, staging: Path) -> bool:
    """Write a file that must not exist yet; False if it does."""
    temporary = staging / path.name
    write_text(temporary, text)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    _sync(path.parent)
    return True


def _remove_leftovers(folder: Path) -> None:
    """Delete what killed imports left: staging folders without a living writer, rows without a record."""
    for path in (folder / PARTIAL).iterdir():
        # Gone or not lockable: its writer has just finished, or lives.
        with contextlib.suppress(FileNotFoundError, BlockingIOError), _flock(path / "lock", wait=False):
            shutil.rmtree(path, ignore_errors=True)
    visible = {path.stem for path in (folder / BATCHES).glob("*.json")}
    for kind in KINDS:
        for path in (folder / kind).glob("*.parquet"):
            if path.stem not in visible:
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def _flock(path: Path, *, wait: bool = True) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
