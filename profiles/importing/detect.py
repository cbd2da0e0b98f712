"""Format detection: every format is asked, most specific first, by the head of the file alone."""

from __future__ import annotations

import zlib
from contextlib import suppress
from dataclasses import replace

from profiles.errors import DocumentInvalid
from profiles.importing.format import Format
from profiles.importing.formats import format_names, load_format
from profiles.importing.log_lines import cleaned_text
from profiles.importing.source_file import HEAD_BYTES, Head, SourceFile

_REFUSED: tuple[tuple[str, str, str], ...] = (
    (".nsys-rep", "an Nsight Systems report in its own binary form", "run: nsys export --type sqlite FILE.nsys-rep"),
    (".qdrep", "an Nsight Systems report in its own binary form", "run: nsys export --type sqlite FILE.qdrep"),
    (".ncu-rep", "an Nsight Compute report in its own binary form", "run: ncu --import FILE.ncu-rep --csv --page raw"),
    (".pkl", "a Python pickle, which can run code when it is read", "export it as JSON or CSV"),
    (".pickle", "a Python pickle, which can run code when it is read", "export it as JSON or CSV"),
    (".pt", "a torch archive, which holds a pickle", "export it as JSON"),
)


_LONGEST_LINE = 8192
_DEEPER: tuple[tuple[str, bytes], ...] = (("nccl-tests", b"algbw"), ("osu", b"# OSU "), ("imb", b"# Benchmarking "))
"""Benchmarks whose tables may stand behind megabytes of other output, and a word that only such a table holds."""
_MIXED_IN = "nccl-debug"
_AROUND_BYTES = 16 << 10
_CHUNK_BYTES = 4 << 20


def matching_formats(head: Head) -> list[Format]:
    """Every format that recognises the head, in detection order.

    A format may recognise the head as it is, or without what launchers and terminals put around each line.
    """
    heads = [head, *_cleaned(head)]
    return [found for found in map(load_format, format_names()) if any(_recognises(found, each) for each in heads)]


def _cleaned(head: Head) -> list[Head]:
    """The head without prefixes and escapes, if it is a log and has any."""
    if not head.text or head.text.lstrip("\ufeff \t\r\n")[:1] in ("{", "<"):
        return []
    text = cleaned_text("\n".join(line[:_LONGEST_LINE] for line in head.text.splitlines()))
    return [replace(head, text=text)] if text != head.text.rstrip() else []


def _recognises(found: Format, head: Head) -> bool:
    """Whether a format recognises the head; a head on which its test fails is not of this format."""
    try:
        return found.matches(head)
    except Exception:
        return False


def detect(file: SourceFile) -> tuple[Format, list[str]]:
    """The format of a file and the names of others that it also looks like.

    Raises DocumentInvalid for files in a closed binary form (with the command that converts them) and for unknown ones.
    """
    for suffix, what, hint in _REFUSED:
        if file.name.endswith(suffix):
            raise DocumentInvalid(f"this is {what}", where=file.where, hint=hint)
    found = matching_formats(file.head())
    if not found or found[0].name == _MIXED_IN:
        found = _deeper(file) + found
    if not found:
        raise DocumentInvalid(
            "no importer recognises this file",
            where=file.where,
            hint="choose its --format; `meshwright profile formats` lists them all",
        )
    return found[0], [other.name for other in found[1:]]


def _deeper(file: SourceFile) -> list[Format]:
    """Benchmarks whose tables begin behind the head of a long log."""
    if file.is_folder or len(file.head().raw) < HEAD_BYTES or not file.head().text:
        return []
    places = _first_places(file)
    heads = ((load_format(name), places[marker]) for name, marker in _DEEPER if marker in places)
    return [
        found
        for found, around in heads
        if any(_recognises(found, each) for head in (_text_head(file, around),) for each in (head, *_cleaned(head)))
    ]


def _text_head(file: SourceFile, around: bytes) -> Head:
    return Head(file.name, around, around.decode("utf-8", errors="replace").replace("\r\n", "\n"))


def _first_places(file: SourceFile) -> dict[bytes, bytes]:
    """The text around the first place of each marker."""
    places: dict[bytes, bytes] = {}
    before = b""
    # Damage further on is for the reader to tell, with its place.
    with file.open() as stream, suppress(OSError, EOFError, zlib.error):
        while chunk := stream.read(_CHUNK_BYTES):
            window = before + chunk
            for _, marker in _DEEPER:
                if marker not in places and (index := window.find(marker)) >= 0:
                    places[marker] = window[max(0, index - _AROUND_BYTES) : index + _AROUND_BYTES]
            before = window[-_AROUND_BYTES:]
    return places
