"""Folding a list of layers into kinds and runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from planner.model.spec import LayerRun, LayerSpec


def runs_of(layers: Sequence[LayerSpec]) -> tuple[tuple[LayerSpec, ...], tuple[LayerRun, ...]]:
    """Fold a list of layers into its distinct kinds (in order of appearance) and runs of equal ones."""
    kinds: dict[LayerSpec, int] = {}
    numbers = [kinds.setdefault(layer, len(kinds)) for layer in layers]
    return tuple(kinds), tuple(LayerRun(kind=kind, count=len(list(equal))) for kind, equal in groupby(numbers))
