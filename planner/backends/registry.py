"""The back-ends: the one list; everything that names back-ends is made from it.

Third parties add theirs by an entry point of the group ``meshwright.backends`` that names a ``BackEnd``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from planner.backends import (
    accelerate,
    deepspeed,
    hugging_face,
    llm_foundry,
    maxtext,
    megascale,
    megatron,
    megatron_bridge,
    megatron_deepspeed,
    mindspeed,
    nanotron,
    native,
    nemo,
    nemo_automodel,
    pytorch_fsdp,
    torchtitan,
    unrestricted,
)
from planner.backends.backend import BackEnd, Files, Software
from planner.backends.entry_points import entry_points
from planner.errors import DocumentInvalid, NotFound
from planner.predict.physics.physics import Physics
from planner.strategy.spelling import did_you_mean

ENTRY_POINTS = "meshwright.backends"
OURS: tuple[BackEnd, ...] = (
    megatron.BACKEND,
    megatron_bridge.BACKEND,
    deepspeed.BACKEND,
    torchtitan.BACKEND,
    native.BACKEND,
    accelerate.BACKEND,
    maxtext.BACKEND,
    mindspeed.BACKEND,
    nemo.BACKEND,
    megascale.BACKEND,
    megatron_deepspeed.BACKEND,
    nanotron.BACKEND,
    pytorch_fsdp.BACKEND,
    llm_foundry.BACKEND,
    nemo_automodel.BACKEND,
    hugging_face.BACKEND,
    unrestricted.BACKEND,
)


@cache
def backends() -> Mapping[str, BackEnd]:
    """Every back-end by its name, ours first.  Raises DocumentInvalid for a third party's that is none, or a twin."""
    found = {each.name: each for each in OURS}
    for point in entry_points(ENTRY_POINTS):
        loaded = point.load()
        if not isinstance(loaded, BackEnd) or loaded.name in found:
            wrong = "a name that is taken" if isinstance(loaded, BackEnd) else "something that is no BackEnd"
            raise DocumentInvalid(
                f"the entry point {point.name} = {point.value} gives {wrong}",
                where=f"entry points {ENTRY_POINTS}",
                hint="uninstall the package that declares it, or repair it",
            )
        found[loaded.name] = loaded
    return MappingProxyType(found)


def with_files() -> tuple[BackEnd, ...]:
    """The back-ends that launch files can be written for."""
    return tuple(each for each in backends().values() if each.files is not None)


def physics_by_name() -> Mapping[str, Physics]:
    """How each release's software behaves, by the name of its physics; one name may serve several back-ends."""
    return {each.physics.name: each.physics for found in backends().values() for each in found.releases}


def names_with_files() -> tuple[str, ...]:
    """Their names."""
    return tuple(each.name for each in with_files())


def backend(name: str, where: str = "--backend") -> BackEnd:
    """The back-end of that name.  Raises NotFound."""
    known = backends()
    if name not in known:
        raise NotFound(f"no back-end is called {name!r}", where=where, hint=did_you_mean(name, tuple(known)))
    return known[name]


def software(text: str, where: str = "--backend") -> Software:
    """``torchtitan==0.2.2`` -> back-end and release; without ``==`` the default release.

    Raises NotFound for an unknown back-end or release.
    """
    name, separator, version = text.partition("==")
    found = backend(name, where)
    release = found.release(version) if separator else found.releases[0]
    if release is None:
        known = ", ".join(each.version for each in found.releases)
        raise NotFound(f"{found.title} has no release {version!r} here", where=where, hint=f"known: {known}")
    return Software(found, release)


def files_of(wanted: Software, where: str = "--backend") -> Files:
    """How files of a back-end are written and read.  Raises NotFound where none can be written."""
    if wanted.backend.files is None or wanted.release.predicts_only:
        raise NotFound(
            f"no files can be written for {wanted.title}: it predicts and is searched only",
            where=where,
            hint=f"files are written for {', '.join(names_with_files())}",
        )
    return wanted.backend.files()
