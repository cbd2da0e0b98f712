"""The page of the software description: facts, their columns, and the rules that read them from a row."""

from __future__ import annotations

from docs.generate import page, table
from planner.evidence.runs.software import FACTS, UNKNOWN_SPREAD, WHOLE_NUMBER
from planner.evidence.runs.software_rules import software_rules

INTRODUCTION = """A measured run is predicted from what its row says of the software, never from where the row was
published. Each fact below is taken from a CSV column of its name where there is one, else from the first rule that
matches the row's words, else it is unknown: the default of its library stands, and the interval is wider.

These columns work in every CSV that `meshwright accuracy` and `meshwright profile calibrate` read. The columns
`framework` and `framework_version` name a back-end of `meshwright backends list`, with its release
(`torchtitan==0.3.0`), and go before all rules."""
PUBLISHED = """Rules marked *published* are facts that a publication states about all its runs outside of its rows.
`meshwright accuracy` judges the sources themselves as left out whole
([accuracy](accuracy.md#on-sources-left-out-whole))."""


def software_page() -> str:
    """Facts and rules."""
    facts = [(f"`{name}`", meaning, _width(name)) for name, meaning in FACTS.items()]
    rules = [
        (
            f"`{rule.fact}`",
            f"`{rule.value}`",
            ", ".join(rule.columns) + (" (published)" if rule.publication else ""),
            f"`{rule.pattern}`",
            rule.why,
        )
        for rule in software_rules()
    ]
    rules.append(("`memory_figure`", "`process`", "peak_mem_gib", "a whole number", WHOLE_NUMBER))
    return page(
        "Software of measured runs",
        INTRODUCTION,
        "## Facts\n\n" + table(("column", "meaning", ">unknown widens by"), facts),
        "## Rules\n\n" + PUBLISHED + "\n\n" + table(("fact", "value", "looked for in", "pattern", "why"), rules),
    )


def _width(fact: str) -> str:
    spread = UNKNOWN_SPREAD.get(fact)
    return "" if spread is None else f"{spread:g} (ln s)"
