"""Whatever is done to a real file, its importer answers with observations or with one clear error, and soon.

``MESHWRIGHT_FUZZ_EXAMPLES=200 pytest tests/property/test_importer_fuzz.py`` looks longer, and at large files too.
"""

from __future__ import annotations

import gzip
import os
import random
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiles.errors import DocumentInvalid, MeshwrightError
from profiles.importing.detect import matching_formats
from profiles.importing.format import Format, ReadOptions
from profiles.importing.read_sources import guarded, read_sources
from profiles.importing.source_file import SourceFile
from profiles.observation_store.preparing import prepare
from tests.importing import SHARED_SAMPLES, SMALL_SAMPLES
from tests.sampling import drawn

EXAMPLES = int(os.environ.get("MESHWRIGHT_FUZZ_EXAMPLES", "0"))
LARGEST_BYTES = 64 << 20 if EXAMPLES else 400_000
TIME_LIMIT_S = 30
NUMBERS = (
    b"nan",
    b"-1",
    b"1e999",
    b"0",
    b"99999999999999999999999999",
    b"-0.0",
    b"inf",
    b"1e-400",
    b"",
    b"1,5",
    b"0x1F",
)


def samples() -> dict[str, Path]:
    """Every sample by name; a small copy stands for the shared original."""
    found: dict[str, Path] = {}
    for folder in (SMALL_SAMPLES, SHARED_SAMPLES):
        for path in sorted(folder.glob("*/*")):
            if path.is_file():
                found.setdefault(str(path.relative_to(folder)), path)
    return found


SAMPLES = samples()


class TooSlow(BaseException):
    """The time limit; no importer can catch it by accident."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def cut(content: bytes, dice: random.Random) -> bytes:
    return content[: dice.randrange(len(content) + 1)]


def delete_lines(content: bytes, dice: random.Random) -> bytes:
    lines = content.split(b"\n")
    start = dice.randrange(len(lines))
    del lines[start : start + dice.randint(1, max(len(lines) // 4, 1))]
    return b"\n".join(lines)


def duplicate_line(content: bytes, dice: random.Random) -> bytes:
    lines = content.split(b"\n")
    lines.insert(dice.randrange(len(lines)), dice.choice(lines))
    return b"\n".join(lines)


def swap_lines(content: bytes, dice: random.Random) -> bytes:
    lines = content.split(b"\n")
    first, second = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def replace_numbers(content: bytes, dice: random.Random) -> bytes:
    places = [place for place, byte in enumerate(content) if 48 <= byte <= 57]
    for place in sorted(dice.sample(places, min(len(places), 3)), reverse=True):
        end = place
        while end < len(content) and content[end] in b"0123456789.eE+-":
            end += 1
        content = content[:place] + dice.choice(NUMBERS) + content[end:]
    return content


def random_bytes(content: bytes, dice: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(min(len(changed), 8)):
        changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def remove_part(content: bytes, dice: random.Random) -> bytes:
    start = dice.randrange(len(content) + 1)
    return content[:start] + content[start + dice.randint(1, 200) :]


def repeat_part(content: bytes, dice: random.Random) -> bytes:
    start = dice.randrange(len(content) + 1)
    part = content[start : start + dice.randint(1, 2000)]
    return content[:start] + part * dice.randint(2, 30) + content[start:]


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(cut, delete_lines, duplicate_line, swap_lines, replace_numbers, random_bytes, remove_part, repeat_part),
)


def mutated(content: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.randint(1, 3)):
        if content:
            content = dice.choice(MUTATIONS)(content, dice)
    return content


def unpacked(path: Path) -> tuple[str, bytes]:
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        return path.name.removesuffix(".gz"), gzip.decompress(content)
    return path.name, content


def read_strictly(chosen: Format, file: SourceFile) -> None:
    """The importer alone: it may raise nothing but a clear error (``read_sources`` would hide the rest)."""
    with suppress(MeshwrightError):
        chosen.read([file], ReadOptions())


def read_to_the_end(file: SourceFile, format_name: str | None) -> None:
    """The way of ``profile import --keep-going --dry-run``."""
    for result in read_sources([file], format_name=format_name, keep_going=True):
        imported, source = result.imported, result.source
        if result.error is not None:
            assert file.where in (result.error.where or "")
        elif imported is not None and source is not None:
            try:
                guarded([file], lambda imported=imported, source=source: prepare(imported, source))  # type: ignore[misc]
            except DocumentInvalid as error:
                pytest.fail(f"an importer gave what cannot be stored: {error}")


CHANGED = drawn(list(SAMPLES), len(SAMPLES) // 4, kind=lambda name: name.partition("/")[0])
"""At least one sample of each format."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_file_never_breaks_its_importer(name: str) -> None:
    base_name, content = unpacked(SAMPLES[name])
    if len(content) > LARGEST_BYTES:
        content = content[:LARGEST_BYTES]
    formats = matching_formats(SourceFile(SAMPLES[name]).head())
    if not formats:
        pytest.skip("no format reads this file")

    @settings(max_examples=EXAMPLES or 4, suppress_health_check=list(HealthCheck))
    @given(seed=st.integers(0, 2**32))
    def check(seed: int) -> None:
        with tempfile.TemporaryDirectory() as folder, time_limit(TIME_LIMIT_S):
            path = Path(folder) / base_name
            path.write_bytes(mutated(content, random.Random(seed)))
            read_strictly(formats[0], SourceFile(path))
            read_to_the_end(SourceFile(path), formats[0].name)
            read_to_the_end(SourceFile(path), None)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SAMPLES if name.endswith(".gz")])
def test_damaged_compression_is_one_clear_error(name: str) -> None:
    content = SAMPLES[name].read_bytes()
    dice = random.Random(name)
    with tempfile.TemporaryDirectory() as folder, time_limit(TIME_LIMIT_S):
        for damage in (cut, random_bytes):
            path = Path(folder) / SAMPLES[name].name
            path.write_bytes(damage(content, dice))
            read_to_the_end(SourceFile(path), None)


def test_the_time_limit_stops_what_is_slow() -> None:
    def endless() -> None:
        while True:
            pass

    with pytest.raises(TooSlow), time_limit(1):
        guarded([SourceFile(Path("x"))], endless)
