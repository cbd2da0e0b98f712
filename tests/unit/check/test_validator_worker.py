from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from planner.backends.checking.environment import ENVIRONMENT_VARIABLE
from planner.backends.checking.validator import Validator
from planner.backends.checking.worker import Worker
from planner.errors import ValidatorUnavailable

ECHO = """
import json, os, subprocess, sys, time
count = 0
for line in sys.stdin:
    request = json.loads(line)
    count += 1
    what = request.get("do")
    if what == "die":
        print("the reason", file=sys.stderr, flush=True)
        os._exit(3)
    if what == "hang":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        open(request["pid_file"], "w").write(str(child.pid))
        time.sleep(600)
    if what == "babble":
        print("hello", flush=True)
        continue
    facts = {"count": count, "overlay": sys.argv[1], "size": len(line)}
    print(json.dumps({"accepted": what != "refuse", "stage": "s", "message": "m", "facts": facts}), flush=True)
"""


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Validator:
    """A validator whose worker does what it is told."""
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "overlays"))
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    return Validator("echo", "1.0", script, applies=lambda _: True, request=lambda _: {})


def test_one_process_answers_many_requests(echo: Validator) -> None:
    with Worker(echo, "1.0") as worker:
        first, second = worker.ask({}), worker.ask({"do": "refuse"})
    assert (first.accepted, second.accepted) == (True, False)
    assert (first.facts["count"], second.facts["count"]) == (1, 2)
    assert (first.stage, first.message, first.validator, first.version) == ("s", "m", "echo", "1.0")
    assert first.facts["overlay"].endswith(f"overlays/echo-1.0-py{sys.version_info.major}.{sys.version_info.minor}")


def test_a_large_request_passes(echo: Validator) -> None:
    with Worker(echo, "1.0") as worker:
        assert worker.ask({"text": "x" * 1_000_000}).facts["size"] > 1_000_000


def test_a_process_that_dies_says_why_and_the_next_request_starts_another(echo: Validator) -> None:
    with Worker(echo, "1.0") as worker:
        with pytest.raises(ValidatorUnavailable, match=r"the process ended.*: the reason"):
            worker.ask({"do": "die"})
        assert worker.ask({}).facts["count"] == 1


def test_a_hang_ends_with_its_children(echo: Validator, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    with Worker(echo, "1.0", timeout_s=2.0) as worker:
        begin = time.monotonic()
        with pytest.raises(ValidatorUnavailable, match="no answer within 2 s"):
            worker.ask({"do": "hang", "pid_file": str(pid_file)})
        assert time.monotonic() - begin < 60
    child = Path(f"/proc/{pid_file.read_text()}/stat")
    for _ in range(100):
        if not child.exists() or child.read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the worker's child outlived it")


def test_an_answer_that_is_no_json_is_no_verdict(echo: Validator) -> None:
    with Worker(echo, "1.0") as worker, pytest.raises(ValidatorUnavailable, match="gave no verdict"):
        worker.ask({"do": "babble"})
