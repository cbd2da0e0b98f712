"""What an operation is: one thing that every door asks for in the same words, declared once.

An ``Operation`` says what it takes and gives (documents), where a service has it, who may ask, and what is done.  From
it come the route with its OpenAPI entry (``api.routes.operations``), the call of the client, what ``--server`` asks
(``planner.operations.service``), and the page docs/reference/operations.md.  ``planner.operations.registry`` lists all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar

from profiles.document import Document

if TYPE_CHECKING:
    from planner.plan.plan import Plan
    from planner.question.problem import Problem
    from planner.search.options import SearchOptions
    from planner.store.repository import Store

Q = TypeVar("Q", bound=Document)
A = TypeVar("A")
Method = Literal["GET", "POST", "PUT", "DELETE"]
Scope = Literal["read", "plan", "admin"]
Served = Literal["direct", "view", "own"]
Runs = Literal["now", "job", "sweep"]
PLAN = "names a plan"
"""Beside the type of a part that names a plan (``planner.operations.plan_reference.PlanName``)."""
_PART = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Wire:
    """Limits of a part of a question in requests to a service; a person's machine sets none."""

    max_length: int | None = None
    pattern: str | None = None

    def given(self) -> dict[str, Any]:
        """Those that are set, by name."""
        return {name: getattr(self, name) for name in self.__slots__ if getattr(self, name) is not None}


def nothing_stored(*_: object) -> NoReturn:
    """The store of those who work on plans that they are given."""
    raise RuntimeError("no database is opened here")


@dataclass(frozen=True, slots=True)
class Session:
    """Where the work is done: what is kept there, how long it may search, and who hears how far it is."""

    plan: Callable[[str], Plan]
    """The plan of an id, a prefix or a label; on a person's machine also of a file.  Raises NotFound, Conflict."""
    store: Callable[[], Store] = nothing_stored
    named: Callable[[Literal["model", "cluster"]], Iterable[tuple[str, Any]]] = lambda kind: ()
    """Models or clusters that are stored under a name here, besides the built-in ones."""
    search: SearchOptions | None = None
    """Bounds of searches; None = until proved, without runners-up."""
    progress: Callable[..., None] | None = None
    keep: Callable[[Plan, float | None], object] = lambda plan, wall_s: None
    """What is done with a new plan, and how long its search took, where that is known."""
    known: Callable[..., Plan | None] = lambda problem, top_k=0: None
    """A stored plan that no search could better, of a problem; ``top_k`` > 0: with runners-up."""
    keeping: Callable[[], object] = lambda: None
    """Gets ready for ``keep``, which takes a while; raises DocumentInvalid where it surely cannot."""

    def problem(self, question: Problem | dict[str, Any]) -> Problem:
        """A question that is complete: those who are asked elsewhere get parts, and complete them there."""
        if isinstance(question, dict):
            raise TypeError("the parts of a question are for a service elsewhere")
        return question


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[Q, A]):
    """One operation.  ``work`` does it; its errors are those of ``planner.errors``."""

    name: str
    """In the OpenAPI document."""
    summary: str
    """One line."""
    description: str
    request: type[Q]
    """Every part of the question: those of the path, and the others as query (GET) or as body."""
    answer: Any
    """What ``work`` gives: a document's type, a union of such, ``dict[str, Any]`` or ``str`` (a page)."""
    work: Callable[[Session, Q], A]
    path: str
    method: Method = "GET"
    tag: str = "plans"
    scope: Scope = "read"
    """What a key must be allowed to."""
    errors: tuple[int, ...] = (404, 409)
    """HTTP statuses of what can be wrong, besides the usual ones."""
    served: Served = "direct"
    """``direct``: in a thread of the service.  ``view``: about ``plan``, in a process of the pool, and remembered.
    ``own``: the service has a route of its own for it (jobs, archives, pictures)."""
    runs: Runs = "now"
    """How a service runs it.  ``now``: it is answered at once.  ``job``: a search that takes longer becomes a job of
    the queue (202), which the caller waits for.  ``sweep``: each of its cells is a job; the caller watches them all."""
    read_first: bool = False
    """Whether GET of the same path answers where nothing has to be searched, for a key that may only read."""
    keyed: bool = False
    """Whether a request has an ``Idempotency-Key``, so that sending it again never does the work twice."""
    body: type[Document] | None = None
    """The part of ``request`` that is sent as body; a route of its own may have a form of its own for that."""
    spread: tuple[str, ...] = ("question",)
    """Parts of the request that a service gets by their own parts, beside the others."""
    question_parts: tuple[str, ...] = ()
    """Parts of a planning question that it takes; empty = all."""
    example: Mapping[str, Any] = field(default_factory=dict)
    """A body."""
    changes: bool = False
    """Whether stored data changes, which the audit trail says."""
    searches: Callable[[Q], bool] = lambda asked: False
    """Whether plans may have to be searched: such views wait with the searches."""
    most: Mapping[str, int] = field(default_factory=dict)
    """The most values of a part that a service takes at once."""
    reads_files: Callable[[Q], bool] | None = None
    """Whether files of this machine are meant, about which the work is done here; without it they are refused."""
    command: str = ""
    """The command of the command line, where there is one."""

    @property
    def plans(self) -> tuple[str, ...]:
        """Parts of the request that name a plan."""
        return tuple(name for name, part in self.request.model_fields.items() if PLAN in part.metadata)

    @property
    def task(self) -> str:
        """What a computing process is asked, in logs and metrics: ``explanation``, ``estimate``, ``replan``."""
        return self.name.removeprefix("get_").removeprefix("create_").removesuffix("_plan")

    @property
    def path_parts(self) -> tuple[str, ...]:
        """Parts of the request that stand in the path."""
        return tuple(_PART.findall(self.path))
