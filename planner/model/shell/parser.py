"""The text of a shell script as a tree of commands.  Raises ``ShellSyntaxError``.

Tolerant where a launch script may be: a line that begins with ``--flag`` is a command, a bracket inside an argument
belongs to it.
"""

from __future__ import annotations

import bisect
import re

from planner.model.shell.scanning import META, end_of_brackets, end_of_line, end_of_word
from planner.model.shell.tree import (
    Body,
    Case,
    Chain,
    For,
    Function,
    Group,
    HereText,
    If,
    Node,
    Pipeline,
    ShellSyntaxError,
    Simple,
    Sum,
    Test,
    While,
)

_REDIRECT = re.compile(r"(?:\d*|&)(?P<operator><<<|<<-?|>>|>\||>&|<&|<>|>|<)(?P<glued>\d|-)?")
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_NESTED = 60


def parse(text: str) -> Body:
    """Every command of the script."""
    parser = _Parser(text)
    body = parser.commands(())
    if parser.place < len(text):
        raise parser.error(f"'{text[parser.place : parser.place + 20].split(maxsplit=1)[0]}' has no beginning")
    return body


class _Parser:
    """A position in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.depth = 0
        self._here: list[HereText] = []
        self._newlines = [index for index, sign in enumerate(text) if sign == "\n"]

    def line(self) -> int:
        return bisect.bisect_left(self._newlines, self.place) + 1

    def error(self, what: str) -> ShellSyntaxError:
        return ShellSyntaxError(what, self.line())

    def blank(self, *, newlines: bool = False) -> None:
        """Step over spaces, comments and continued lines; over newlines and ``;`` too where asked."""
        text = self.text
        while self.place < len(text):
            sign = text[self.place]
            if sign in " \t\r":
                self.place += 1
            elif text.startswith(("\\\n", "\\\r\n"), self.place):
                self.place = end_of_line(text, self.place) + 1
            elif sign == "#" and (self.place == 0 or text[self.place - 1] in META):
                self.place = end_of_line(text, self.place)
            elif newlines and sign == "\n":
                self.place += 1
                self._bodies()
            else:
                return

    def peek(self) -> str:
        """The raw word here, empty at an operator; nothing is consumed."""
        if self.place >= len(self.text) or self.text[self.place] in META:
            return ""
        return self.text[self.place : end_of_word(self.text, self.place)]

    def expect(self, *words: str) -> str:
        self.blank(newlines=True)
        while self.text.startswith(";", self.place):
            self.place += 1
            self.blank(newlines=True)
        word = self.peek()
        if word not in words:
            raise self.error(f"'{words[0]}' is missing")
        self.place += len(word)
        return word

    def commands(self, stops: tuple[str, ...]) -> Body:
        """Commands up to a word of ``stops``, a closing bracket or the end of an arm."""
        nodes: list[Node] = []
        self.depth += 1
        if self.depth > _NESTED:
            raise self.error("too many commands inside each other")
        while True:
            self.blank(newlines=True)
            text = self.text
            if self.place >= len(text) or text[self.place] == ")" or text.startswith((";;", ";&"), self.place):
                break
            if text[self.place] in ";&":
                self.place += 1
                continue
            if stops and self.peek() in stops:
                break
            nodes.append(self._chain())
        self.depth -= 1
        return tuple(nodes)

    def _chain(self) -> Node:
        first = self._pipeline()
        rest: list[tuple[str, Node]] = []
        while True:
            self.blank()
            operator = self.text[self.place : self.place + 2]
            if operator not in ("&&", "||"):
                return Chain(first, tuple(rest)) if rest else first
            self.place += 2
            self.blank(newlines=True)
            rest.append((operator, self._pipeline()))

    def _pipeline(self) -> Node:
        negated = False
        while self.peek() in ("!", "time"):
            negated ^= self.peek() == "!"
            self.place += len(self.peek())
            self.blank()
        commands = [self._command()]
        while True:
            self.blank()
            if not self.text.startswith("|", self.place) or self.text.startswith("||", self.place):
                break
            self.place += 2 if self.text.startswith("|&", self.place) else 1
            self.blank(newlines=True)
            commands.append(self._command())
        return Pipeline(tuple(commands), negated) if negated or len(commands) > 1 else commands[0]

    def _command(self) -> Node:
        line, text = self.line(), self.text
        if text.startswith("((", self.place):
            end = end_of_brackets(text, self.place, "(", ")")
            inside = text[self.place + 2 : end - 2]
            if text[end - 2 : end] == "))":
                self.place = end
                return Sum(inside, line)
        if text.startswith("(", self.place):
            self.place += 1
            body = self.commands(())
            self._sign(")")
            return self._redirected(Group(body, apart=True))
        word = self.peek()
        compound = {
            "if": self._if,
            "for": self._for,
            "select": self._for,
            "while": self._while,
            "until": self._while,
            "case": self._case,
            "[[": self._test,
            "function": self._function,
        }.get(word)
        if compound is not None:
            node = compound(line)
            return node if isinstance(node, (Test, Function)) else self._redirected(node)
        if word == "{":
            self.place += 1
            body = self.commands(("}",))
            self.expect("}")
            return self._redirected(Group(body, apart=False))
        if word.endswith("()") and _NAME.match(word[:-2]):
            return self._function(line)
        return self._simple(line)

    def _sign(self, sign: str) -> None:
        self.blank(newlines=True)
        if not self.text.startswith(sign, self.place):
            raise self.error(f"'{sign}' is missing")
        self.place += len(sign)

    def _redirected(self, node: Node) -> Node:
        """Redirections after a compound command: their targets say nothing."""
        self._arguments([], only_redirects=True)
        return node

    def _if(self, line: int) -> Node:
        self.expect("if")
        branches: list[tuple[Body, Body]] = []
        otherwise: Body | None = None
        while True:
            condition = self.commands(("then",))
            self.expect("then")
            branches.append((condition, self.commands(("elif", "else", "fi"))))
            word = self.expect("fi", "elif", "else")
            if word == "else":
                otherwise = self.commands(("fi",))
                self.expect("fi")
            if word != "elif":
                return If(tuple(branches), otherwise, line)

    def _for(self, line: int) -> Node:
        self.expect("for", "select")
        self.blank()
        if self.text.startswith("((", self.place):
            end = end_of_brackets(self.text, self.place, "(", ")")
            steps = (*self.text[self.place + 2 : end - 2].split(";"), "", "", "")[:3]
            self.place = end
            return For("", None, self._loop_body(), line, (steps[0], steps[1], steps[2]))
        name = self.peek()
        self.place += len(name)
        self.blank(newlines=True)
        words: list[str] | None = None
        if self.peek() == "in":
            self.place += 2
            words = []
            self._arguments(words)
        return For(name, None if words is None else tuple(words), self._loop_body(), line)

    def _loop_body(self) -> Body:
        self.expect("do")
        body = self.commands(("done",))
        self.expect("done")
        return body

    def _while(self, line: int) -> Node:
        word = self.expect("while", "until")
        condition = self.commands(("do",))
        return While(condition, self._loop_body(), word == "until", line)

    def _case(self, line: int) -> Node:
        self.expect("case")
        self.blank()
        subject = self.peek()
        self.place += len(subject)
        self.expect("in")
        arms: list[tuple[tuple[str, ...], Body]] = []
        while True:
            self.blank(newlines=True)
            if self.peek() == "esac":
                self.place += 4
                return Case(subject, tuple(arms), line)
            if self.place >= len(self.text):
                raise self.error("'esac' is missing")
            if self.text[self.place] == "(":
                self.place += 1
            close = self._end_of_patterns()
            patterns = tuple(part.strip() for part in self.text[self.place : close].split("|"))
            self.place = close + 1
            arms.append((patterns, self.commands(("esac",))))
            if self.text.startswith((";;", ";&"), self.place):
                self.place += 3 if self.text.startswith(";;&", self.place) else 2

    def _end_of_patterns(self) -> int:
        place = self.place
        while place < len(self.text) and self.text[place] != ")":
            place = max(end_of_word(self.text, place), place + 1) if self.text[place] not in META else place + 1
        if place >= len(self.text):
            raise self.error("')' is missing after the pattern of a case")
        return place

    def _test(self, line: int) -> Node:
        self.place += 2
        words: list[str] = []
        while True:
            self.blank(newlines=True)
            if self.place >= len(self.text):
                raise self.error("']]' is missing")
            operator = next((each for each in ("&&", "||", "(", ")", "<", ">") if self._here_is(each)), None)
            word = operator if operator is not None else self._test_word(words)
            self.place += max(len(word), 1)
            if word == "]]":
                return Test(tuple(words), line)
            words.append(word)

    def _here_is(self, operator: str) -> bool:
        return self.text.startswith(operator, self.place)

    def _test_word(self, words: list[str]) -> str:
        if words and words[-1] == "=~":  # a regular expression may hold brackets and bars
            end = self.place
            while end < len(self.text) and not self.text[end].isspace():
                end += 1
            return self.text[self.place : end]
        return self.peek()

    def _function(self, line: int) -> Node:
        if self.peek() == "function":
            self.place += len("function")
            self.blank()
        word = self.peek()
        self.place += len(word)
        self.blank()
        if self.text.startswith("()", self.place):
            self.place += 2
        self.blank(newlines=True)
        if self.place >= len(self.text):
            raise self.error("the function has no body")
        return Function(word.removesuffix("()"), self._command())

    def _simple(self, line: int) -> Node:
        words: list[str] = []
        here, output = self._arguments(words)
        return Simple(tuple(words), line, here, output)

    def _bodies(self) -> None:
        """Read the here-documents that wait, each up to its delimiter."""
        for here in self._here:
            while self.place < len(self.text):
                end = end_of_line(self.text, self.place)
                line = self.text[self.place : end].rstrip("\r")
                self.place = min(end + 1, len(self.text))
                plain = line.lstrip("\t") if here.strip_tabs else line
                if plain == here.delimiter:
                    break
                here.lines.append(plain)
        self._here.clear()

    def _arguments(self, words: list[str], *, only_redirects: bool = False) -> tuple[HereText | None, str | None]:
        """Append the words of a command; returns the here-document that it opens, and where its output goes."""
        here: HereText | None = None
        output: str | None = None
        while True:
            self.blank()
            match = _REDIRECT.match(self.text, self.place)
            if match is not None and not self.text.startswith(("<(", ">("), self.place):
                target = self._target(match)
                if match["operator"] == "<<<":
                    here = HereText("", word=target)
                elif match["operator"] in ("<<", "<<-"):
                    bare = target.strip("'\"").replace("\\", "")
                    here = HereText(bare, bare != target, match["operator"] == "<<-")
                    self._here.append(here)
                elif match["operator"] in (">", ">>", ">|"):
                    output = target
                continue
            at_end = self.place >= len(self.text) or (self.text[self.place] in META and self.text[self.place] != "(")
            if at_end or only_redirects:
                return here, output
            end = end_of_word(self.text, self.place)
            words.append(self.text[self.place : end])
            self.place = end

    def _target(self, match: re.Match[str]) -> str:
        """The word after a redirection; none after ``2>&1``."""
        self.place = match.end()
        if match["glued"] is not None and match["operator"] in (">&", "<&"):
            return ""
        self.place -= len(match["glued"] or "")
        self.blank()
        target = self.peek()
        self.place += len(target)
        return target
