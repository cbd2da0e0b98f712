"""The commands of a shell script as a tree.  Words stay raw text: they are expanded when a command is followed."""

from __future__ import annotations

from dataclasses import dataclass, field


class ShellSyntaxError(ValueError):
    """What cannot be read, and its line."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


@dataclass(frozen=True, slots=True)
class HereText:
    """A here-document; ``literal``: its delimiter was quoted, so that nothing in it is expanded.

    ``word``: the raw word of a here-string (``<<<``) in its place.  The parser fills ``lines`` when it gets there.
    """

    delimiter: str
    literal: bool = False
    strip_tabs: bool = False
    word: str | None = None
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The body, raw."""
        return "".join(f"{line}\n" for line in self.lines)


@dataclass(frozen=True, slots=True)
class Simple:
    """Assignments and one command.  ``output``: raw target of ``>`` or ``>>``."""

    words: tuple[str, ...]
    line: int
    here: HereText | None = None
    output: str | None = None


@dataclass(frozen=True, slots=True)
class If:
    """Conditions with their bodies, and the body of ``else`` (None: there is none)."""

    branches: tuple[tuple[Body, Body], ...]
    otherwise: Body | None
    line: int


@dataclass(frozen=True, slots=True)
class For:
    """``words`` None: over the positional arguments.  ``steps``: the three expressions of ``for ((..))``."""

    name: str
    words: tuple[str, ...] | None
    body: Body
    line: int
    steps: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True)
class While:
    """``until`` where ``negated``."""

    condition: Body
    body: Body
    negated: bool
    line: int


@dataclass(frozen=True, slots=True)
class Case:
    """Arms: raw patterns with a body each."""

    subject: str
    arms: tuple[tuple[tuple[str, ...], Body], ...]
    line: int


@dataclass(frozen=True, slots=True)
class Group:
    """``{ ...; }``, or ``( ... )`` where ``apart``: its variables do not come back."""

    body: Body
    apart: bool


@dataclass(frozen=True, slots=True)
class Function:
    """A definition."""

    name: str
    body: Node


@dataclass(frozen=True, slots=True)
class Test:
    """``[[ ... ]]``: raw words."""

    words: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Sum:
    """``(( ... ))``."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by ``|``; ``negated``: a ``!`` stands before."""

    commands: tuple[Node, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """``first``, then parts each after ``&&`` or ``||``."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


Node = Simple | If | For | While | Case | Group | Function | Test | Sum | Pipeline | Chain
Body = tuple[Node, ...]
