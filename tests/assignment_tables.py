"""Random small stage-assignment problems, and their optimum by trying everything: nothing of the solver is used."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from solver.stage_assignment.tables import AssignmentTables, StageChoice

Stage = tuple[int, int, int, int]
"""Start, count, option, policy."""


def random_tables(seed: int, most_pools: int = 3, most_items: int = 5) -> AssignmentTables:
    """Tables with ties, forbidden entries, forbidden spans, few units and limits on the number of stages."""
    draw = np.random.default_rng(seed)
    pools = int(draw.integers(1, most_pools + 1))
    items = int(draw.integers(1, most_items + 1))
    options = int(draw.integers(1, 5))
    policies, positions = int(draw.integers(1, 3)), int(draw.integers(1, items + 1))
    counts = int(draw.integers(1, items + 1))
    starts = np.arange(items + 1)[:, None]
    inside = starts + np.arange(1, counts + 1)[None, :] <= items
    classes = np.arange((items + 1) * counts).reshape(items + 1, counts)
    classes = np.where(inside & (draw.random(classes.shape) > 0.05), classes, -1)
    shape = (options, policies, positions, (items + 1) * counts)
    if draw.random() < 0.4:  # many equal values
        time, late = draw.integers(1, 4, shape).astype(float), draw.integers(0, 4, shape).astype(float)
        hop = draw.integers(0, 3, (options, options)).astype(float)
    else:
        width = np.tile(np.arange(1, counts + 1), items + 1)
        time = width * draw.uniform(0.5, 2.0, (options, 1, 1, 1)) + draw.uniform(0, 0.5, shape)
        late, hop = draw.uniform(0, 3, shape), draw.uniform(0, 1, (options, options))
    time = np.where(draw.random(shape) < draw.choice([0.0, 0.1, 0.4]), np.inf, time)
    fewest = int(draw.integers(1, 3))
    return AssignmentTables(
        pool_units=draw.integers(1, 6, pools),
        option_pool=draw.integers(0, pools, options),
        option_units=draw.integers(1, 4, options),
        time=time,
        late=late,
        span_class=classes,
        hop=hop,
        fewest_stages=fewest,
        most_stages=int(draw.integers(fewest, items + 2)),
    )


def paced(tables: AssignmentTables, seed: int) -> AssignmentTables:
    """The same tables, where a part of a stage's time counts in the peak, and what stands behind it counts too."""
    draw = np.random.default_rng(seed)
    options, _, positions, classes = tables.time.shape
    share = np.sort(draw.uniform(0.3, 1.0, (options, positions, classes)), axis=1)[:, ::-1]
    mix = np.stack([np.linspace(1.0, draw.uniform(0.1, 0.9), positions), *draw.uniform(0, 0.5, (2, positions))], axis=1)
    mix[draw.random(positions) < 0.2] = 0.0
    return replace(tables, pace_share=share, pace_mix=mix)


def every_assignment(tables: AssignmentTables, *, consecutive: bool = False) -> Iterator[tuple[StageChoice, ...]]:
    """All assignments that keep the rules, by plain recursion over lists of stages."""
    items, counts = tables.num_items, tables.span_class.shape[1]
    for stages in range(tables.fewest_stages, min(tables.most_stages, items) + 1):
        for cuts in itertools.combinations(range(1, items), stages - 1):
            edges = (0, *cuts, items)
            spans = list(itertools.pairwise(edges))
            if any(stop - start > counts or tables.span_class[start, stop - start - 1] < 0 for start, stop in spans):
                continue
            for options in itertools.product(range(tables.num_options), repeat=stages):
                used = np.zeros(len(tables.pool_units), dtype=int)
                np.add.at(used, tables.option_pool[list(options)], tables.option_units[list(options)])
                pools = [pool for pool, _ in itertools.groupby(tables.option_pool[list(options)].tolist())]
                if np.any(used > tables.pool_units) or (consecutive and len(pools) != len(set(pools))):
                    continue
                for policies in itertools.product(range(tables.time.shape[1]), repeat=stages):
                    yield tuple(
                        StageChoice(start, stop - start, option, policy)
                        for (start, stop), option, policy in zip(spans, options, policies, strict=True)
                    )


def mist_value(tables: AssignmentTables, stages: tuple[StageChoice, ...], rounds: int, hides: float) -> float:
    """The objective written out a second time; infinite where a stage does not fit."""
    times, paces, lates, hops, each_hop = [], [], [], 0.0, []
    for index, stage in enumerate(stages):
        position = min(len(stages) - index, tables.time.shape[2]) - 1
        at = (stage.option, stage.policy, position, tables.span_class[stage.start, stage.count - 1])
        times.append(float(tables.time[at]))
        share = 1.0 if tables.pace_share is None else float(tables.pace_share[stage.option, position, at[3]])
        paces.append(share * times[-1])
        lates.append(float(tables.late[at]))
        if index:
            each_hop.append(float(tables.hop[stages[index - 1].option, stage.option]))
            hops += each_hop[-1]
    if float("inf") in times:
        return float("inf")
    late = max(max(0.0, late - hides * sum(times[:index])) for index, late in enumerate(lates))
    if tables.pace_mix is not None:
        for index, time in enumerate(times):
            own, behind, crossed = tables.pace_mix[min(len(stages) - index, tables.time.shape[2]) - 1]
            paces.append(float(own * time + behind * sum(times[index + 1 :]) + crossed * sum(each_hop[index:])))
    return (rounds - 1) * max(paces) + sum(times) + hops + late
