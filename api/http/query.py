"""Query parameters that a route does not know, or that stand there twice, are refused: nobody's filter is ignored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from profiles.spelling import nearest_name
from profiles.validation import Finding, FindingsInvalid

MOST_SHOWN = 60


async def only_known_parameters(request: Request) -> None:
    """A dependency of every route.  Raises FindingsInvalid with each parameter that would be ignored."""
    given = Counter(name for name, _ in request.query_params.multi_items())
    route = request.scope["route"]
    if not given or not isinstance(route, APIRoute):
        return
    known = _parameters(route.dependant)
    found = [
        Finding(name[:MOST_SHOWN], "is no query parameter of this address", _meant(name, known))
        for name in given
        if name not in known
    ]
    found += [
        Finding(name, "is given twice", "give it once") for name, times in given.items() if name in known and times > 1
    ]
    if found:
        raise FindingsInvalid(found, "query")


def _parameters(part: Dependant) -> set[str]:
    """Query parameters of a route and of its dependencies."""
    return {each.alias for each in part.query_params}.union(*map(_parameters, part.dependencies))


def _meant(name: str, known: Collection[str]) -> str:
    if not known:
        return f"leave {name[:MOST_SHOWN]} out: it takes none"
    near = nearest_name(name, known)
    return f"did you mean {near}?" if near else f"it takes {', '.join(sorted(known))}"
