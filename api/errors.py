"""What can go wrong at the door, hung on the tree of ``profiles.errors``.

MeshwrightError
├── DocumentInvalid, NotFound, Conflict, ProfileMissing     (profiles.errors)
├── NoFeasiblePlan, BudgetSpent, BackEndRefused, ...         (planner.errors)
├── StoreError                                              (planner.store.errors)
└── RequestRefused                  HTTP 400  a request that HTTP itself or this service cannot accept
├── NotAuthenticated            HTTP 401  no key or token, or one that does not count
├── ScopeMissing                HTTP 403  the key or token may not do this
├── OriginRefused               HTTP 403  a page of another site may change nothing
├── BodyTooSlow                 HTTP 408  the body did not arrive in time
├── KeyInFlight                 HTTP 409  the first request with this Idempotency-Key is still running
├── PreconditionFailed          HTTP 412  If-Match names a version that is not the current one
├── BodyTooLarge                HTTP 413  more bytes than the limit
├── MediaTypeRefused            HTTP 415  not JSON, or compressed
├── HostRefused                 HTTP 421  the request names a host that this service is not known by
├── KeyReused                   HTTP 422  an Idempotency-Key that belongs to another request
├── PreconditionMissing         HTTP 428  a change without If-Match
├── TooManyRequests             HTTP 429  faster than the key's rate
└── QueueFull                   HTTP 429  more jobs wait than the limit allows

ServiceBusy                         HTTP 503  the service cannot take this request now
JobFailure                          HTTP 500  a job ended without an answer
├── SolverCrashed                             the solving process died
├── SolverOutOfMemory                         the solving process reached its memory limit
├── SolverInconsistent                        the checker refused the answer
└── WorkerLost                                every attempt's worker disappeared
"""

from __future__ import annotations

from profiles.errors import MeshwrightError


class RequestRefused(MeshwrightError):
    """The request cannot be accepted as it was sent."""

    slug = "request-refused"
    exit_code = 2
    http_status = 400

    def __init__(
        self, what: str, *, where: str | None = None, hint: str | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.retry_after_s = retry_after_s


class NotAuthenticated(RequestRefused):
    """No key or token, or one that does not count: unknown, revoked, expired, forged."""

    slug = "not-authenticated"
    http_status = 401

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None, given: bool = False) -> None:
        super().__init__(what, where=where, hint=hint)
        # RFC 6750, section 3: a request without credentials is told how to come, one with bad ones what is wrong.
        self.challenge = 'Bearer error="invalid_token"' if given else "Bearer"


class ScopeMissing(RequestRefused):
    """The key or token is good, but may not do this."""

    slug = "scope-missing"
    http_status = 403

    def __init__(self, what: str, *, scope: str, hint: str | None = None) -> None:
        super().__init__(what, hint=hint)
        self.challenge = f'Bearer error="insufficient_scope", scope="{scope}"'


class OriginRefused(RequestRefused):
    """A page of another site may change nothing."""

    slug = "origin-refused"
    http_status = 403


class KeyInFlight(RequestRefused):
    """The first request with this Idempotency-Key is still running."""

    slug = "key-in-flight"
    http_status = 409


class BodyTooSlow(RequestRefused):
    """The body did not arrive in the time that the service waits for it."""

    slug = "body-too-slow"
    http_status = 408


class PreconditionFailed(RequestRefused):
    """If-Match names a version that is not the current one."""

    slug = "precondition-failed"
    http_status = 412


class BodyTooLarge(RequestRefused):
    """The body has more bytes than the limit."""

    slug = "body-too-large"
    http_status = 413


class MediaTypeRefused(RequestRefused):
    """The body is not plain JSON."""

    slug = "media-type-refused"
    http_status = 415


class HostRefused(RequestRefused):
    """The request names a host that this service is not known by."""

    slug = "host-refused"
    http_status = 421


class KeyReused(RequestRefused):
    """The Idempotency-Key belongs to another request."""

    slug = "key-reused"
    http_status = 422


class PreconditionMissing(RequestRefused):
    """A change of a named document without saying which version it replaces."""

    slug = "precondition-missing"
    http_status = 428


class TooManyRequests(RequestRefused):
    """Requests come faster than the key's rate."""

    slug = "too-many-requests"
    http_status = 429


class QueueFull(RequestRefused):
    """More jobs wait than the limit allows; nothing was stored."""

    slug = "queue-full"
    http_status = 429


class ServiceBusy(RequestRefused):
    """The service cannot take this request now."""

    slug = "service-busy"
    http_status = 503


class JobFailure(MeshwrightError):
    """A job ended without an answer."""

    slug = "job-failed"
    http_status = 500


class SolverCrashed(JobFailure):
    """The process that solved died."""

    slug = "solver-crashed"


class SolverOutOfMemory(JobFailure):
    """The process that solved reached its memory limit."""

    slug = "solver-out-of-memory"


class SolverInconsistent(JobFailure):
    """The checker recomputed the answer and refused it; it was not stored."""

    slug = "solver-inconsistent"


class WorkerLost(JobFailure):
    """Every attempt's worker disappeared."""

    slug = "worker-lost"


def refused_by_checker(error: Exception) -> SolverInconsistent:
    """What a solver's answer that the checker refuses becomes."""
    return SolverInconsistent(
        f"the checker refused the answer: {str(error)[:500]}", hint="this is a bug: please report it"
    )
