"""Scripts of validators answer through ``planner.backends.checking.answers``, in the process that ``Worker`` starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.backends.checking.environment import ENVIRONMENT_VARIABLE
from planner.backends.checking.validator import Validator
from planner.backends.checking.worker import Worker
from planner.errors import ValidatorUnavailable

SCRIPT = """
import argparse, os, sys
from planner.backends.checking.answers import FeignedModules, Refused, in_child, serve, serve_answers, verdict

def stages(request, facts):
    yield "look"
    print("noise on stdout", file=sys.__stdout__)
    facts["first_in_path"] = sys.path[0]
    if request.get("import"):
        import not_there.at_all
        facts["class"] = not_there.at_all.Thing.__name__
    yield "decide"
    if request.get("refuse"):
        raise Refused(request["refuse"])
    if request.get("raise"):
        raise ValueError("two\\n  lines")
    if request.get("parse"):
        argparse.ArgumentParser(prog="it").parse_args(["--no-such-flag"])
    if request.get("die"):
        os._exit(3)

if __name__ == "__main__":
    kind = sys.argv[0].rpartition("/")[2]
    if kind == "forked.py":
        serve_answers(lambda request: in_child(lambda: verdict(stages, request), "it"))
    elif kind == "strict.py":
        serve(stages, refusals=Refused)
    else:
        serve(stages, lambda overlay: FeignedModules("not_there"))
"""


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Worker]:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "overlays"))
    script = tmp_path / f"{getattr(request, 'param', 'plain')}.py"
    script.write_text(SCRIPT)
    with Worker(Validator("it", "1", script, applies=lambda _: True, request=lambda _: {}), "1") as worker:
        yield worker


def test_a_refusal_names_the_stage_that_was_begun_and_keeps_the_facts(ask: Worker) -> None:
    good, bad = ask.ask({}), ask.ask({"refuse": "no such mesh"})
    assert (good.accepted, good.stage, good.message) == (True, "ok", "")
    assert (bad.accepted, bad.stage, bad.message) == (False, "decide", "no such mesh")
    assert bad.facts == good.facts
    assert good.facts["first_in_path"].rpartition("/")[2].startswith("it-1-py")


def test_an_error_is_told_with_its_kind_on_one_line(ask: Worker) -> None:
    assert ask.ask({"raise": True}).message == "ValueError: two lines"


def test_a_parser_that_ends_the_process_is_quoted(ask: Worker) -> None:
    assert ask.ask({"parse": True}).message == "unrecognized arguments: --no-such-flag"


def test_modules_that_are_not_there_are_feigned(ask: Worker) -> None:
    assert ask.ask({"import": True}).facts["class"] == "Thing"


@pytest.mark.parametrize("ask", ["strict"], indirect=True)
def test_what_is_no_refusal_is_no_verdict(ask: Worker) -> None:
    assert ask.ask({"refuse": "no"}).message == "no"
    with pytest.raises(ValidatorUnavailable, match="gave no verdict"):
        ask.ask({"raise": True})


@pytest.mark.parametrize("ask", ["forked"], indirect=True)
def test_a_child_that_dies_is_an_answer(ask: Worker) -> None:
    dead = ask.ask({"die": True})
    assert (dead.accepted, dead.stage) == (False, "process")
    assert dead.message.startswith("it ended its process, status")
    assert ask.ask({}).accepted
