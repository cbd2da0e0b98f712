"""Public launch scripts, read and compared: the page of ``benchmarks/tables/launch-scripts.json``."""

from __future__ import annotations

import json
from pathlib import Path

from docs.generate import page, table

RESULT = Path(__file__).parents[1] / "benchmarks" / "tables" / "launch-scripts.json"


def scripts_page() -> str:
    """How many are read with every field right and give an estimate, by back-end; then each of them."""
    found = json.loads(RESULT.read_text(encoding="utf-8"))
    rows = found["scripts"]
    backends = dict.fromkeys(row["backend"] for row in rows)
    counts = []
    for name in backends:
        own = [row for row in rows if row["backend"] == name]
        right = sum(row["verdict"] == "right" for row in own)
        printed = sum(row["answer"].startswith("an estimate") for row in own)
        counts.append((f"`{name}`", str(len(own)), str(right), str(printed)))
    each = [
        (
            f"`{row['backend']}`",
            f"[{row['repo']}/{row['path']}](https://github.com/{row['repo']}/blob/{row['commit']}/{row['path']})",
            row["verdict"],
            row["answer"],
        )
        for row in rows
    ]
    return page(
        "Launch scripts read",
        "Public launches, each at one commit, read by `meshwright estimate --from` and compared field by field with"
        " what an expert reads in them. *right*: every field that the expert names has his value. `refused` says what"
        " is asked for; nothing is guessed. `python -m benchmarks.launch_scripts TRUTH MIRRORS --record` repeats it"
        f" where the texts lie; this is the run of {found['date']}.",
        table(("back-end", ">launches", ">every field right", ">an estimate"), counts),
        table(("back-end", "launch", "fields", "estimate"), each),
    )
