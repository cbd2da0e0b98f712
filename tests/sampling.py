"""A quick run takes a sample of every large matrix of cases; ``make test-all`` takes each of them whole.

A matrix is declared whole at its test, with how many of its cases a quick run takes:

    @pytest.mark.parametrize("seed", drawn(range(1000, 1016), 4, kept=(1003,)))

``kept`` cases are in every sample: those that once found a defect, and those that a test of variety needs.  With
``kind`` the sample has at least one case of each kind.  Which other cases it has depends on the seed of the run:
MESHWRIGHT_TEST_SEED, else the commit, so that a second run of a commit is the same run and another commit tries other
cases.  pytest prints the seed at the start, at the end and with every failure of a module that draws.

Every xdist worker must collect the same tests: ``settle_run`` writes the choice into the environment, which workers
inherit.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from planner.version import __version__

SEED = "MESHWRIGHT_TEST_SEED"
WHOLE = "MESHWRIGHT_TEST_ALL"
REPOSITORY = Path(__file__).parents[1]

Case = TypeVar("Case")

_kept: list[object] = []
"""Every case that some matrix keeps."""


def drawn(
    cases: Sequence[Case],
    number: int,
    *,
    kept: Sequence[Case] = (),
    kind: Callable[[Any], Hashable] | None = None,
) -> list[Case]:
    """The cases of this run in their order: all of them, or ``number`` in a quick run.

    Matrices of the same cases and number draw the same ones, so that tests can share what they compute.
    Raises ``ValueError`` where a kept case is not in the matrix, or ``number`` is too small for those that must be in.
    """
    places = [_place(cases, case) for case in kept]
    _kept.extend(kept)
    if runs_whole() or number >= len(cases):
        return list(cases)
    draw = random.Random(f"{run_seed()} {len(cases)} {number}")
    order = draw.sample(range(len(cases)), len(cases))
    chosen = set(places)
    if kind is not None:
        seen = {kind(cases[place]) for place in chosen}
        for place in order:
            if (each := kind(cases[place])) not in seen:
                seen.add(each)
                chosen.add(place)
    if len(chosen) > number:
        raise ValueError(f"{len(chosen)} cases are kept or the first of their kind, more than {number}")
    chosen.update([place for place in order if place not in chosen][: number - len(chosen)])
    return [cases[place] for place in sorted(chosen)]


def is_kept(value: object) -> bool:
    """Whether a matrix keeps this very case, or a number or name equal to it, in every sample."""
    plain = isinstance(value, int | str) and not isinstance(value, bool)
    return any(value is case or (plain and type(value) is type(case) and value == case) for case in _kept)


def examples(whole: int, quick: int) -> int:
    """How many examples hypothesis tries: all, or fewer of them in a quick run.

    They are derandomised (conftest.py): the quick ones are the first of all, in every run.
    """
    return whole if runs_whole() else min(whole, quick)


def _place(cases: Sequence[Case], case: Case) -> int:
    try:
        return cases.index(case)
    except ValueError:
        raise ValueError(f"{case!r} is kept, but is not in the matrix") from None


def runs_whole() -> bool:
    """Whether this run takes every case."""
    return os.environ.get(WHOLE, "") not in ("", "0")


def run_seed() -> str:
    """What decides which cases a quick run takes."""
    return os.environ.get(SEED) or _commit()


@cache
def _commit() -> str:
    """The commit of the checkout; where there is none (an unpacked sdist), the version."""
    asked = ["git", "-C", str(REPOSITORY), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return __version__


def settle_run(*, all_cases: bool) -> None:
    """Decide once for this process and those that it starts."""
    if all_cases:
        os.environ[WHOLE] = "1"
    os.environ[SEED] = run_seed()


def words() -> str:
    """What a reader needs to repeat this run."""
    if runs_whole():
        return "cases: all of every matrix"
    return f"cases: a sample of large matrices; {SEED}={run_seed()} repeats it, --all-cases takes all"
