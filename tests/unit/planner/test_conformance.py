"""The conformance suite can fail: a room with one promise broken is found by the check of that promise."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from planner.backends import registry
from planner.backends.backend import BackEnd, Files, Release, Software, Space
from planner.backends.emission.emission import BackEndFiles
from planner.backends.emission.layout import Layout
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule
from planner.errors import BackEndRefused
from planner.evidence.conformance import checks as conformance_checks
from planner.evidence.conformance.__main__ import main
from planner.evidence.conformance.checks import CHECKS, Check, Tried, faults_of
from planner.plan.plan import Plan
from planner.predict.physics.physics import Physics
from planner.strategy.strategy import Strategy
from tests.page_back_end import install_page

Room = Callable[[BackEnd], BackEnd]
SOURCE = "test_conformance.py"
FEW = 3
"""Questions in which a broken promise is found; the room that keeps its promises is asked all."""


@pytest.fixture
def right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BackEnd]:
    """The back-end of the page, a room that keeps every promise."""
    install_page(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    found: BackEnd = importlib.import_module("meshwright_nanogpt").BACKEND
    registry.backends.cache_clear()
    yield found
    monkeypatch.undo()
    registry.backends.cache_clear()


def install(room: BackEnd, monkeypatch: pytest.MonkeyPatch) -> Software:
    """The room stands in the registry for the one of the same name."""
    known = {**registry.backends(), room.name: room}
    monkeypatch.setattr(registry, "OURS", tuple(known.values()))
    monkeypatch.setattr(registry, "ENTRY_POINTS", "meshwright.none")
    registry.backends.cache_clear()
    return Software(room, room.releases[0])


def faults(
    room: BackEnd, monkeypatch: pytest.MonkeyPatch, checks: Sequence[Check] = CHECKS, most: int | None = None
) -> dict[str, tuple[str, ...]]:
    """What each check finds in a room, asked at most so many questions."""
    wanted = install(room, monkeypatch)
    every = Tried.of(wanted)
    tried = Tried(wanted, dict(islice(every.questions.items(), most)))
    found = {check.__name__: faults_of(check, wanted, tried) for check in checks}
    return {name: each for name, each in found.items() if each}


def with_space(room: BackEnd, space: Space) -> BackEnd:
    release = room.releases[0]
    return replace(room, releases=(replace(release, space=space),))


def with_rule(room: BackEnd, *rules: SpaceRule, model: bool = False) -> BackEnd:
    space = room.releases[0].space
    table = space.rules
    of_model = (*table.model_rules, *rules) if model else table.model_rules
    of_strategy = table.strategy_rules if model else (*table.strategy_rules, *rules)
    return with_space(room, replace(space, rules=RuleTable(table.backend, of_model, of_strategy)))


def loses_a_field(room: BackEnd) -> BackEnd:
    """Its reader takes every run for one without accumulation, as if the writer had lost the number of steps."""
    assert room.files is not None
    files = room.files()

    def read(texts: Mapping[str, str]) -> tuple[Strategy, Layout]:
        strategy, layout = files.read(texts)
        return replace(strategy, num_microbatches=1), layout

    return replace(room, files=lambda: replace(files, read=read))


def refuses_its_own(room: BackEnd) -> BackEnd:
    """Its writer has a rule that its space has not."""
    assert room.files is not None
    files = room.files()

    def write(plan: Plan, release: str) -> BackEndFiles:
        if plan.chosen().num_microbatches > 1:
            raise BackEndRefused("no accumulation here", where="--backend", hint="none")
        return files.write(plan, release)

    return replace(room, files=lambda: Files(write, files.read))


def crashes(room: BackEnd) -> BackEnd:
    def read(texts: Mapping[str, str]) -> tuple[Strategy, Layout]:
        raise KeyError("n_layers")

    assert room.files is not None
    files = room.files()
    return replace(room, files=lambda: Files(files.write, read))


def rule_without_fields(room: BackEnd) -> BackEnd:
    return with_rule(room, SpaceRule("X1", SOURCE, lambda given: "tp" if given.strategy.tp > 1 else None))


def rule_without_source(room: BackEnd) -> BackEnd:
    return with_rule(room, SpaceRule("X1", "", lambda given: None, ("tp",)))


def rule_whose_fields_lie(room: BackEnd) -> BackEnd:
    return with_rule(room, SpaceRule("X1", SOURCE, lambda given: "pp" if given.strategy.pp > 1 else None, ("tp",)))


def rule_of_no_field(room: BackEnd) -> BackEnd:
    return with_rule(room, SpaceRule("X1", SOURCE, lambda given: None, ("tensor_parallel",)))


def model_rule_about_strategies(room: BackEnd) -> BackEnd:
    return with_rule(room, SpaceRule("X1", SOURCE, lambda g: "pp" if g.strategy.pp > 1 else None), model=True)


def spelled_changes_the_time(room: BackEnd) -> BackEnd:
    space = room.releases[0].space

    def spelled(strategy: Strategy, given: RuleInput) -> Strategy:
        size = strategy.micro_batch_size * strategy.num_microbatches
        return replace(space.spelled(strategy, given), micro_batch_size=1, num_microbatches=size)

    return with_space(room, replace(space, spelled=spelled))


def spelled_never_ends(room: BackEnd) -> BackEnd:
    def spelled(strategy: Strategy, given: RuleInput) -> Strategy:
        return replace(strategy, overlap_param_gather=not strategy.overlap_param_gather)

    return with_space(room, replace(room.releases[0].space, spelled=spelled))


def refuses_every_model(room: BackEnd) -> BackEnd:
    return with_rule(room, SpaceRule("X1", SOURCE, lambda given: "no model is built"), model=True)


def without_a_schedule(room: BackEnd) -> BackEnd:
    space = room.releases[0].space
    columns = replace(space.columns, schedules=(), pipeline_parallel=True)
    return with_space(room, replace(space, columns=columns))


def without_a_summary(room: BackEnd) -> BackEnd:
    return replace(room, summary="", releases=(replace(room.releases[0], physics=Physics(name="")),))


@pytest.mark.parametrize(
    ("wrong", "check", "words"),
    [
        (loses_a_field, "files", "the files say num_microbatches=1"),
        (refuses_its_own, "files", "a plan of the space cannot be written: no accumulation here"),
        (crashes, "files", "it stops with KeyError: 'n_layers'"),
        (rule_without_fields, "rules", "rule X1 names no field"),
        (rule_without_source, "rules", "rule X1 cites nothing"),
        (rule_of_no_field, "rules", "rule X1 is about tensor_parallel, which no strategy has"),
        (rule_whose_fields_lie, "refusals", "nanogpt.X1 (pp) is not about tp alone"),
        (model_rule_about_strategies, "refusals", "nanogpt.X1 is a model rule and looks at the strategy"),
        (spelled_changes_the_time, "unspelled", "takes "),
        (spelled_never_ends, "spelling", "changes again"),
        (refuses_every_model, "answers", "refuses every sample model"),
        (without_a_schedule, "columns", "no schedule for them"),
        (without_a_summary, "names", "a summary of one line"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_broken_promise_is_found(
    right: BackEnd, monkeypatch: pytest.MonkeyPatch, wrong: Room, check: str, words: str
) -> None:
    found = faults(wrong(right), monkeypatch, [each for each in CHECKS if each.__name__ == check], FEW)
    assert words in "\n".join(found[check])


def test_a_room_that_keeps_them_has_no_fault(right: BackEnd, monkeypatch: pytest.MonkeyPatch) -> None:
    assert faults(right, monkeypatch) == {}


def test_two_releases_of_one_name_are_found(right: BackEnd, monkeypatch: pytest.MonkeyPatch) -> None:
    release: Release = right.releases[0]
    found = faults(replace(right, releases=(release, release)), monkeypatch, most=1)
    assert found == {"names": (f"releases are named twice: {release.version}, {release.version}",)}


def test_the_exit_code_tells(
    right: BackEnd, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(rule_without_fields(right), monkeypatch)
    monkeypatch.setattr(conformance_checks, "CHECKS", (conformance_checks.rules,))
    assert main(["nanogpt"]) == 1
    assert "FAULT  nanogpt  rules" in capsys.readouterr().out
    assert main(["nanogtp"]) != 0
    assert "did you mean 'nanogpt'?" in capsys.readouterr().err
