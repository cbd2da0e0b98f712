"""The commands of some pages are run: the program says what they show, up to numbers that a new model may move."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from docs.console import Shown, run_page, shortened, shown_in

DOCS = Path(__file__).parents[2] / "docs"
RUN = {
    "tutorials/first-plan.md": 6,
    "tutorials/measured-plan.md": 8,
    "how-to/import-benchmark-logs.md": 5,
    "how-to/cluster-from-topology.md": 2,
    "how-to/calibrate.md": 1,
}
"""Pages whose commands are run, and the fewest that they have."""
NEEDS_THE_TABLES = "tutorials/measured-plan.md"
PAGE = "Text.\n\n```console\n$ meshwright plan \\\n    --model m\none\n...\nlast\n$ meshwright check out/x\n```\n"


def strategies(lines: tuple[str, ...] | list[str]) -> list[str]:
    """The strategy lines: what a reader takes home."""
    return [line for line in lines if re.match(r"(strategy|instead) ", line)]


def headings(lines: tuple[str, ...] | list[str]) -> list[str]:
    """Lines of words alone, as tables and sections are headed."""
    return [line for line in lines if re.fullmatch(r"[A-Z][a-z'-]+( [a-z'-]+)*", line)]


@pytest.mark.budget(25)
@pytest.mark.slow
@pytest.mark.usefixtures("no_validators")
@pytest.mark.parametrize("page", RUN)
def test_a_page_shows_what_the_program_says(page: str, tmp_path: Path) -> None:
    if page == NEEDS_THE_TABLES and importlib.util.find_spec("aiconfigurator_core") is None:
        pytest.skip("the package aiconfigurator-core is not installed")
    refresh = f"run: python -m docs.console docs/{page}"
    ran = list(run_page((DOCS / page).read_text(encoding="utf-8"), tmp_path))
    assert len(ran) >= RUN[page]
    for shown, code, printed in ran:
        assert code == 0, f"{shown.command}\n" + "\n".join(printed)
        now = shortened(printed, shown.output)
        assert strategies(now) == strategies(shown.output), refresh
        assert headings(now) == headings(shown.output), refresh


def test_a_page_is_read_as_its_commands() -> None:
    first, second = shown_in(PAGE)
    assert first == Shown("meshwright plan \\\n    --model m", ("one", "...", "last"))
    assert first.words == ["plan", "--model", "m"]
    assert second == Shown("meshwright check out/x", ())


def test_output_is_cut_as_the_page_cuts_it() -> None:
    printed = ["1", "2", "3", "4", "5"]
    assert shortened(printed, ("one", "...", "last")) == ("1", "...", "5")
    assert shortened(printed, ("...",)) == ("...",)
    assert shortened(printed, ("anything",)) == tuple(printed)
