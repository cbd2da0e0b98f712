"""Query parameters that a route does not know, or that stand there twice, are refused: nobody's filter is ignored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, get_args, get_origin

from fastapi import Request
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from profiles.spelling import nearest_name
from profiles.validation import Finding, FindingsInvalid

MOST_SHOWN = 60
MANY = frozenset({list, tuple, set, frozenset})


async def only_known_parameters(request: Request) -> None:
    """A dependency of every route.  Raises FindingsInvalid with each parameter that would be ignored."""
    given = Counter(name for name, _ in request.query_params.multi_items())
    route = request.scope["route"]
    if not given or not isinstance(route, APIRoute):
        return
    known = {each.alias: each for each in _parameters(route.dependant)}
    found = []
    for name, times in given.items():
        if name not in known:
            what = "is no query parameter of this address"
            found.append(Finding(name[:MOST_SHOWN], what, _meant(name, known)))
        elif times > 1 and not _takes_many(known[name].field_info.annotation):
            found.append(Finding(name, "is given twice", "give it once"))
    if found:
        raise FindingsInvalid(found, "query")


def _parameters(part: Dependant) -> Iterator[ModelField]:
    """Query parameters of a route and of its dependencies."""
    yield from part.query_params
    for inner in part.dependencies:
        yield from _parameters(inner)


def _takes_many(annotation: Any) -> bool:
    """Whether a parameter is a list, which is written as often as it has parts."""
    return get_origin(annotation) in MANY or any(map(_takes_many, get_args(annotation)))


def _meant(name: str, known: Collection[str]) -> str:
    if not known:
        return f"leave {name[:MOST_SHOWN]} out: it takes none"
    near = nearest_name(name, known)
    return f"did you mean {near}?" if near else f"it takes {', '.join(sorted(known))}"
