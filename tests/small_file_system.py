"""A full disk for tests: a file system in memory of a few mebibytes, and a file that fills it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BLOCK_BYTES = 4096


class CannotMount(Exception):
    """This process may not mount anything; the message says why."""


@contextmanager
def small_file_system(folder: Path, size_bytes: int) -> Iterator[Path]:
    """``folder`` holds so many bytes inside the block.  Raises CannotMount."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CannotMount(f"there is no mount command: {error}") from error
    if mounted.returncode != 0:
        raise CannotMount(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """A file that takes every free block; remove it to make space again."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(os.urandom(BLOCK_BYTES))
            except OSError:
                return ballast
