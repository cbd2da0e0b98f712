"""The validators: those of the registry's back-ends, and those of the launchers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.launchers import launcher_validators
from planner.backends.checking.validator import Validator
from planner.backends.registry import backends
from planner.errors import DocumentInvalid


@cache
def validators() -> Mapping[str, Validator]:
    """Every validator by the name that ``--with`` takes: those of back-ends before those of launchers."""
    of_backends = [each for found in backends().values() for each in found.validators()]
    return MappingProxyType({each.name: each for each in (*of_backends, *launcher_validators())})


def validator(name: str) -> Validator:
    """The validator of that name.  Raises DocumentInvalid for a name that is not one."""
    found = validators().get(name)
    if found is None:
        hint = f"one of {', '.join(validators())}, with ==VERSION for another release"
        raise DocumentInvalid(f"no validator is called {name!r}", where="--with", hint=hint)
    return found


def applicable(folder: EmittedFolder) -> tuple[Validator, ...]:
    """Every validator that has something to say about the folder, the back-end's before the launcher's."""
    return tuple(each for each in validators().values() if each.applies(folder))


def parse_requirement(text: str) -> tuple[Validator, str]:
    """``megatron-core==0.19.2`` or ``megatron-core``.  Raises DocumentInvalid."""
    name, separator, version = (part.strip() for part in text.partition("=="))
    found = validator(name)
    if (separator and not version) or any(letter in version for letter in "<>=!~ /\\"):
        hint = f"write {name}=={found.default_version}, or {name}"
        raise DocumentInvalid(f"{text!r} does not name one version", where="--with", hint=hint)
    return found, version or found.default_version
