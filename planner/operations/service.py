"""The service that ``--server`` names, behind an interface that another package implements.

Nothing here knows HTTP: a client is another package's, which an entry point names and an installation may lack.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from planner.errors import Conflict, MeshwrightError, NotFound

if TYPE_CHECKING:
    from planner.operations.operation import Operation
    from planner.plan.plan import Plan
    from planner.question.problem import Problem
    from planner.search.options import Progress, SearchOptions
    from planner.store.repository import Store
    from profiles.document import Document

Q = TypeVar("Q", bound="Document")
A = TypeVar("A")
SERVER_VARIABLE = "MESHWRIGHT_SERVER"
SERVICE_LIMITS = "the service has limits of its own: drop it"
"""What to do with a time limit that a service does not take."""
SERVICE_GROUP = "meshwright.services"
"""Entry points of clients of a service: each names an ``open_service(address)``."""


class Service(Protocol):
    """Who does operations: this machine, or a service elsewhere.  Errors, and so exit codes, are the same."""

    @property
    def address(self) -> str:
        """Where it is; empty for this machine."""
        ...

    def call(
        self,
        operation: Operation[Q, A],
        asked: Q,
        *,
        search: SearchOptions | None = None,
        progress: Callable[..., None] | None = None,
        keep: bool = True,
    ) -> A:
        """The answer.  ``search``: bounds of searches on this machine; a service has its own.  ``progress``: hears.

        ``keep``: whether new plans are stored; a service stores them always.
        """
        ...

    def question(self, whole: Callable[[], Problem], parts: Callable[[], dict[str, Any]]) -> Problem | dict[str, Any]:
        """A planning question as it is asked here: the whole on this machine, parts for a service."""
        ...


class LocalService:
    """This machine: its plan files and its database, which is opened once it is needed."""

    address = ""

    def __init__(self, database: str | None, opened: ExitStack) -> None:
        self._database = database
        self._opened = opened
        self._plans: dict[str, Plan] = {}
        self._store: Store | None = None

    def call(
        self,
        operation: Operation[Q, A],
        asked: Q,
        *,
        search: SearchOptions | None = None,
        progress: Callable[..., None] | None = None,
        keep: bool = True,
    ) -> A:
        """See ``Service``."""
        from planner.operations.operation import Session

        session = Session(self._plan, self._stored, search=search, progress=progress)
        if keep:
            session = replace(session, keep=lambda plan: self._stored().save_plan(plan), known=self._known)
        try:
            return operation.work(session, asked)
        except MeshwrightError as error:
            if error.where in operation.path_parts:
                # A person reads the name of the command, not that of a part of an address.
                error.where = operation.command
            raise

    def question(self, whole: Callable[[], Problem], parts: Callable[[], dict[str, Any]]) -> Problem | dict[str, Any]:
        """See ``Service``."""
        return whole()

    def _known(self, problem: Problem) -> Plan | None:
        stored = self._stored().find_plan(problem.problem_id)
        return stored if stored is not None and stored.is_final else None

    def _stored(self) -> Store:
        from planner.store import open_store

        if self._store is None:
            self._store = self._opened.enter_context(open_store(self._database))
        return self._store

    def _plan(self, reference: str) -> Plan:
        """Read once: a pipe has no second time."""
        from planner.operations.plan_reference import file_or_stored

        if reference not in self._plans:
            self._plans[reference] = file_or_stored(reference, lambda each: self._stored().get_plan(each))
        return self._plans[reference]


class PlanService(Service, Protocol):
    """What commands ask of a service.  Errors are those of the planner, with the same exit codes as here."""

    def plan(self, question: Mapping[str, Any], started: Callable[[str], None], progress: Progress | None) -> Plan:
        """The best plan; a long search becomes a job, whose id ``started`` hears, and is waited for."""
        ...

    def sweep(self, question: Mapping[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Ask every combination: the sweep's id and a line a cell, each time something happened, until it has ended.

        Cells without an answer so far have the outcome ``missing``.
        """
        ...

    def write_emission(self, reference: str, backend: str | None, launcher: str, directory: Path) -> Mapping[str, Any]:
        """Launch files of ``NAME`` or ``NAME==RELEASE`` (None = the plan's own) in a folder, from that back-end's plan.

        Their ``manifest``, ``step_time_s``, ``launch_notes``, ``slower_by`` (over the plan that was named) and
        ``difference`` (a ``PlanDiff`` as plain data; absent or None where the files are of the plan that was named).
        """
        ...


@contextmanager
def opened_service(
    server: str | None, database: str | None = None, *, only_here: Mapping[str, bool] | None = None, instead: str = ""
) -> Iterator[Service]:
    """Who does what a command asks: the service that ``--server`` or the environment names, else this machine.

    ``only_here``: flags that no service knows, and whether they are given; ``instead``: what to do then.  Raises
    Conflict for such a flag, and what ``asked_service`` raises.
    """
    with asked_service(server, database) as service:
        if service is not None:
            refuse(service, only_here or {}, instead)
            yield service
            return
        with ExitStack() as opened:
            yield LocalService(database, opened)


@contextmanager
def asked_service(server: str | None, database: str | None = None) -> Iterator[PlanService | None]:
    """The service that a command asks, or None for this machine.

    ``--server`` names it, else the environment does, unless ``--database`` says where to look.  Raises Conflict for
    both flags, DocumentInvalid for what is no address.
    """
    if server and database is not None:
        raise Conflict(
            "--server and --database name two places to look for plans", where="--database", hint="drop one of them"
        )
    address = server if server is not None or database is not None else os.environ.get(SERVER_VARIABLE)
    if not address:
        yield None
        return
    with _client()(address) as service:
        yield service


def _client() -> Callable[[str], AbstractContextManager[PlanService]]:
    """What opens a service at an address.  Raises NotFound where no package brings a client."""
    for point in entry_points(group=SERVICE_GROUP):
        try:
            opens: Callable[[str], AbstractContextManager[PlanService]] = point.load()
        except ModuleNotFoundError as error:
            if error.name != "httpx" and (error.name is None or not f"{point.module}.".startswith(f"{error.name}.")):
                raise
            continue
        return opens
    raise NotFound(
        "this installation has no client of the service", where="--server", hint="install the whole of meshwright"
    )


def refuse(service: PlanService, given: Mapping[str, bool], instead: str) -> None:
    """Refuse flags that the service has no answer to.  Raises Conflict."""
    wrong = [name for name, is_given in given.items() if is_given]
    if wrong:
        raise Conflict(
            f"a service does not know {', '.join(wrong)}",
            where=f"{wrong[0]} with the service {service.address}",
            hint=f"{instead}, or drop --server (and {SERVER_VARIABLE})",
        )
