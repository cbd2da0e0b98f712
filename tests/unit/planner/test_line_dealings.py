"""What every dealing of a line comes to at least: against going through all of them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import numpy as np
import pytest

from planner.search.line_dealings import Line

LAYER_COLUMNS = 8


def random_line(draw: random.Random, rows: int = 3) -> Line:
    """Layers of two kinds on a few stages, of which memory holds some spans and not others."""
    stages, layers, kinds, moments = draw.randint(1, 4), draw.randint(4, 8), 2, draw.randint(1, 2)

    def columns(count: int) -> np.ndarray:
        return np.array([[draw.uniform(0.1, 1.0) for _ in range(count)] for _ in range(rows)])

    tables = columns(LAYER_COLUMNS * kinds)
    # What relief frees is a part of what a layer keeps.
    tables[:, 4 * kinds : 5 * kinds] = 0.5 * tables[:, 3 * kinds : 4 * kinds]
    tables[:, 7 * kinds :] *= 0.2  # frozen weights: a part of what fills the memory
    times = np.concatenate([2.0 + columns(1), columns(stages)], axis=1)
    least = np.array([draw.randint(0, 1) for _ in range(stages)])
    sequence = np.array([draw.randrange(kinds) for _ in range(layers)])
    limit_bytes = draw.uniform(1.0, 3.0) * layers / stages
    return Line(sequence, least, limit_bytes, tables, times, columns(3 * stages), columns(moments * (2 + 3 * stages)))


def dealings(line: Line, row: int, relieved: int, longest: int) -> Iterator[tuple[float, float, float, float]]:
    """The four values of each dealing that fits."""
    stages, layers = len(line.least), len(line.kinds)
    columns = line.layers[row].reshape(LAYER_COLUMNS, -1)[:, line.kinds]
    ends = line.ends[row].reshape(3, stages)
    for counts in itertools.product(*(range(few, longest + 1) for few in line.least.tolist())):
        if sum(counts) != layers:
            continue
        rests, denses, experts, reliefs = [], [], [], []
        fits = True
        for stage, count in enumerate(counts):
            start = sum(counts[:stage])
            again = min(count, relieved)
            layer_s, forward_s, _, saved, _, dense, expert, frozen = columns[:, start : start + count].sum(axis=1)
            relief_s, saving = columns[[2, 4], start : start + again].sum(axis=1)
            for moment in line.moments[row].reshape(-1, 2 + 3 * stages):
                flight, fixed, replay = moment[2:].reshape(3, stages)[:, stage]
                held = (
                    dense * moment[0]
                    + expert * moment[1]
                    + frozen
                    + flight * (saved - saving)
                    + fixed
                    + (again > 0) * replay
                )
                fits = fits and held <= line.limit_bytes
            rests.append(line.times[row, 0] * (layer_s + relief_s) - line.times[row, 1 + stage] * forward_s)
            denses.append(dense)
            experts.append(expert)
            reliefs.append(relief_s)
        if fits:
            most = [
                float((np.array(values) + end).max())
                for values, end in zip((rests, denses, experts), ends, strict=True)
            ]
            yield most[0], most[1], most[2], sum(reliefs)


@pytest.mark.parametrize("seed", range(60))
def test_they_are_the_least_of_all_dealings(seed: int) -> None:
    draw = random.Random(seed)
    line = random_line(draw)
    pairs = [(row, draw.randint(0, 4), draw.randint(1, len(line.kinds))) for row in (0, 1, 2, 1)]
    found = line.least_values(*np.array(pairs, dtype=np.int64).T)
    for pair, values in zip(pairs, found, strict=True):
        every = list(dealings(line, *pair))
        least = np.array(every).min(axis=0) if every else np.full(4, np.inf)
        assert values == pytest.approx(least, rel=1e-12)


def test_some_lines_fit_and_some_do_not() -> None:
    lines = [random_line(random.Random(seed)) for seed in range(60)]
    none, many = np.array([0]), np.array([4])
    fit = [bool(np.isfinite(line.least_values(none, none, many)).all()) for line in lines]
    relieved = [bool(np.isfinite(line.least_values(none, many, many)).all()) for line in lines]
    assert 5 < sum(fit) < 55
    assert fit != relieved
