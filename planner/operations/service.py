"""The service that ``--server`` names, behind an interface that another package implements.

Nothing here knows HTTP: a client is another package's, which an entry point names and an installation may lack.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from planner.errors import Conflict, NotFound

if TYPE_CHECKING:
    from planner.answers.diff import PlanDiff
    from planner.answers.explain.why import Explanation
    from planner.answers.explain.why_not import WhyNot
    from planner.answers.replan.replan import Replan
    from planner.answers.sensitivity import Sensitivity
    from planner.answers.throughput.curve import Throughput
    from planner.plan.plan import Plan
    from planner.search.options import Progress
    from planner.store.records import PlanRecord

SERVER_VARIABLE = "MESHWRIGHT_SERVER"
SERVICE_GROUP = "meshwright.services"
"""Entry points of clients of a service: each names an ``open_service(address)``."""


class PlanService(Protocol):
    """What commands ask of a service.  Errors are those of the planner, with the same exit codes as here."""

    @property
    def address(self) -> str:
        """Where it is."""
        ...

    def plan(self, question: Mapping[str, Any], started: Callable[[str], None], progress: Progress | None) -> Plan:
        """The best plan; a long search becomes a job, whose id ``started`` hears, and is waited for."""
        ...

    def estimate(self, question: Mapping[str, Any]) -> tuple[Plan, tuple[str, ...]]:
        """One strategy's plan, fitting or not, and the fields that were filled in."""
        ...

    def throughput(self, question: Mapping[str, Any]) -> Throughput:
        """How fast on each of several device counts."""
        ...

    def replan(self, reference: str, devices: int | None, lost_nodes: tuple[int, ...], top_k: int) -> Replan:
        """The plan on other devices, and what must move."""
        ...

    def sweep(self, question: Mapping[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Ask every combination: the sweep's id and a line a cell, each time something happened, until it has ended.

        Cells without an answer so far have the outcome ``missing``.
        """
        ...

    def stored_plan(self, reference: str) -> Plan:
        """A plan that the service keeps."""
        ...

    def list_plans(
        self, model: str | None, cluster: str | None, limit: int, after: str | None
    ) -> tuple[PlanRecord, ...]:
        """Plans that the service keeps, newest first."""
        ...

    def label(self, name: str, reference: str) -> tuple[int, str]:
        """Name a plan; the label's version and the plan's id."""
        ...

    def explanation(self, reference: str, brief: bool) -> Explanation:
        """Why this plan."""
        ...

    def why_not(self, reference: str, choice: str) -> WhyNot:
        """Why not another choice."""
        ...

    def diff(self, a: str, b: str) -> PlanDiff:
        """How two plans differ."""
        ...

    def sensitivity(self, reference: str, changes: Sequence[float], replan: bool) -> Sensitivity:
        """How much a plan depends on its inputs."""
        ...

    def write_emission(self, reference: str, backend: str | None, launcher: str, directory: Path) -> Mapping[str, Any]:
        """Launch files of ``NAME`` or ``NAME==RELEASE`` (None = the plan's own) in a folder, from that back-end's plan.

        Their ``manifest``, ``step_time_s``, ``launch_notes``, ``slower_by`` (over the plan that was named) and
        ``difference`` (a ``PlanDiff`` as plain data; absent or None where the files are of the plan that was named).
        """
        ...

    def listing(self, kind: str) -> list[dict[str, Any]]:
        """``models``, ``clusters`` or ``devices``: a line of plain data each."""
        ...

    def document(self, kind: str, name: str) -> dict[str, Any]:
        """One of them, whole."""
        ...


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
