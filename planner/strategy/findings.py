"""The field of a strategy that a finding stands beside: the first given one of its rule, and the others.

A place is a field's name, or a flag (``--devices``) for what is no field of a strategy.  ``dp`` stands for its factors
too: either spelling says how many replicas there are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from profiles.validation import Finding, pointer_to

STRATEGY_FLAG = "--strategy"
"""Where a command line gives a strategy, and what stands for ``/strategy`` of a request."""
_DATA_PARALLEL = ("dp", "dp_shard", "dp_replicate")


def strategy_finding(what: str, hint: str, places: Sequence[str], given: Collection[str] | None) -> Finding:
    """A fault of a strategy; ``given`` are the fields that somebody chose, None = all of them."""
    names = [name for place in places for name in (_DATA_PARALLEL if place == "dp" else (place,))]
    own = [name for name in dict.fromkeys(names) if not name.startswith("--")]
    chosen = [name for name in own if given is None or name in given] or own[:1]
    flags = tuple(place for place in places if place.startswith("--"))
    if not chosen:
        return Finding("", what, hint, flags)
    return Finding(pointer_to(chosen[0]), what, hint, (*(pointer_to(name) for name in chosen[1:]), *flags))
