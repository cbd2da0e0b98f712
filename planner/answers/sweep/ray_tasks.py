"""The executor for many machines: a Ray cluster that is there, or one started here for the sweep.

A cell is a Ray task of one CPU.  When its node dies, Ray runs it again elsewhere, at most ``MOST_TRIES`` times; the
results come to the driver as they finish, and only the driver knows a database.  Workers must have the same software
installed (every task compares the signatures), or are sent it from a folder.
"""

from __future__ import annotations

import io
import logging
import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import astuple
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from planner.answers.sweep.errors import ExecutorUnavailable
from planner.answers.sweep.task import MOST_TRIES, Outcome, Task
from planner.errors import Conflict, DocumentInvalid
from planner.store.signature import software_signature

ADDRESS_VARIABLE = "RAY_ADDRESS"
LOCAL = "local"
OBJECT_STORE_BYTES = 128 * 2**20
"""Of a Ray started here: plans are small."""
LEAST_IN_FLIGHT = 256
IN_FLIGHT_PER_CPU = 4
"""Tasks handed to Ray before earlier ones are done: enough to keep every node busy, and for an autoscaler to see."""
SHIPPED = ("planner", "profiles", "solver")
REPAIR = "install the same Meshwright on every node of the cluster, or send this one: --ray-code FOLDER"

log = logging.getLogger("meshwright.sweep")


class RayTasks:
    """Tasks on the cluster at ``address`` (``ray://host:port``); None = of $RAY_ADDRESS, else one started here."""

    def __init__(self, address: str | None, num_cpus: int, code: Path | None = None) -> None:
        self._address = address or os.environ.get(ADDRESS_VARIABLE) or LOCAL
        self._num_cpus = num_cpus
        self._runtime_env = None if code is None else {"py_modules": _modules(code), "excludes": ["**/__pycache__/"]}

    def run(self, tasks: Sequence[Task]) -> Generator[Outcome, None, None]:
        """The outcomes as they finish.  Raises ExecutorUnavailable, Conflict."""
        if find_spec("ray") is None:
            raise ExecutorUnavailable(
                "Ray is not installed",
                where="--executor",
                hint="pip install 'meshwright[ray]', or --executor processes",
            )
        ray: Any = import_module("ray")
        with redirect_stdout(_Chatter()), self._connected(ray):
            remote = ray.remote(num_cpus=1, max_retries=MOST_TRIES - 1)(_portable())
            profiles = {key: ray.put(content) for key, content in _profiles(tasks).items()}
            signature, waiting = software_signature(), deque(tasks)
            most = max(LEAST_IN_FLIGHT, IN_FLIGHT_PER_CPU * int(ray.cluster_resources().get("CPU", 0)))
            running: dict[Any, Task] = {}
            while waiting or running:
                while waiting and len(running) < most:
                    task = waiting.popleft()
                    profile = profiles.get(task.profile_id) if task.profile_id else None
                    running[remote.remote(astuple(task), signature, profile)] = task
                finished, _ = ray.wait(list(running), num_returns=1)
                for reference in finished:
                    yield _outcome(ray, running.pop(reference), reference)

    @contextmanager
    def _connected(self, ray: Any) -> Iterator[None]:
        if ray.is_initialized():
            # Whoever connected this process decides when it ends.
            yield
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options: dict[str, Any] = {"runtime_env": self._runtime_env, "logging_level": logging.ERROR}
        options["log_to_driver"] = False
        if self._address == LOCAL:
            options |= {"num_cpus": self._num_cpus, "include_dashboard": False}
            options["object_store_memory"] = OBJECT_STORE_BYTES
            # Ray's workers step back behind everything else (niceness 15); here they do what this process waits for.
            os.environ.setdefault("RAY_worker_niceness", "0")
        try:
            ray.init(address=self._address, **options)
        except Exception as error:
            # Ray raises bare exceptions, and many kinds of its own, where nothing answers or a node is slow to start.
            raise _no_cluster(self._address, error) from None
        try:
            yield
        finally:
            ray.shutdown()


class _Chatter(io.TextIOBase):
    """What Ray prints about nodes that died: it would stand in the middle of an answer on stdout."""

    def write(self, text: str) -> int:
        """Into the log."""
        log.debug("%s", text.rstrip())
        return len(text)


def _portable() -> Callable[..., dict[str, Any]]:
    """What a Ray worker runs.

    A function inside a function travels by value, so that a worker without Meshwright can still say what is missing.
    """

    def solve_on_worker(fields: tuple[Any, ...], signature: str, profile: bytes | None) -> dict[str, Any]:
        import ray

        node = ray.get_runtime_context().get_node_id()
        try:
            from planner.answers.sweep.solving import solve
            from planner.answers.sweep.task import Task
            from planner.store.signature import software_signature
        except ImportError as error:
            return {"differs": f"Meshwright cannot be imported on Ray node {node[:12]}: {error}"}
        if software_signature() != signature:
            return {"differs": f"Ray node {node[:12]} runs Meshwright {software_signature()}, this is {signature}"}
        task = Task(*fields)
        if profile is not None and task.profile_id is not None:
            from profiles.prediction.profile_folder import keep_file

            keep_file(task.profile_id, profile)
        return {"outcome": solve(task, f"node {node}")}

    return solve_on_worker


def _outcome(ray: Any, task: Task, reference: Any) -> Outcome:
    """What came of a task, its node's death included.  Raises Conflict when the worker runs other software."""
    try:
        answer = ray.get(reference)
    except ray.exceptions.RuntimeEnvSetupError as error:
        raise Conflict(
            f"Ray cannot set the workers up: {_first_line(error)}", where="--ray-code", hint="see the cluster's logs"
        ) from None
    except ray.exceptions.RayError as error:
        return Outcome(task.key, "failed", what=f"Ray gave it up: {_first_line(error)}", hint="see the cluster's logs")
    if "differs" in answer:
        raise Conflict(answer["differs"], where="--executor", hint=REPAIR)
    outcome: Outcome = answer["outcome"]
    return outcome


def _profiles(tasks: Sequence[Task]) -> dict[str, bytes]:
    """The content of every profile that a task leans on: the nodes have profile folders of their own."""
    from profiles.prediction.profile_folder import file_content

    return {key: file_content(key) for key in {task.profile_id for task in tasks if task.profile_id}}


def _modules(code: Path) -> list[str]:
    """The packages in a folder.  Raises DocumentInvalid for a folder without them."""
    folders = [code / name for name in SHIPPED]
    missing = [folder.name for folder in folders if not (folder / "__init__.py").is_file()]
    if missing:
        raise DocumentInvalid(
            f"no {', '.join(missing)} in this folder", where=str(code), hint="give the folder of Meshwright's sources"
        )
    return [str(folder.resolve()) for folder in folders]


def _no_cluster(address: str, error: Exception) -> Exception:
    reason = _first_line(error)
    if "ersion mismatch" in str(error):
        return Conflict(
            f"the cluster runs another Ray or Python: {' '.join(str(error).split())[:300]}",
            where=f"--executor {address}",
            hint="run the sweep with the cluster's versions",
        )
    what = "Ray cannot be started here" if address == LOCAL else f"no Ray cluster answers at {address}"
    return ExecutorUnavailable(
        f"{what}: {reason}",
        where="--executor",
        hint="check the address and that the cluster runs (`ray status`), or --executor processes",
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
