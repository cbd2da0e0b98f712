"""Folding a list of layers into kinds and runs."""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.spec import LayerRun, LayerSpec


def runs_of(layers: Sequence[LayerSpec]) -> tuple[tuple[LayerSpec, ...], tuple[LayerRun, ...]]:
    """Fold a list of layers into its distinct kinds (in order of appearance) and runs of equal ones."""
    kinds: dict[LayerSpec, int] = {}
    runs: list[LayerRun] = []
    for layer in layers:
        kind = kinds.setdefault(layer, len(kinds))
        if runs and runs[-1].kind == kind:
            runs[-1] = LayerRun(kind=kind, count=runs[-1].count + 1)
        else:
            runs.append(LayerRun(kind=kind, count=1))
    return tuple(kinds), tuple(runs)
