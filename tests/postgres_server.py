"""A real PostgreSQL for tests: a throw-away server with its own folder, a Unix socket, no TCP port.

PostgreSQL refuses to run as root; then its programs run as an unprivileged user through ``runuser``.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path


def server_programs() -> Path | None:
    """The folder of the newest installed ``initdb`` and ``pg_ctl``; None when there is none."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(folders, key=lambda path: float(path.parent.name), default=None)


class PostgresServer:
    """A server that lives from ``start`` to ``stop``."""

    def __init__(self, programs: Path, *, in_memory: bool = True, fsync: bool = False) -> None:
        self._programs, self._fsync = programs, fsync
        # Short, because the path of a Unix socket has at most 107 bytes; pytest's temporary folders are too deep.
        # In memory where that is possible: every new database writes about a thousand small files.
        self._folder = Path(tempfile.mkdtemp(prefix="mwpg", dir=_memory_folder() if in_memory else None))
        self._data = str(self._folder / "data")
        self._user = _unprivileged_user() if os.geteuid() == 0 else None

    def start(self) -> None:
        """Create a cluster and start it; returns when it accepts connections."""
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        # A locale that does not sort by bytes would be the harder case, but only C.UTF-8 is on every machine.
        self._call("initdb", "-D", self._data, "-U", "meshwright", "-A", "trust", "--locale=C.UTF-8", "--no-sync")
        self.resume()

    def resume(self) -> None:
        """Start the server on its existing data; returns when it accepts connections."""
        options = (
            f"-k {self._folder} -c listen_addresses= -c fsync={'on' if self._fsync else 'off'} -c max_connections=60"
        )
        self._call("pg_ctl", "-D", self._data, "-o", options, "-l", str(self._folder / "log"), "-w", "start")

    def halt(self) -> None:
        """Stop the server at once, without a clean shutdown; its data stay."""
        self._call("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")

    def stop(self) -> None:
        """Stop the server and remove its files."""
        try:
            if (Path(self._data) / "postmaster.pid").exists():
                self.halt()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def create_database(self, name: str) -> str:
        """A fresh empty database; returns its URL."""
        self._call("createdb", "-h", str(self._folder), "-U", "meshwright", name)
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Remove a database, with connections to it."""
        self._call("dropdb", "-h", str(self._folder), "-U", "meshwright", "--force", name)

    def url(self, name: str) -> str:
        """The URL of a database on this server."""
        return f"postgresql://meshwright@/{name}?host={self._folder}"

    def _call(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        if self._user is not None:
            command = ["runuser", "-u", self._user, "--", *command]
        log = self._folder / f"{program}.out"
        with log.open("a") as output:
            # Into a file: the server inherits a pipe and would keep a reader waiting.
            done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, cwd=self._folder, check=False)
        if done.returncode != 0:
            server_log = self._folder / "log"
            details = log.read_text() + (server_log.read_text() if server_log.exists() else "")
            raise RuntimeError(f"{program} failed:\n{details}")


def _memory_folder() -> str | None:
    shared_memory = Path("/dev/shm")
    roomy = shared_memory.is_dir() and shutil.disk_usage(shared_memory).free > 2**30
    return str(shared_memory) if roomy and os.access(shared_memory, os.W_OK) else None


def _unprivileged_user() -> str:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)
