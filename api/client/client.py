"""``Client``: the Python client of the service, with typed questions, typed answers and safe repetition.

    from api.client import Client

    with Client("http://127.0.0.1:8642") as client:
        plan = client.plan({"model": "llama-3.1-8b", "cluster": "dgx-h100", "devices": 8,
                            "workload": {"global_batch_size": 64, "sequence_length": 4096}})
        print(plan.step_time_s, plan.strategy)

The key is ``api_key`` or the environment's ``MESHWRIGHT_API_KEY``; it is sent to that address only and never shown.
Blocking calls; a client may be shared between threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from api.client.emissions import Emissions
from api.client.jobs import Progress, Started
from api.client.patience import Patience
from api.client.question_body import Asked, body_of, new_key, path_part
from api.client.stored_plans import read_plan, sent_parts
from api.client.sweeps import Sweeps
from api.client.transport import Transport, read_answer
from api.client.uploads import Uploads
from api.wire.jobs import JobRecord
from api.wire.views import Estimate, ProblemCheck, RequestView, Version
from planner.answers.replan.replan import Replan
from planner.answers.throughput.curve import Throughput
from planner.operations.backends import LIST_BACKENDS, BackEndView
from planner.operations.clusters import GET_CLUSTER, LIST_CLUSTERS
from planner.operations.devices import GET_DEVICE, LIST_DEVICES
from planner.operations.models import GET_MODEL, LIST_MODELS
from planner.operations.named import NamedRequest, NamedView, Nothing
from planner.operations.operation import Operation
from planner.operations.replan import REPLAN, ReplanRequest
from planner.plan.plan import Plan
from profiles.document import Document

Q = TypeVar("Q", bound=Document)
A = TypeVar("A")
ACCEPTED = 202


class Client(Emissions):
    """One service.  Use it in a ``with`` block, or ``close`` it."""

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        timeout_s: float = 90.0,
        retries: int = 4,
        patience: Patience | None = None,
    ) -> None:
        super().__init__(Transport(url, api_key, timeout_s, patience or Patience(retries)))
        self.sweeps = Sweeps(self._transport)
        self.uploads = Uploads(self._transport)

    def __repr__(self) -> str:
        return f"Client({self.address!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._transport.close()

    @property
    def address(self) -> str:
        """Where the service is."""
        return self._transport.address

    def call(
        self,
        operation: Operation[Q, A],
        asked: Q,
        *,
        started: Started | None = None,
        progress: Callable[..., None] | None = None,
        wait_s: float | None = None,
    ) -> A:
        """The answer to an operation of ``planner.operations``; what becomes a job or a sweep is waited for.

        Raises ProblemReported, ServiceAnswerInvalid, JobCancelled, JobUnfinished after ``wait_s``.
        """
        if operation.runs == "sweep":
            return cast("A", self.sweeps.swept(sent_parts(operation, asked), progress))
        return super().call(operation, asked, started=started, progress=progress, wait_s=wait_s)

    def plan(
        self,
        question: Asked,
        *,
        idempotency_key: str | None = None,
        as_job: bool = False,
        started: Started | None = None,
        progress: Progress | None = None,
        wait_s: float | None = None,
    ) -> Plan:
        """The best plan; a search that takes longer is waited for, ``wait_s`` at most.

        The call has an ``Idempotency-Key``, so that repeating it after a lost connection never searches twice.  Raises
        ProblemReported (its ``problem.slug`` says what: no-feasible-plan, document-invalid, ...), JobUnfinished.
        """
        headers = {"Idempotency-Key": idempotency_key or new_key(), **({"Prefer": "respond-async"} if as_job else {})}
        answer = self._transport.send("POST", "/v1/plans", body=body_of(question), headers=headers)
        return self._awaited(answer, started, progress, wait_s)

    def put_request(
        self,
        request_id: str,
        question: Asked,
        *,
        started: Started | None = None,
        progress: Progress | None = None,
        wait_s: float | None = None,
    ) -> Plan:
        """The same under an id of your own: the first time it plans, every further time it gives that answer."""
        answer = self._transport.send("PUT", _request(request_id), body=body_of(question))
        return self._awaited(answer, started, progress, wait_s)

    def get_request(self, request_id: str) -> RequestView:
        """What became of it: its plan, its job, or why there is no plan."""
        return self._transport.ask(RequestView, "GET", _request(request_id))

    def submit_plan(self, question: Asked, *, idempotency_key: str | None = None) -> Plan | JobRecord:
        """The plan where it is known already, else the job that searches it, without waiting."""
        headers = {"Idempotency-Key": idempotency_key or new_key(), "Prefer": "respond-async"}
        answer = self._transport.send("POST", "/v1/plans", body=body_of(question), headers=headers)
        if answer.status_code == ACCEPTED:
            return read_answer(JobRecord, answer.content)
        return read_plan(answer.content)

    def throughput(self, question: Asked) -> Throughput:
        """How fast on each of these device counts or pools (``api.wire.questions.ThroughputQuestion``)."""
        return self._transport.ask(Throughput, "POST", "/v1/throughput", body=body_of(question))

    def estimate(self, question: Asked) -> Estimate:
        """The numbers of one strategy, without any search (``api.wire.questions.EstimateQuestion``)."""
        return self._transport.ask(Estimate, "POST", "/v1/estimates", body=body_of(question))

    def replan(self, plan: str, **said: Any) -> Replan:
        """The layout kept and the fastest one on other devices, and what must move.

        ``said``: fields of ``planner.operations.replan.ReplanQuestion``, one of ``devices``, ``lost_nodes``,
        ``lost_devices`` and ``num_lost_nodes`` among them.
        """
        return self.call(REPLAN, ReplanRequest(plan=plan, **said))

    def check_problem(self, question: Asked) -> ProblemCheck:
        """What is wrong with a question, all findings at once; nothing is searched or stored."""
        return self._transport.ask(ProblemCheck, "POST", "/v1/problems:check", body=body_of(question))

    def models(self) -> tuple[Mapping[str, Any], ...]:
        """Models by name, with their sizes."""
        return self.call(LIST_MODELS, Nothing()).items

    def clusters(self) -> tuple[Mapping[str, Any], ...]:
        """Clusters by name, with their devices."""
        return self.call(LIST_CLUSTERS, Nothing()).items

    def devices(self) -> tuple[Mapping[str, Any], ...]:
        """Known accelerators, with their peak rates."""
        return self.call(LIST_DEVICES, Nothing()).items

    def backends(self) -> tuple[BackEndView, ...]:
        """Back-ends that a question may name, with their releases."""
        return self.call(LIST_BACKENDS, Nothing()).items

    def get_model(self, name: str) -> NamedView:
        """One model, whole."""
        return self.call(GET_MODEL, NamedRequest(name=name))

    def get_cluster(self, name: str) -> NamedView:
        """One cluster, whole."""
        return self.call(GET_CLUSTER, NamedRequest(name=name))

    def get_device(self, name: str) -> dict[str, Any]:
        """One accelerator, whole."""
        return self.call(GET_DEVICE, NamedRequest(name=name))

    def version(self) -> Version:
        """Which software answers."""
        return self._transport.ask(Version, "GET", "/version")


def _request(request_id: str) -> str:
    return f"/v1/requests/{path_part(request_id, 'request')}"
