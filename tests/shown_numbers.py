"""Every number that a document for people shows, with the words around it: tables, facts and sentences.

A document is text of a terminal, HTML or Markdown.  It becomes ``Cell``s, a cell becomes ``Shown`` numbers and
``name=value`` assignments.  Nothing here knows what a plan is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

RULE = re.compile(r"^[─\-+ ]*[─-]{3,}[─\-+ ]*$")
GAP = 2
"""Blanks that part two columns of a terminal's table; words of one cell stand one blank apart."""
BULLETS = "•-"
SCALES = {
    "s": ("s", 1.0), "ms": ("s", 1e-3), "us": ("s", 1e-6),
    "B": ("B", 1.0), "KiB": ("B", 2.0**10), "MiB": ("B", 2.0**20), "GiB": ("B", 2.0**30), "TiB": ("B", 2.0**40),
    "%": ("%", 1e-2),
    "k": ("", 1e3), "M": ("", 1e6), "G": ("", 1e9), "T": ("", 1e12),
}  # fmt: skip
NUMBER = re.compile(
    r"(?<![\w.=#-])(?<!\D/)(?P<number>[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]\d+)?)"
    r"(?:\s?(?P<unit>%|(?:[KMGT]iB|B|[mu]?s|[kMGT])(?![\w/])))?(?![\w=]|[.,-]\w|/[^\W\d])"
)
ASSIGNED = re.compile(r"(?<![\w.])(?P<name>[a-z][a-z_]*)=(?P<value>[\w+.-]+?)(?=[\s,;:)]|\+sp|$)")
UNIT_IN_HEAD = re.compile(r"\((?P<unit>s|ms|us|GiB|%)\)$|^(?P<whole>s)$")
CLAUSE = re.compile(r"[;:()|·]|\.(?=\s|$)|, ")


@dataclass(frozen=True, slots=True)
class Cell:
    """A text and where it stands; ``place`` is the row's number in its table, from 0."""

    heading: str
    row: str
    column: str
    text: str
    place: int = 0


@dataclass(frozen=True, slots=True)
class Shown:
    """A printed number in s, B, a fraction (``%``) or bare, with half a unit of its last digit.

    ``before`` and ``after`` are the words of its clause up to its neighbours; ``order`` counts the numbers of a cell.
    """

    value: float
    half_digit: float
    unit: str
    cell: Cell
    before: str
    after: str
    order: int
    text: str

    def says(self, value: float) -> bool:
        """Whether it is this value, rounded as it is printed."""
        return abs(self.value - value) <= self.half_digit * (1 + 1e-6) + 1e-12 * abs(value)

    def __str__(self) -> str:
        cell = self.cell
        return f"{self.text!r} in {cell.text[:160]!r} ({cell.heading!r} > {cell.row!r} > {cell.column!r})"


def numbers_of(cell: Cell) -> Iterator[Shown]:
    """The numbers of one cell.  A bare number has the unit of its column's head, else that of the next one with it."""
    found = list(NUMBER.finditer(cell.text))
    head = UNIT_IN_HEAD.search(cell.column)
    of_head = (head["unit"] or head["whole"]) if head else None
    for order, match in enumerate(found):
        # In "66.1 of 75.2 GiB" and "3.748 .. 9.956 s" the unit stands once.
        joined = next((n for n in found[order + 1 :] if n["unit"]), None)
        between = cell.text[match.end() : joined.start()] if joined else ""
        shared = joined["unit"] if joined and re.fullmatch(r"\s*(of|\.\.|/)\s*", between) else None
        unit, scale = SCALES.get(match["unit"] or of_head or shared or "", ("", 1.0))
        before = cell.text[found[order - 1].end() if order else 0 : match.start()]
        after = cell.text[match.end() : found[order + 1].start() if order + 1 < len(found) else None]
        digits = match["number"].replace(",", "").partition("e")[0]
        decimals = len(digits.partition(".")[2])
        yield Shown(
            float(match["number"].replace(",", "")) * scale,
            0.5 * 10.0**-decimals * scale,
            unit,
            cell,
            CLAUSE.split(before)[-1].strip(),
            CLAUSE.split(after)[0].strip(),
            order,
            match.group(),
        )


def assignments_of(cell: Cell) -> Iterator[tuple[str, str]]:
    """``tp=4`` as a name and a value."""
    for match in ASSIGNED.finditer(cell.text):
        yield match["name"], match["value"]


def text_cells(text: str) -> list[Cell]:
    """What a terminal shows: tables under a rule of dashes, facts (a name, blanks, a value), and lines."""
    lines, cells, heading, at = text.splitlines(), list[Cell](), "", 0
    while at < len(lines):
        line = lines[at]
        if at + 1 < len(lines) and RULE.match(lines[at + 1]) and line.strip():
            end = next((n for n in range(at + 2, len(lines)) if not lines[n].strip()), len(lines))
            cells += _table_cells(heading, line, lines[at + 2 : end])
            at = end
            continue
        if not line.strip():
            title = lines[at + 1].strip() if at + 1 < len(lines) else ""
            heading = "" if title[:1] in BULLETS else title
        elif line[0] in BULLETS:
            cells.append(Cell(heading, "", "", line[1:].strip()))
        elif line[0] == " " and cells and not heading.startswith("Timeline"):
            last = cells.pop()
            cells.append(Cell(last.heading, last.row, "", f"{last.text} {line.strip()}"))
        else:
            name, _, value = line.partition("  ")
            row, told = (name, value.strip()) if value.strip() else ("", line.strip())
            cells.append(Cell(heading, row, "", told))
        at += 1
    return cells


def _table_cells(heading: str, head: str, rows: Sequence[str]) -> list[Cell]:
    """Columns are what stands between blanks that all lines have in common."""
    width = max(map(len, (head, *rows)))
    padded = [line.ljust(width) for line in (head, *rows)]
    free = "".join(" " if all(line[n] == " " for line in padded) else "x" for n in range(width))
    spans = [match.span() for match in re.finditer(rf"x+(?: {{1,{GAP - 1}}}x+)*", free)]
    names = [head[a:b].strip() for a, b in spans]
    found, place = list[Cell](), -1
    for line in padded[1:]:
        words = [line[a:b].strip() for a, b in spans]
        place += bool(words[0])
        # A row without a name of its own continues the one above.
        found += [
            Cell(heading, words[0], name, word, place)
            for name, word in zip(names, words, strict=True) if word and not set(word) <= set("█▏▎▍▌▋▊▉░│#.")
        ]  # fmt: skip
    return found


def markdown_cells(text: str) -> list[Cell]:
    """Tables, lists and paragraphs under their headings; a table of two columns without heads holds facts."""
    cells, heading, head, place = list[Cell](), "", list[str](), 0
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("|"):
            words = [word.strip() for word in line.strip().strip("|").split(" | ")]
            if not head:
                head, place = words, -1
            elif not set("".join(words)) <= set("- |"):
                place += 1
                facts = not any(head)
                # The head of the first column says what the table is about.
                about = heading if facts else f"{heading}: {head[0]}"
                cells += [
                    Cell(about, words[0].strip(), name, word, place)
                    for name, word in list(zip(head, words, strict=True))[1 if facts else 0 :]
                ]
            continue
        elif line.strip():
            cells.append(Cell(heading, "", "", line.strip("- ")))
        head = []
    return cells


class _Page(HTMLParser):
    """Facts of lists of definitions, tables by caption, and every other text."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = list[Cell]()
        self.heading, self.caption, self.name = "", "", ""
        self.head, self.words, self.place = list[str](), list[str](), 0
        self.text, self.skipped = "", 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"style", "head", "code"}:
            self.skipped += 1
        if tag == "table":
            self.head, self.caption, self.place = [], "", -1
        if tag == "tr":
            self.words, self.place = [], self.place + 1
        if tag in {"p", "li", "figcaption", "title", "text", "td", "th", "dt", "dd", "caption", "h1", "h2"}:
            self.text = ""

    def handle_data(self, data: str) -> None:
        self.text += "" if self.skipped else data

    def handle_endtag(self, tag: str) -> None:
        text = self.text.strip()
        if tag in {"style", "head", "code"}:
            self.skipped -= 1
        elif tag in {"h1", "h2"}:
            self.heading = text
        elif tag == "caption":
            self.caption = text
            self.cells.append(Cell(self.heading, "", "", text))
        elif tag == "dt":
            self.name = text
        elif tag == "dd":
            self.cells.append(Cell(self.heading, self.name, "", text))
        elif tag == "th":
            self.head.append(text)
        elif tag == "td":
            self.words.append(text)
        elif tag == "tr" and self.words:
            self.cells += [
                Cell(f"{self.heading}: {self.caption}", self.words[0], name, word, self.place - 1)
                for name, word in zip(self.head, self.words, strict=True)
            ]
        elif tag in {"p", "li", "figcaption", "title", "text"} and text and not self.skipped:
            self.cells.append(Cell(self.heading, "", "", text))
            self.text = ""


def html_cells(text: str) -> list[Cell]:
    """What a page shows, hover texts included."""
    page = _Page()
    page.feed(text)
    return page.cells
