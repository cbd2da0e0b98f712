"""A real service with real plans, for the tests of the web pages: ``python -m tests.web.serve_seeded [--port N]``.

A temporary SQLite database, ``meshwright serve`` on it, and questions asked through its own door.  Prints
``seeded: port N`` when everything is there, serves until a signal, and leaves nothing behind.  ``--services 2`` serves
two equal copies, each with its own database (``seeded: port N-M``): the questions are asked once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from planner.store.backup import backup_store
from tests.web.seeds import keep_older, seed

START_S = 300.0
STOP_S = 120.0
LOOK_EVERY_S = 0.1
MESHWRIGHT = (sys.executable, "-m", "planner.cli.main")


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--empty", action="store_true", help="no plans, no jobs")
    parser.add_argument(
        "--synchronous-s",
        type=float,
        default=120.0,
        help="a search that takes longer becomes a job (%(default)s: a busy machine turns none into one)",
    )
    parser.add_argument("--keys", action="store_true", help="demand API keys and print one with scope plan; no plans")
    parser.add_argument("--services", type=int, default=1, help="so many, which are equal when it says that they serve")
    given = parser.parse_args()
    if given.port and given.services > 1:
        parser.error("--port is of one service; --services takes free ones")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="meshwright-web-") as name:
        serve(Path(name), given)


def serve(folder: Path, given: argparse.Namespace) -> None:
    """Serve with a database in ``folder`` until a signal."""
    database = f"sqlite:///{folder / 'plans.db'}"
    # Read by the service, and by what puts measurements there.
    os.environ["MESHWRIGHT_PROFILES"] = str(folder / "profiles")
    if given.keys:
        print(f"key: {new_key(database)}", flush=True)
    if not (given.empty or given.keys):
        keep_older(database)
    with ExitStack() as services:
        addresses = [services.enter_context(served(database, folder, given))]
        if not (given.empty or given.keys):
            seed(addresses[0])
        for number in range(1, given.services):
            copy = folder / f"copy-{number}"
            copy.mkdir()
            addresses.append(services.enter_context(served(copied(database, folder, copy), copy, given)))
        print(f"seeded: port {'-'.join(str(httpx.URL(each).port) for each in addresses)}", flush=True)
        signal.pause()


def copied(database: str, folder: Path, copy: Path) -> str:
    """A database that is equal to the one in ``folder``, which is being served; jobs and measurements come along."""
    backup_store(copy / "plans.db", database)
    os.environ["MESHWRIGHT_PROFILES"] = str(copy / "profiles")
    if (folder / "profiles").exists():
        shutil.copytree(folder / "profiles", copy / "profiles")
    return f"sqlite:///{copy / 'plans.db'}"


def new_key(database: str) -> str:
    """An API key of the service on ``database``."""
    command = [*MESHWRIGHT, "token", "create", "--name", "web", "--scope", "plan", "--database", database]
    done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, check=True)
    key: str = json.loads(done.stdout)["key"]
    return key


@contextmanager
def served(database: str, folder: Path, given: argparse.Namespace) -> Iterator[str]:
    """The address of ``meshwright serve``."""
    port, log = given.port or free_port(), folder / "serve.log"
    command = [*MESHWRIGHT, "serve", "--port", str(port), "--database", database]
    if given.keys:
        command += ["--auth", "keys"]
    settings = folder / "settings.json"
    settings.write_text(json.dumps({"synchronous_s": given.synchronous_s}), encoding="utf-8")
    command += ["--settings", str(settings)]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until_ready(address, process)
        yield address
    except BaseException as error:
        if not isinstance(error, SystemExit):
            print(log.read_text(errors="replace")[-20_000:], file=sys.stderr)
        raise
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until_ready(address: str, process: subprocess.Popen[bytes]) -> None:
    """Return when the service can work.  Raises RuntimeError when it ended, or does not come."""
    end_s = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < end_s:
        try:
            if httpx.get(f"{address}/readyz").is_success:
                return
        except httpx.TransportError:
            time.sleep(LOOK_EVERY_S)
    raise RuntimeError(f"the service does not answer; its exit code: {process.returncode}")


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port: int = door.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
