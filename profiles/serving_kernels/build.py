"""Writes the shipped tables from the installed package: ``python -m profiles.serving_kernels.build``.

A size, then a shape, is left out where the others give its values within 3 % in the mean, so that what ships is small.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np

from profiles.arrays import Array
from profiles.importers.aiconfigurator.installed import DISTRIBUTION, package_version, table_files
from profiles.serving_kernels import rates_of_system, shipped, systems, wheel
from profiles.serving_kernels.grid import NEIGHBOURS, Table
from profiles.serving_kernels.lookup import ENGINES, LIBRARIES

MOST_LOST = 0.03
"""Mean difference of what is left out, relative."""
_APART = ("window", "skew")
"""Features over which shapes are never blended."""


def thinned(table: Table, most: float = MOST_LOST) -> Table:
    """The table without sizes and shapes that the others give."""
    for axis in range(len(table.axes)):
        kept = _needed_sizes(np.moveaxis(table.values, axis + 1, 0), np.log(table.axes[axis]), most)
        axes = (*table.axes[:axis], table.axes[axis][kept], *table.axes[axis + 1 :])
        table = Table(table.features, table.shapes, axes, np.take(table.values, kept, axis=axis + 1))
    kept = _needed_shapes(table, most)
    return Table(table.features, table.shapes[kept], table.axes, table.values[kept])


def _needed_sizes(values: Array, at: Array, most: float) -> list[int]:
    """Places along the first axis; again and again the one goes that its neighbours give best."""
    lines = values.reshape(len(at), -1)
    kept = list(range(len(at)))
    losses = {place: _loss(lines, at, *kept[index - 1 : index + 2 : 2]) for index, place in enumerate(kept[1:-1], 1)}
    while losses:
        place = min(losses, key=lambda each: losses[each])
        if losses[place] > most:
            break
        index = kept.index(place)
        del kept[index], losses[place]
        for near in (index - 1, index):
            if 0 < near < len(kept) - 1:
                losses[kept[near]] = _loss(lines, at, kept[near - 1], kept[near + 1])
    return kept


def _loss(lines: Array, at: Array, low: int, high: int) -> float:
    """Mean difference of all values between two places from the line between them; the worst place counts."""
    between = slice(low + 1, high)
    share = ((at[between] - at[low]) / (at[high] - at[low]))[:, None]
    return float(np.abs(lines[low] * (1 - share) + lines[high] * share - lines[between]).mean(axis=1).max())


def _needed_shapes(table: Table, most: float) -> list[int]:
    """Shapes; one goes if its nearest ones, which then must stay, give it."""
    logs = table.values.reshape(len(table.shapes), -1)
    apart = np.stack([table.apart(shape) for shape in table.shapes])
    for feature in set(_APART) & set(table.features):
        column = table.column(feature)
        apart[column[:, None] != column[None, :]] = np.inf
    np.fill_diagonal(apart, np.inf)
    candidates = []
    for shape, distances in enumerate(apart):
        near = np.argsort(distances, kind="stable")[:NEIGHBOURS]
        if np.isfinite(distances[near]).all() and len(near) == NEIGHBOURS:
            share = 1.0 / distances[near]
            loss = np.abs(share / share.sum() @ logs[near] - logs[shape]).mean()
            if loss <= most:
                candidates.append((float(loss), shape, set(near.tolist())))
    stay: set[int] = set()
    gone: set[int] = set()
    for _, shape, others in sorted(candidates, key=lambda each: each[:2]):
        if shape not in stay and not others & gone:
            gone.add(shape)
            stay |= others
    return [shape for shape in range(len(logs)) if shape not in gone]


def build(folder: Path) -> None:
    """All files, and ``provenance.json``: where they come from, and the rates that efficiencies are relative to."""
    shutil.rmtree(folder, ignore_errors=True)
    for system in systems():
        for place in (*ENGINES, *LIBRARIES):
            rows = wheel.kernel_rows(system, place, rates_of_system(system))
            if rows:
                path = folder / system / f"{place}.npz"
                shipped.write(path, {key: thinned(each.table()) for key, each in rows.items()})
                print(path.name, system, path.stat().st_size, flush=True)
    (folder / "provenance.json").write_text(json.dumps(_provenance(), indent=1) + "\n", encoding="utf-8")


def _provenance() -> dict[str, object]:
    tables = {
        system: sorted(
            "/".join(path.parts[-4:])
            for path in table_files(system)
            if path.name.removesuffix("_perf.parquet") in wheel.FILES
        )
        for system in systems()
    }
    return {
        "package": DISTRIBUTION,
        "version": package_version(),
        "licence": "Apache-2.0",
        "copyright": "Copyright (c) 2025-2026 NVIDIA CORPORATION & AFFILIATES. All rights reserved.",
        "source": "https://github.com/ai-dynamo/aiconfigurator",
        "changes": "rows joined by shape, the newest release first; divided by a roofline; thinned; steps of 2 %",
        "rates": {system: asdict(rates_of_system(system)) for system in systems()},
        "tables": tables,
    }


if __name__ == "__main__":
    build(Path(__file__).parent / "measured")
