"""The service that ``--server`` names, behind an interface that another package implements.

Nothing here knows HTTP: a client is another package's, which an entry point names and an installation may lack.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from planner.backends.entry_points import entry_points
from planner.errors import Conflict, DocumentInvalid, MeshwrightError, NotFound

if TYPE_CHECKING:
    from planner.operations.emit import EmissionView
    from planner.operations.keeper import Keeper
    from planner.operations.operation import Operation
    from planner.plan.plan import Plan
    from planner.question.problem import Problem
    from planner.search.options import SearchOptions
    from planner.store.repository import Store
    from profiles.document import Document

Q = TypeVar("Q", bound="Document")
A = TypeVar("A")
W = TypeVar("W")
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
        started: Callable[[str], None] | None = None,
        keep: bool = True,
    ) -> A:
        """The answer.  ``search``: bounds of searches on this machine; a service has its own.  ``progress``: hears.

        ``started`` hears the id of the job that a long search became on a service, and that is waited for.  ``keep``:
        whether new plans are stored; a service stores them always.
        """
        ...

    def plan_id(self, reference: str) -> str:
        """The whole id of the plan that is meant.  Raises NotFound, Conflict, DocumentInvalid."""
        ...

    def kept(self, plan_id: str) -> str:
        """Where a plan that an operation made is kept, and what shows it; empty where it is not kept."""
        ...

    def wrote(self, view: EmissionView) -> None:
        """Hears that launch files are written."""
        ...

    def end(self) -> None:
        """Say that something could not be stored: that is no reason to lose the answer, which is there by now."""
        ...

    def question(self, whole: Callable[[], W], parts: Callable[[], dict[str, Any]]) -> W | dict[str, Any]:
        """A question as it is asked here: the whole on this machine, parts for a service."""
        ...


class LocalService:
    """This machine: its plan files and its database, which is opened once it is needed.

    ``stored``: finds plans that are no files, if not the database does.
    """

    address = ""

    def __init__(self, database: str | None, opened: ExitStack, stored: Callable[[str], Plan] | None = None) -> None:
        self._database = database
        self._opened = opened
        self._find = stored or (lambda reference: self._stored().get_plan(reference))
        self._plans: dict[str, Plan] = {}
        self._kept: dict[str, bool] = {}
        """Plans that are stored, and whether this command stored them."""
        self._store: Store | None = None
        self._keeper: Keeper | None = None
        self._failure: Exception | None = None

    def call(
        self,
        operation: Operation[Q, A],
        asked: Q,
        *,
        search: SearchOptions | None = None,
        progress: Callable[..., None] | None = None,
        started: Callable[[str], None] | None = None,
        keep: bool = True,
    ) -> A:
        """See ``Service``."""
        from planner.operations.operation import Session

        session = Session(self._plan, self._stored, search=search, progress=progress, keep=self._remember)
        if keep:
            keeping = partial(self._keeping, 1 if search is None else search.processes)
            session = replace(session, keep=self._keep, known=self._known, keeping=keeping)
        try:
            return operation.work(session, asked)
        except MeshwrightError as error:
            if error.where in operation.path_parts:
                # A person reads the name of the command, not that of a part of an address.
                error.where = operation.command
            raise

    def question(self, whole: Callable[[], W], parts: Callable[[], dict[str, Any]]) -> W | dict[str, Any]:
        """See ``Service``."""
        return whole()

    def plan_id(self, reference: str) -> str:
        """See ``Service``; of a stored plan no more than its key is read."""
        from planner.operations.plan_reference import is_plan_file

        return self._plan(reference).plan_id if is_plan_file(reference) else self._stored().resolve(reference)

    def kept(self, plan_id: str) -> str:
        """See ``Service``."""
        if not self._kept.get(plan_id):
            return ""
        from planner.store.address import database_url, sqlite_path

        where = sqlite_path(database_url(self._database)) or self._stored().address
        return f"stored in {where}; next: meshwright explain {plan_id[:12]}"

    def wrote(self, view: EmissionView) -> None:
        """See ``Service``: those of plans that this command stored or found are recorded beside them."""
        if view.plan_id in self._kept:
            names = (view.backend, view.manifest["launcher"])
            self._attempt(lambda: self._stored().save_emission(view.plan_id, *names, view.manifest))

    def end(self) -> None:
        """See ``Service``."""
        if self._failure is not None:
            raise self._failure

    def _attempt(self, step: Callable[[], object]) -> bool:
        try:
            step()
        except Exception as error:
            self._failure = self._failure or error
            return False
        return True

    def _remember(self, plan: Plan, wall_s: float | None = None) -> None:
        self._plans[plan.plan_id] = plan

    def _keep(self, plan: Plan, wall_s: float | None) -> None:
        self._remember(plan)
        keeper, self._keeper = self._keeper, None
        if (keeper and keeper.save(plan, wall_s)) or self._attempt(lambda: self._stored().save_plan(plan, wall_s)):
            self._kept[plan.plan_id] = True

    def start_keeper(self, processes: int) -> None:
        """Start the process that will store a plan, if one may.  Raises DocumentInvalid for what is no database."""
        from planner.operations.keeper import Keeper
        from planner.search.beside import can_fork
        from planner.store.address import database_url, sqlite_path

        address = database_url(self._database)
        in_memory = address.startswith("sqlite") and sqlite_path(address) is None
        if self._keeper is None and self._store is None and not in_memory and can_fork(processes):
            self._keeper = Keeper(self._database)
            self._opened.callback(self._keeper.stop)

    def _keeping(self, processes: int) -> None:
        self.start_keeper(processes)
        if self._keeper is not None:
            self._keeper.open()

    def _known(self, problem: Problem, top_k: int = 0) -> Plan | None:
        from planner.plan.plan import Plan
        from planner.store.errors import StoreError

        try:
            text = self._stored().find_answer(problem.problem_id)
        except StoreError:
            # The search answers all the same; that its plan cannot be kept is told after the answer.
            return None
        if text is None or not text.answers(top_k):
            return None
        stored = Plan.model_validate_json(text.body)
        self._remember(stored)
        self._kept.setdefault(stored.plan_id, False)
        return stored

    def _stored(self) -> Store:
        from planner.store import open_store

        if self._store is None:
            self._store = self._opened.enter_context(open_store(self._database))
        return self._store

    def _plan(self, reference: str) -> Plan:
        """Read once: a pipe has no second time."""
        from planner.operations.plan_reference import file_or_stored

        if reference not in self._plans:
            self._plans[reference] = file_or_stored(reference, self._find)
        return self._plans[reference]


@contextmanager
def opened_service(
    server: str | None,
    database: str | None = None,
    *,
    only_here: Mapping[str, bool] | None = None,
    instead: str = "",
    keeps: bool = False,
) -> Iterator[Service]:
    """Who does what a command asks: the service that ``--server`` or the environment names, else this machine.

    ``only_here``: flags that no service knows, and whether they are given; ``instead``: what to do then.
    ``keeps``: a new plan will be stored, so what takes long of opening the database may begin.  Raises Conflict for
    such a flag, or for ``--server`` with ``--database``, DocumentInvalid for what is no address; at the end of the
    block, why a new plan could not be stored.
    """
    if server and database is not None:
        raise Conflict(
            "--server and --database name two places to look for plans", where="--database", hint="drop one of them"
        )
    address = server if server is not None or database is not None else os.environ.get(SERVER_VARIABLE)
    with ExitStack() as opened:
        service: Service = (here := LocalService(database, opened))
        if keeps and not address:
            with suppress(DocumentInvalid):  # told once the question is known to be one
                here.start_keeper(2)
        if address:
            service = opened.enter_context(_client()(address))
            _refuse(service, only_here or {}, instead)
        yield service
        service.end()


def _client() -> Callable[[str], AbstractContextManager[Service]]:
    """What opens a service at an address.  Raises NotFound where no package brings a client."""
    for point in entry_points(SERVICE_GROUP):
        try:
            opens: Callable[[str], AbstractContextManager[Service]] = point.load()
        except ModuleNotFoundError as error:
            if error.name != "httpx" and (error.name is None or not f"{point.module}.".startswith(f"{error.name}.")):
                raise
            continue
        return opens
    raise NotFound(
        "this installation has no client of the service", where="--server", hint="install the whole of meshwright"
    )


def _refuse(service: Service, given: Mapping[str, bool], instead: str) -> None:
    """Refuse flags that the service has no answer to.  Raises Conflict."""
    wrong = [name for name, is_given in given.items() if is_given]
    if wrong:
        raise Conflict(
            f"a service does not know {', '.join(wrong)}",
            where=f"{wrong[0]} with the service {service.address}",
            hint=f"{instead}, or drop --server (and {SERVER_VARIABLE})",
        )
