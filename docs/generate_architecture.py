"""The rooms of the house and the imports between them: ``docs/explanation/architecture.md``.

The floors are those of the layer contracts in ``pyproject.toml``, the arrows are the imports that the code has.  An
import that goes up, a room that no contract names, or more rooms than ``MOST_ROOMS`` is an error here, too.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from docs.generate import page, table

ROOT = Path(__file__).parents[1]
MOST_ROOMS = 16
PACKAGES = (
    ("api", "HTTP, durable jobs, workers; no planning logic"),
    ("meshwright", "the Python door: documents in, documents out"),
    ("planner", "meaning: models, questions, predictions, back-ends, search, plans, answers"),
    ("profiles", "facts: devices, clusters, measurements"),
    ("solver", "mathematics: arrays in, arrays out"),
)
Arrows = set[tuple[str, str]]


def architecture_page() -> str:
    """The picture of ``planner``, a row a room, and who imports whom.  Raises ValueError for an arrow up."""
    floors = contract_floors("floors")
    arrows = room_arrows(floors)
    rooms = [room for floor in floors for room in floor]
    folders = [room for room in rooms if (ROOT / "planner" / room).is_dir()]
    if len(folders) > MOST_ROOMS:
        raise ValueError(f"planner has {len(folders)} rooms, more than {MOST_ROOMS}")
    return page(
        "Architecture",
        "Imports go down only, and nothing imports in a circle. `lint-imports` checks it (`make lint`, contracts in"
        " `pyproject.toml`); this page draws what the contracts and the code say.",
        "## Packages",
        table(("package", "holds"), [(f"`{name}/`", holds) for name, holds in PACKAGES]),
        "`api` and `meshwright` import `planner`; `planner` imports `profiles` and `solver`, which do not know each"
        " other. The pages in `web/` know the OpenAPI document of `api` and nothing else.",
        "## Rooms of `planner/`",
        "An arrow is an import; arrows that follow from others are left out.",
        picture(floors, reduced(arrows)),
        table(("room", "holds", "imports"), _rows(rooms, arrows)),
        *_inner_floors(),
    )


def contract_floors(contract: str) -> list[tuple[str, ...]]:
    """The layers of a contract, from above; neighbours of one layer together."""
    tool: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    found = next(each for each in tool["importlinter"]["contracts"] if each["id"] == contract)
    return [tuple(re.split(r"\s*[|:]\s*", layer)) for layer in found["layers"]]


def room_arrows(floors: Sequence[tuple[str, ...]]) -> Arrows:
    """Pairs of rooms of which the first imports the second.  Raises ValueError for one that does not go down."""
    level = {room: index for index, floor in enumerate(floors) for room in floor}
    arrows: Arrows = set()
    for path in sorted((ROOT / "planner").rglob("*.py")):
        here = path.relative_to(ROOT / "planner").with_suffix("").parts[0]
        for name in imported(path):
            there = name.split(".")[1]
            if here not in level or there == here:
                continue
            if level[there] <= level[here]:
                raise ValueError(f"{path.relative_to(ROOT)} imports {name}, which does not go down")
            arrows.add((here, there))
    return arrows


def imported(path: Path) -> Iterable[str]:
    """Modules of ``planner`` that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("planner."):
            yield str(node.module)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.startswith("planner."))


def reduced(arrows: Arrows) -> Arrows:
    """The arrows that do not follow from two others or more."""
    below: dict[str, set[str]] = {}
    for here, there in arrows:
        below.setdefault(here, set()).add(there)

    def reaches(here: str, there: str) -> bool:
        return any(next_ == there or reaches(next_, there) for next_ in below.get(here, ()))

    return {
        (here, there)
        for here, there in arrows
        if not any(middle != there and reaches(middle, there) for middle in below[here])
    }


def picture(floors: Sequence[tuple[str, ...]], arrows: Arrows) -> str:
    """A Mermaid flowchart, the upper floors above."""
    lines = ["```mermaid", "flowchart TD"]
    for index, floor in enumerate(floors):
        lines += [f"  subgraph floor{index}[ ]", *(f"    {room}" for room in floor), "  end"]
    lines += [f"  {here} --> {there}" for here, there in sorted(arrows)]
    return "\n".join([*lines, "```"])


def _rows(rooms: Sequence[str], arrows: Arrows) -> list[tuple[str, str, str]]:
    rows = []
    for room in rooms:
        folder = ROOT / "planner" / room
        below = ", ".join(there for here, there in sorted(arrows) if here == room)
        rows.append((f"`{room}/`" if folder.is_dir() else f"`{room}.py`", _head(folder), below))
    return rows


def _head(folder: Path) -> str:
    """The first sentence of a room's own words."""
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def _inner_floors() -> list[str]:
    """Rooms whose parts have floors of their own, from above."""
    tool: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    rows = [
        (f"`{container.replace('.', '/')}/`", " / ".join(each["layers"]))
        for each in tool["importlinter"]["contracts"]
        if each["type"] == "layers"
        for container in each.get("containers", ())
        if container != "planner"
    ]
    return ["## Floors inside", table(("folder", "from above"), rows)] if rows else []
