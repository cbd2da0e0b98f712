"""The HTTP transport: one connection pool, the key in one header, tries again where that is safe.

Every operation of the service may be repeated: reading changes nothing, ``PUT`` says the same twice, questions are
answered by content, and ``POST /v1/plans`` carries an ``Idempotency-Key``.  So a lost connection, 429, 503, a gateway's
502 and "the first request with this key still runs" (409) are all tried again, as ``Patience`` says.

Redirects are not followed: an address that moved is the user's to know, and the key goes to no other host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from api.client.address import checked_address, checked_key, is_loopback
from api.client.errors import ProblemReported, ServiceAnswerInvalid, ServiceError, ServiceUnreachable
from api.client.patience import Patience, parse_retry_after
from api.wire.problem_details import MEDIA_TYPE, ProblemDetails
from planner.version import __version__

M = TypeVar("M", bound=BaseModel)
CONNECT_S = 10.0
BUSY = frozenset({429, 502, 503})
NOT_MODIFIED = 304
IN_FLIGHT = "key-in-flight"


class Transport:
    """Requests to one service.  Safe to share between threads."""

    def __init__(self, url: str, api_key: str | None, timeout_s: float, patience: Patience) -> None:
        self.address = checked_address(url)
        self.patience = patience
        key = checked_key(api_key)
        headers = {"User-Agent": f"meshwright/{__version__}", "Accept": "application/json"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        self._http = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s)),
            follow_redirects=False,
            trust_env=not is_loopback(self.address),
        )

    def close(self) -> None:
        """Close every connection."""
        self._http.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """The answer, 2xx or 304.  Raises ProblemReported, ServiceUnreachable."""
        attempt = 0
        while True:
            attempt += 1
            failure, retry_after_s = self._once(method, path, body=body, params=params, headers=headers)
            if isinstance(failure, httpx.Response):
                return failure
            wait_s = self.patience.wait_s(attempt, retry_after_s) if is_passing(failure) else None
            if wait_s is None:
                raise failure
            self.patience.sleep(wait_s)

    def ask(self, kind: type[M], method: str, path: str, **request: Any) -> M:
        """The answer as a document.  Raises what ``send`` raises, and ServiceAnswerInvalid."""
        return read_answer(kind, self.send(method, path, **request).content)

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """An answer that is read as it comes; tried once.  Raises what ``send`` raises."""
        try:
            with self._http.stream("GET", self.address + path, headers=dict(headers)) as response:
                if not response.is_success:
                    response.read()
                    raise self._failure(response)
                yield response
        except httpx.RequestError as error:
            raise self._unreachable(error) from None

    def _once(
        self, method: str, path: str, *, body: Any, params: Mapping[str, Any] | None, headers: Mapping[str, str] | None
    ) -> tuple[httpx.Response | ServiceError, float | None]:
        """The answer, or what is wrong and when the service wants to be asked again."""
        try:
            response = self._http.request(method, self.address + path, json=body, params=params, headers=headers)
        except httpx.RequestError as error:
            return self._unreachable(error), None
        # 304 comes only to a request that says which version it has.
        if response.is_success or response.status_code == NOT_MODIFIED:
            return response, None
        return self._failure(response), parse_retry_after(response.headers.get("retry-after"))

    def _failure(self, response: httpx.Response) -> ServiceError:
        """What an answer that is no 2xx says."""
        if response.is_redirect:
            return ServiceAnswerInvalid(
                f"the service says that it is at {response.headers.get('location', 'another place')[:200]}",
                where=self.address,
                hint="give that address; redirects are not followed, so that a key goes nowhere else",
            )
        if response.headers.get("content-type", "").split(";")[0].strip() == MEDIA_TYPE:
            retry_after_s = parse_retry_after(response.headers.get("retry-after"))
            return ProblemReported(read_answer(ProblemDetails, response.content), retry_after_s)
        kind = ServiceUnreachable if response.status_code in BUSY else ServiceAnswerInvalid
        return kind(
            f"something answers {response.status_code}, but not as a Meshwright service does",
            where=self.address,
            hint="check the address and what stands in front of the service",
        )

    def _unreachable(self, error: httpx.RequestError) -> ServiceUnreachable:
        late = isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout)
        what = "the service did not answer in time" if late else f"the service cannot be reached: {_reason(error)}"
        return ServiceUnreachable(what, where=self.address, hint="is it running there? `meshwright serve` starts one")


def read_answer(kind: type[M], content: bytes) -> M:
    """A document (or another type of data) from an answer; what a newer service adds is left out.

    Raises ServiceAnswerInvalid.
    """
    try:
        return TypeAdapter(kind).validate_json(content, extra="ignore")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "/".join(str(part) for part in first["loc"])
        raise ServiceAnswerInvalid(
            f"the answer is no {getattr(kind, '__name__', kind)}: {place or 'the whole'}: {first['msg']}",
            hint="is it the address of a Meshwright service of this release?",
        ) from None


def is_passing(failure: ServiceError) -> bool:
    """Whether the same request may well be answered in a moment."""
    if isinstance(failure, ProblemReported):
        return failure.status in BUSY or failure.problem.slug == IN_FLIGHT
    return isinstance(failure, ServiceUnreachable)


def _reason(error: httpx.RequestError) -> str:
    text = str(error).strip().splitlines()
    return text[0][:200] if text else type(error).__name__
