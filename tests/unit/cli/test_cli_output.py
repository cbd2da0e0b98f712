from __future__ import annotations

import io
import json
import math
import sys

import pytest
from rich.text import Text

from planner.answers.views.words import count, gib, percent, seconds
from planner.cli.output import OutputFormat, render_text, to_json, to_yaml, write_answer
from planner.cli.render.tables import table
from planner.cli.render.words import bar
from profiles.safe_yaml import load_yaml_text


class Terminal(io.TextIOWrapper):
    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode(self.encoding)


DATA = {"zeta": 1, "alpha": [1.5, None, True, "é"], "nested": {"text": "yes", "empty": []}}


def test_yaml_says_what_json_says_in_the_same_order() -> None:
    text = to_yaml(DATA)
    assert load_yaml_text(text, "test") == json.loads(to_json(DATA))
    assert text.index("zeta") < text.index("alpha")


def test_json_refuses_what_is_not_a_number() -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_json({"step_time_s": math.nan})


def test_no_colours_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    write_answer({}, OutputFormat.TABLE, lambda: [Text("red", style="bold red")])
    assert capsys.readouterr().out == "red\n"


def test_colours_on_a_terminal_unless_the_user_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert "\x1b[" in render_text([Text("red", style="red")])
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in render_text([Text("red", style="red")])


def test_user_text_is_never_markup(capsys: pytest.CaptureFixture[str]) -> None:
    write_answer({}, OutputFormat.TABLE, lambda: [table("", ("a",), [("[red]:smile:[/red]",)])])
    assert "[red]:smile:[/red]" in capsys.readouterr().out


def test_plain_characters_where_the_stream_has_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Terminal("ascii")
    monkeypatch.setattr(sys, "stdout", plain)
    assert bar(0.5, 4) == "##.."
    assert render_text([table("", ("a",), [("b",)])]).isascii()
    assert to_json({"a": "é"}).isascii()


def test_bars_are_as_long_as_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert [len(bar(fraction, 10)) for fraction in (-1, 0, 0.013, 0.5, 0.99, 1, 7)] == [10] * 7
    assert bar(1, 3) == "███"
    assert bar(0, 3) == "░░░"


@pytest.mark.parametrize(
    ("value", "shown"), [(5.814, "5.81 s"), (0.042, "42.0 ms"), (3.1e-4, "310 us"), (0, "0 s"), (1234.5, "1,234 s")]
)
def test_seconds(value: float, shown: str) -> None:
    assert seconds(value) == shown


def test_other_units() -> None:
    assert (gib(71.3 * 2**30), count(722_000), count(1.448e6), count(12)) == ("71.3 GiB", "722 k", "1.45 M", "12")
    assert (percent(0.479), percent(0.1, signed=True)) == ("47.9 %", "+10.0 %")
