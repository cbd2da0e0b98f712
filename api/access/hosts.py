"""The check of Host and Origin: requests for another host, and changes made by other sites' pages, are refused.

Without authentication whoever reaches the port is admin.  A browser reaches it for any page: a name that its owner
points at 127.0.0.1 once the page is there (DNS rebinding) makes that page and the service one origin, and only the
Host header still says whose name it was.  So a request must name a host that the service is known by, and one that
changes something and comes from a page (browsers then send Origin) must come from a page of such a host.

Probes are asked by address (a kubelet and Prometheus name the pod's), so ``/livez``, ``/readyz`` and ``/metrics``
answer under every name: they change nothing, and say no more than how busy the service is.
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from api.access.host_names import ANY, ENVIRONMENT_VARIABLE, LOOPBACK_HOSTS, host_of, host_of_origin
from api.errors import HostRefused, OriginRefused, RequestRefused
from api.http.problem_responses import problem_response, request_id_of
from api.wire.problem_details import problem_details

CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
PROBES = frozenset({"/livez", "/readyz", "/metrics"})
_HINT = f"whoever runs the service names its hosts: --allowed-host HOST, or ${ENVIRONMENT_VARIABLE}"


class HostGate:
    """ASGI middleware: refuses what names another host; ``allowed`` besides the names of this machine."""

    def __init__(self, app: ASGIApp, allowed: Collection[str] = ()) -> None:
        self.app = app
        self._any = ANY in allowed
        self._allowed = LOOPBACK_HOSTS | frozenset(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        try:
            self.check(request)
        except RequestRefused as error:
            _put_on_record(request, error)
            response = problem_response(problem_details(error, request_id_of(request)))
            await response(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def check(self, request: Request) -> None:
        """Raises HostRefused, OriginRefused."""
        named = request.headers.getlist("host")
        host = host_of(named[0]) if len(named) == 1 else None
        if request.scope["path"] not in PROBES and (host is None or not (self._any or host in self._allowed)):
            shown = named[0][:80] if named else ""
            raise HostRefused(f"this service is not known as {shown!r}", where="Host", hint=_HINT)
        if request.method not in CHANGING:
            return
        for origin in request.headers.getlist("origin"):
            page = host_of_origin(origin)
            # Where every host is allowed, a page may still only ask the host that it came from.
            if page is None or (page != host and page not in self._allowed):
                raise OriginRefused(f"a page of {origin[:80]!r} may change nothing here", where="Origin", hint=_HINT)


def _put_on_record(request: Request, error: RequestRefused) -> None:
    """A page that was refused a change is on record as every 403 is."""
    service = getattr(getattr(request.scope.get("app"), "state", None), "service", None)
    if service is not None and isinstance(error, OriginRefused):
        service.audit.refuse(request, error.http_status, None)
