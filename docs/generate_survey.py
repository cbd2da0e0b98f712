"""The measured runs that are points of the declared spaces: the page of ``benchmarks/tables/space-survey.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docs.generate import page, table

RESULT = Path(__file__).parents[1] / "benchmarks" / "tables" / "space-survey.json"


def survey_page() -> str:
    """What was surveyed, the counts by back-end, and every reason why a run stands outside."""
    found = json.loads(RESULT.read_text(encoding="utf-8"))
    backends: dict[str, dict[str, Any]] = found["backends"]
    counts = [
        (f"`{name}`" if each["strategies"] else name, *map(str, _counts(each))) for name, each in backends.items()
    ]
    covered = [
        (f"`{name}`", str(runs), switches)
        for name, each in backends.items()
        for switches, runs in each["covered"].items()
    ]
    outside = [
        (f"`{name}`", str(one["runs"]), one["reason"], f"`{one['first']}`")
        for name, each in backends.items()
        for one in each["outside"]
    ]
    return page(
        "Measured runs and the declared spaces",
        f"Of {found['rows']:,} rows of published runs {found['runs']:,} name a strategy. Each was looked for in the"
        " space of the back-end that ran it, on its devices, with its batch: whether the search enumerates that very"
        " strategy (*point*), or one that differs only in switches which the search sets by itself because its cost"
        " model never finds them slower (*covered*). How layers are dealt is not compared."
        " `python -m benchmarks.space_survey` repeats it where the tables lie.",
        table(("back-end", ">runs", ">strategies", ">points", ">covered", ">outside"), counts),
        "## Covered by a point with other switches",
        table(("back-end", ">runs", "switches that differ"), covered),
        "## Outside, and why",
        "The reason is the first that applies, as the back-end's rules or columns tell it; the last column names the"
        " first such run. Reasons about the model are about the model as it was rebuilt from the columns of its row.",
        table(("back-end", ">runs", "reason", "first run"), outside),
    )


def _counts(each: dict[str, Any]) -> tuple[int, int, int, int, int]:
    covered = sum(each["covered"].values())
    outside = sum(one["runs"] for one in each["outside"])
    return each["runs"], each["strategies"], each["points"], covered, outside
