"""What is left of a scope after a condition that was followed both ways."""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.shell.scope import Scope, Value, unknown


def merged(scope: Scope, ends: Sequence[Scope]) -> tuple[set[str], list[str]]:
    """Change ``scope`` to what the ``ends`` agree on; the variables that differ, and the words that were left out."""
    differing: set[str] = set()
    left_out: list[str] = []
    names = {name for end in ends for name in end.values} | set(scope.values)
    for name in sorted(names):
        before = scope.values.get(name)
        found = [end.values.get(name) for end in ends]
        if all(value == found[0] for value in found):
            if found[0] is not None:
                scope.values[name] = found[0]
            else:
                scope.values.pop(name, None)
            continue
        added = _added(before, found)
        if added is None:
            scope.values[name] = unknown(f"${name}")
            differing.add(name)
        else:
            left_out += [word for word in added if word not in left_out]
    for end in ends:
        scope.functions.update(end.functions)
    shifted = {end.arguments for end in ends}
    scope.arguments = shifted.pop() if len(shifted) == 1 else scope.arguments
    return differing, left_out


def _added(before: Value | None, found: Sequence[Value | None]) -> list[str] | None:
    """Words that some ways only add to a list of arguments; None where a way does something else."""
    if before is None or not any(value == before for value in found):
        return None
    added: list[str] = []
    for value in found:
        if value == before:
            continue
        if isinstance(before, tuple) and isinstance(value, tuple) and value[: len(before)] == before:
            added += [word for element in value[len(before) :] for word in element.split()]
        elif isinstance(before, str) and isinstance(value, str) and value.strip().startswith(before.strip()):
            words = value.strip()[len(before.strip()) :].split()
            if not words or not words[0].startswith("--"):
                return None
            added += words
        else:
            return None
    return added
