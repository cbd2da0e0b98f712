"""The reference is written from the code; the pages name flags, errors and links that there are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

from docs import generate_backends
from docs.console import shown_in
from docs.generate import FOLDER, error_classes, outputs
from docs.generate_profiles import accuracy_page, recognised_by
from docs.observation_words import COLUMN_WORDS, KIND_WORDS
from planner.backends.backend import BackEnd
from planner.backends.registry import OURS, backend
from planner.backends.rules.columns import Columns
from planner.cli.main import build_app
from planner.question.problem import UNRESTRICTED
from planner.strategy.strategy import Strategy
from profiles.importing.format import Format
from profiles.importing.imported import Imported
from profiles.observation_store.schema import KINDS, columns_of

REPOSITORY = Path(__file__).parents[2]
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
SHELL = re.compile(r"^```(?:sh|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    children = getattr(command, "commands", {})
    if not children:
        yield path, command
    for name, child in children.items():
        yield from leaves(child, (*path, name))


COMMANDS = dict(leaves(typer.main.get_command(build_app())))


def command_lines(page: str) -> Iterator[list[str]]:
    """Words of every ``meshwright`` command line of a page, in console and in shell blocks."""
    yield from (shown.words for shown in shown_in(page))
    for block in SHELL.findall(page):
        for line in block.replace("\\\n", " ").split("\n"):
            words = line.split("#")[0].split()
            if words[:1] == ["meshwright"]:
                yield words[1:]


def unknown_words(words: list[str]) -> list[str]:
    """Commands and flags of a command line that the program does not have."""
    path = next((tuple(words[:length]) for length in (2, 1) if tuple(words[:length]) in COMMANDS), None)
    if path is None:
        return words[:2]
    known = {name for parameter in COMMANDS[path].params for name in parameter.opts} | {"--help", "-h"}
    return [word for word in words if word.startswith("-") and word.split("=")[0] not in known]


def anchors(page: str) -> set[str]:
    """Anchors that GitHub gives the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


# A committed file that went stale is seen by the run that made it so, not by another.
@pytest.mark.budget(60)
@pytest.mark.parametrize("path", outputs(), ids=lambda path: path.name)
def test_a_page_is_what_the_code_and_the_results_say(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == outputs()[path](), "run: python -m docs.generate"


@pytest.mark.parametrize("path", COMMANDS, ids="-".join)
def test_every_flag_is_in_the_reference(path: tuple[str, ...]) -> None:
    text = (FOLDER / "commands.md").read_text(encoding="utf-8")
    section = text.split(f"## meshwright {' '.join(path)}\n")[1].split("\n## ")[0]
    flags = {name for parameter in COMMANDS[path].params for name in parameter.opts if name.startswith("-")}
    assert {flag for flag in flags if f"`{flag}`" not in section} == set()


def test_every_error_is_in_the_reference() -> None:
    text = (FOLDER / "errors.md").read_text(encoding="utf-8")
    slugs = {cls.slug for cls in error_classes()}
    assert {"no-feasible-plan", "store-full", "document-invalid"} <= slugs
    assert {slug for slug in slugs if f"`{slug}`" not in text} == set()


def test_every_field_of_a_strategy_is_explained() -> None:
    text = (FOLDER / "strategy.md").read_text(encoding="utf-8")
    assert {name for name in Strategy().to_dict() if f"| `{name}`" not in text} == set()


def test_the_declared_space_says_every_micro_batch_group() -> None:
    text = (FOLDER / "strategy.md").read_text(encoding="utf-8")
    sentence = re.search(r"micro-batch groups: ([\d or]+) times pp\. ", text)
    assert sentence is not None
    said = tuple(int(number) for number in sentence[1].split(" or "))
    assert said == backend(UNRESTRICTED).releases[0].space.columns.group_factors


def test_every_column_of_a_space_is_explained() -> None:
    assert set(generate_backends.COLUMN_WORDS) == {field.name for field in fields(Columns)}
    assert set(generate_backends.SHOWN) < set(generate_backends.COLUMN_WORDS)


@pytest.mark.parametrize("known", OURS, ids=lambda each: each.name)
def test_every_back_end_is_in_the_reference(known: BackEnd) -> None:
    text = (FOLDER / "backends.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {known.name}\n")[1].split("\n## ")[0]
    assert all(f"{release.version}**: physics `{release.physics.name}`" in section for release in known.releases)
    rules = (FOLDER / "rules.md").read_text(encoding="utf-8")
    ids = {rule.id for each in known.releases for rule in each.space.rules.strategy_rules}
    assert {name for name in ids if f"| `{known.name}.{name}` |" not in rules} == set()


def test_every_column_of_an_observation_is_explained() -> None:
    assert set(KIND_WORDS) == set(KINDS)
    assert set(COLUMN_WORDS) == {column.name for kind in KINDS for column in columns_of(kind)}


@pytest.mark.parametrize(
    ("docstring", "sentence"),
    [
        ("A log.\n\nRecognised by ``a. b`` or\n``c``.  Times in us.", "`a. b` or `c`"),
        ("Two forms, recognised by their rows:\n``x``", "their rows: `x`"),
        ("A table.\n\nSource: somewhere.", "the first line is a header"),
    ],
)
def test_the_sentence_that_recognises_a_format_is_found(docstring: str, sentence: str) -> None:
    def matches(head: object) -> bool:
        """Whether the first line is a header."""
        return bool(head)

    known = Format("x", "X", matches, lambda files, options: Imported("x"))
    assert recognised_by(known, ModuleType("x", docstring)) == sentence


def test_the_newest_errors_of_predictions_are_shown(tmp_path: Path) -> None:
    def line(name: str, measured: float, **details: Any) -> dict[str, Any]:
        return {"name": name, "task": name, "target": 0.05, "measured": measured, "details": details}

    def run(day: str, error: float) -> dict[str, Any]:
        tables = [
            {"system": "b", "table": "t 1", "part": part, "n": 9, "median": error, "p90": 0.2, "coverage": 0.8}
            for part in ("report", "calibration")
        ]
        name = "prediction-matmul-sites"
        lines = [line(name, error, tables=tables, n=9), line(f"{name}.p90", 0.2), line(f"{name}.coverage", 0.78)]
        return {"measured_at": f"2026-01-{day}T00:00:00+00:00", "measurements": [line("lookup", 0.04), *lines]}

    assert "No run is kept" in accuracy_page(tmp_path)
    later = {"measured_at": "2026-01-09T00:00:00+00:00", "measurements": [line("other", 1.0)]}
    (tmp_path / "runs.json").write_text(json.dumps({"runs": [run("03", 0.031), run("02", 0.5), later]}))
    text = accuracy_page(tmp_path)
    assert "| matmul, unseen sites | 1 | 9 | 3.1% (<= 5.0%) | 20.0% (<= 5.0%) | 78.0% | 3.1% | 80% to 80% |" in text
    assert "| b | t 1 | 9 | 3.1% | 20.0% | 80.0% | calibration |" in text
    assert "in 40 ms" in text
    assert "2026-01-03" in text


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_pages_use_commands_and_flags_that_exist(path: Path) -> None:
    lines = list(command_lines(path.read_text(encoding="utf-8")))
    assert {" ".join(words): unknown for words in lines if (unknown := unknown_words(words))} == {}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(CODE.sub("", path.read_text(encoding="utf-8"))):
        if target.startswith(("http:", "https:")):
            continue
        there = path.parent / target if target else path
        if not there.exists() or (anchor and anchor not in anchors(there.read_text(encoding="utf-8"))):
            broken.append(f"{target}#{anchor}")
    assert broken == []


@pytest.mark.parametrize(
    ("words", "unknown"),
    [
        (["plan", "--modle", "x"], ["--modle"]),
        (["plans", "list", "--limit", "3"], []),
        (["plann", "--model", "x"], ["plann", "--model"]),
    ],
)
def test_the_flag_check_catches(words: list[str], unknown: list[str]) -> None:
    assert unknown_words(words) == unknown
