"""The tables that ship with the product: written by ``build``, read at the first question about a kernel.

``measured/<system>/<engine or library>.npz`` holds ``index`` (JSON: features, shapes, sizes of each table) and an array
of bytes for each table: ``log(measured / roofline)`` in steps of 2 %, as differences along the last size, low bytes
first, then high bytes.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from profiles.serving_kernels.grid import Table
from profiles.serving_kernels.roofline import Rates

STEP = 0.02
FOLDER = Path(__file__).parent / "measured"


def encoded(table: Table) -> Any:
    """The bytes of a table's values."""
    steps = np.rint(table.values / STEP).astype(np.int16)
    return np.diff(steps, axis=-1, prepend=np.int16(0)).reshape(-1).astype("<i2").view(np.uint8).reshape(-1, 2).T.copy()


def described(table: Table) -> dict[str, Any]:
    """The rest of a table, for the index."""
    return {
        "features": list(table.features),
        "shapes": [[_plain(number) for number in shape] for shape in table.shapes.tolist()],
        "sizes": [[_plain(number) for number in axis] for axis in table.axes],
    }


def write(path: Path, tables: dict[str, Table]) -> None:
    """One file of tables."""
    index = json.dumps({key: described(table) for key, table in tables.items()}, separators=(",", ":"))
    arrays = {key.replace("/", "."): encoded(table) for key, table in tables.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, index=np.frombuffer(index.encode(), np.uint8), **arrays)


@cache
def table(system: str, place: str, key: str) -> Table | None:
    """One table of an engine or library on a system, if it was measured."""
    file = _opened(system, place)
    if file is None or key not in file[1]:
        return None
    about = file[1][key]
    axes = tuple(np.array(sizes, dtype=float) for sizes in about["sizes"])
    shapes = np.array(about["shapes"], dtype=float)
    steps = file[0][key.replace("/", ".")].T.copy().view("<i2").reshape(len(shapes), *(len(axis) for axis in axes))
    return Table(tuple(about["features"]), shapes, axes, np.cumsum(steps, axis=-1) * STEP)


@cache
def provenance() -> dict[str, Any]:
    """Package, versions and licence of the tables, and the rates of each system."""
    content: dict[str, Any] = json.loads((FOLDER / "provenance.json").read_text(encoding="utf-8"))
    return content


def rates(system: str) -> Rates:
    """The rates that a system's efficiencies are relative to: the catalogue may have changed since."""
    return Rates(**provenance()["rates"][system])


@cache
def _opened(system: str, place: str) -> tuple[Any, dict[str, Any]] | None:
    path = FOLDER / system / f"{place}.npz"
    if not path.is_file():
        return None
    file = np.load(path)
    return file, json.loads(file["index"].tobytes())


def _plain(number: float) -> float | int:
    return int(number) if number == int(number) else round(number, 6)
