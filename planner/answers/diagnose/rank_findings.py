"""What the traces of several ranks show: a slow rank, a slow group of an axis, uneven experts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median, median_low

from planner.answers.diagnose.attribution import GroupCalls, TracedRank, matched_calls
from planner.answers.diagnose.axes import PlanAxes
from planner.answers.diagnose.document import RunFinding
from planner.plan.plan import Plan
from planner.predict.hottest_share import hottest_share
from planner.question.routing import load_of

WORTH_TELLING = 0.03
"""Part of a step below which a difference is not told."""
SLOWER = 0.10
"""A rank is slow when its own time is longer than that of its peers by this, in the mean and in nearly every step."""
NEARLY_EVERY = 0.8
SLOW_GROUP = 1.3
UNEVEN = 1.2
"""Measured load of the hottest rank over the mean, over what the plan expects."""


@dataclass(frozen=True, slots=True)
class ExpertSections:
    """The work between the exchanges of experts whose sizes differ between ranks."""

    hottest: float
    """Bytes of the hottest rank over the mean, all exchanges together."""
    rank: int
    cost_s: float
    """What the hottest rank takes longer than at even load, a step."""
    more_s: dict[int, float]
    """What each rank works on its experts longer than at even load, a step; negative where they get less."""


def rank_findings(plan: Plan, ranks: Sequence[TracedRank], axes: PlanAxes) -> list[RunFinding]:
    """Everything that needs more than one rank to be seen."""
    traced = [each for each in ranks if each.trace.activities]
    if len(traced) < 2:
        return []
    calls = matched_calls(traced, axes)
    sections = _expert_sections(traced, calls)
    found = [*_uneven(plan, traced, sections), *_slow_ranks(plan, traced, sections), *_slow_groups(traced, calls)]
    step_s = fmean(parts.step_s for each in traced for parts in each.steps)
    return [each for each in found if each.seconds is not None and each.seconds >= WORTH_TELLING * step_s]


def _slow_ranks(plan: Plan, ranks: Sequence[TracedRank], sections: ExpertSections | None) -> Iterator[RunFinding]:
    """The ranks whose own time is longer than that of the others of their stage; what uneven experts add apart."""
    by_stage: dict[int | None, list[TracedRank]] = defaultdict(list)
    for each in ranks:
        by_stage[each.stage].append(each)
    for peers in by_stage.values():
        if len(peers) < 2:
            continue
        work = sections.more_s if sections is not None else {}
        own = {each.rank: [parts.own_s - work.get(each.rank, 0.0) for parts in each.steps] for each in peers}
        means = {rank: fmean(times) for rank, times in own.items()}
        for each in peers:
            others = [rank for rank in means if rank != each.rank]
            typical_s = median_low([means[rank] for rank in others])
            more_s = means[each.rank] - typical_s
            steps = list(zip(own[each.rank], *(own[rank] for rank in others), strict=False))
            slow = sum(first > (1 + SLOWER / 2) * median_low(rest) for first, *rest in steps)
            if more_s > SLOWER * typical_s and slow >= NEARLY_EVERY * len(steps):
                node = each.rank // plan.problem.cluster.pools[0].devices_per_node
                yield RunFinding(
                    kind="slow-rank",
                    what=f"Rank {each.rank} takes {means[each.rank] / typical_s - 1:.0%} longer for its own work than"
                    f" its peers ({_ms(means[each.rank])} against {_ms(typical_s)} a step); all others wait for it",
                    seconds=more_s,
                    evidence=(f"{each.trace.file_name}: rank {each.rank}, {slow} of {len(steps)} steps",),
                    advice=f"Look at clocks, temperature, other processes and the loader of rank {each.rank} (node"
                    f" {node}); if it stays slow, leave the node out: `meshwright replan --lost-nodes`",
                )


def _expert_sections(ranks: Sequence[TracedRank], calls: GroupCalls) -> ExpertSections | None:
    """Exchanges to which ranks bring different sizes follow the experts' work; None where there are none."""
    num_steps = min(len(each.steps) for each in ranks)
    work, sizes, cost_s = defaultdict[int, float](float), defaultdict[int, int](int), 0.0
    for (axis, _, operation), together in calls.items():
        if axis != "ep" or operation != "all_to_all":
            continue
        for before, call in pairwise(together):
            bytes_of = {rank: each.activity.size_bytes for rank, each in call.items()}
            if len(set(bytes_of.values())) == 1 or any(
                call[rank].activity.start_ns < before[rank].activity.end_ns for rank in call
            ):
                continue
            spans = {rank: (call[rank].activity.start_ns - before[rank].activity.end_ns) * 1e-9 for rank in call}
            hot = max(bytes_of, key=lambda rank: bytes_of[rank])
            even = fmean(bytes_of.values())
            cost_s += spans[hot] * (1.0 - even / bytes_of[hot])
            for rank in call:
                work[rank] += spans[rank] * (1.0 - even / bytes_of[rank]) if bytes_of[rank] else 0.0
                sizes[rank] += bytes_of[rank]
    if not sizes:
        return None
    hottest = max(sizes, key=lambda rank: sizes[rank])
    return ExpertSections(
        hottest=sizes[hottest] / fmean(sizes.values()),
        rank=hottest,
        cost_s=cost_s / num_steps,
        more_s={rank: value / num_steps for rank, value in work.items()},
    )


def _uneven(plan: Plan, ranks: Sequence[TracedRank], sections: ExpertSections | None) -> Iterator[RunFinding]:
    model, strategy = plan.problem.model, plan.chosen()
    if sections is None or strategy.ep == 1:
        return
    import numpy as np

    expected = float(
        hottest_share(load_of(plan.problem.workload.routing, model), model.num_experts, np.array([float(strategy.ep)]))[
            0
        ]
    )
    if sections.hottest <= UNEVEN * expected:
        return
    trace = next(each.trace for each in ranks if each.rank == sections.rank)
    yield RunFinding(
        kind="uneven-experts",
        what=f"The experts of rank {sections.rank} get {sections.hottest:.2f} times the mean of their group; the plan"
        f" expects {expected:.2f}",
        seconds=sections.cost_s,
        evidence=(f"{trace.file_name}: sizes of what rank {sections.rank} sends back in the exchanges of experts",),
        advice="Raise the weight of the load-balancing loss or the router's bias updates, or plan with the load as it"
        " is: `meshwright plan --routing`",
    )


def _slow_groups(ranks: Sequence[TracedRank], calls: GroupCalls) -> Iterator[RunFinding]:
    """Groups of one axis whose transfers take longer than those of the other groups, for equal sizes."""
    trace_of = {each.rank: each.trace for each in ranks}
    num_steps = min(len(each.steps) for each in ranks)
    times: dict[tuple[str, str, int], dict[tuple[int, ...], list[float]]] = defaultdict(lambda: defaultdict(list))
    for (axis, group, operation), together in calls.items():
        for call in together:
            size = max(each.activity.size_bytes for each in call.values())
            times[axis, operation, size][group].append(min(each.seconds for each in call.values()))
    slow: dict[tuple[str, tuple[int, ...]], list[tuple[float, float, int]]] = defaultdict(list)
    for (axis, _, _), of_group in times.items():
        if len(of_group) < 2:
            continue
        middle = {group: median(values) for group, values in of_group.items()}
        for group, typical_s in middle.items():
            others_s = median_low([value for name, value in middle.items() if name != group])
            slow[axis, group].append((typical_s, others_s, len(of_group[group])))
    for (axis, group), found in slow.items():
        mine_s, others_s = (sum(each[at] * each[2] for each in found) for at in (0, 1))
        if mine_s > SLOW_GROUP * others_s:
            yield RunFinding(
                kind="slow-link",
                what=f"Collectives of the {axis} group of ranks {', '.join(map(str, group))} take"
                f" {mine_s / others_s:.2f} times as long as those of the other {axis} groups, for equal sizes",
                seconds=(mine_s - others_s) / num_steps,
                evidence=tuple(f"{trace_of[rank].file_name}: rank {rank}" for rank in group if rank in trace_of),
                advice="Test the links between these ranks with nccl-tests; look at link errors, the NIC that they use,"
                " and the other traffic on its switch",
            )


def _ms(value_s: float) -> str:
    return f"{value_s * 1e3:,.1f} ms"
