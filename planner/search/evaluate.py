"""The cost of one fully decided configuration: strategy + split -> ``Candidate``.

step = makespan(schedule; chunk times)                       ``planner.predict.schedule.run``, simulated
     + tail of the stage with the most dense parameters      ``planner.predict.cost.data_parallel``
     + tail of the stage with the most expert parameters

Every number of a plan comes from here; the exact inner search minimises the same sum.
"""

from __future__ import annotations

import numpy as np

from planner.predict.candidate import Candidate, Split, StageBill
from planner.predict.cost.data_parallel import optimizer_s
from planner.predict.memory.moments import Moment
from planner.predict.schedule.paths import ChunkTimes
from planner.predict.schedule.run import PipelineRun, run_pipeline
from planner.search.chunk_times import HOST_FORWARD_SHARE, chunk_times
from planner.search.row_context import RowContext, without_relief
from solver.arrays import Array

Span = tuple[int, int]


def evaluate_split(context: RowContext, split: Split) -> Candidate:
    """Candidate of one strategy with its layers and relief dealt as ``split`` says.

    A relief that no stage needs is no part of it, and neither is the room that it would keep free for replays.
    """
    context = _as_dealt(context, split)
    strategy, cost = context.strategy, context.cost
    spans = _spans(context, split)
    bills = tuple(stage_bill(context, stage, *spans[stage]) for stage in range(strategy.pp))
    times = chunk_times(context, np.array(split.chunk_layers), np.array(split.relieved))
    makespan = simulated(context, times).makespan_s
    dense = np.array([max(bill.dense_parameters for bill in bills)])
    expert = np.array([max(bill.expert_parameters for bill in bills)])
    tail_s = _tail_s(context, dense, expert)
    busiest = max(range(strategy.pp), key=lambda stage: bills[stage].total_s)
    breakdown = _busiest_terms(context, busiest, spans[busiest])
    no_hop = simulated(context, times, 0.0).makespan_s
    optimizer = _optimizer_s(context, dense, expert)
    # Without a pipeline there is nothing to fill; the difference would be what rounding left.
    straight_s = strategy.num_microbatches * bills[busiest].total_s
    breakdown["pp_bubble"] = no_hop - straight_s if strategy.pp > 1 else 0.0
    breakdown["pp_send"] = makespan - no_hop
    breakdown["dp"] += tail_s - optimizer
    breakdown["optimizer"] = optimizer
    return Candidate(
        strategy=strategy,
        split=split,
        stages=bills,
        step_time_s=makespan + tail_s,
        makespan_s=makespan,
        hop_s=float(cost.hop_s[0]),
        chunks=times,
        breakdown_s=breakdown,
    )


def run_split(context: RowContext, split: Split) -> tuple[float, PipelineRun]:
    """The step time of a split's candidate, to the last bit, and the run that gave it, without the rest."""
    context = _as_dealt(context, split)
    run = simulated(context, chunk_times(context, np.array(split.chunk_layers), np.array(split.relieved)))
    parameters = [_parameters(context, stage, held) for stage, (held, _) in enumerate(_spans(context, split))]
    dense, expert = (np.array([max(each)]) for each in zip(*parameters, strict=True))
    return run.makespan_s + _tail_s(context, dense, expert), run


def _as_dealt(context: RowContext, split: Split) -> RowContext:
    """The strategy without the relief that no stage needs."""
    return without_relief(context) if context.row.relief[0] and not any(split.relieved) else context


def _tail_s(context: RowContext, dense: Array, expert: Array) -> float:
    """What follows the pipeline, with so many parameters on the fullest stages: [1] each."""
    tails = context.costs.tail_parts_s(context.cost, dense, expert)
    return float(tails[0][0] + tails[1][0])


def chunk_starts(chunk_layers: tuple[int, ...]) -> tuple[int, ...]:
    """First layer of each chunk."""
    return tuple(int(start) for start in np.concatenate([[0], np.cumsum(chunk_layers)[:-1]]))


def _spans(context: RowContext, split: Split) -> list[tuple[list[Span], list[Span]]]:
    """Layer ranges of each stage's chunks, and the relieved part of each."""
    spans: list[tuple[list[Span], list[Span]]] = [([], []) for _ in range(context.strategy.pp)]
    for chunk, (start, count) in enumerate(zip(chunk_starts(split.chunk_layers), split.chunk_layers, strict=True)):
        stage = context.strategy.chunk_stage(chunk)
        held, relieved = spans[stage]
        held.append((start, start + count))
        relieved.append((start, start + min(split.relieved[stage], count)))
    return spans


def _parameters(context: RowContext, stage: int, spans: list[Span]) -> tuple[float, float]:
    """Dense and expert parameters of one stage that holds some layer ranges."""
    cost, prefix, first, last = context.cost, context.prefix, stage == 0, stage == context.head_stage
    dense = _over(prefix.dense, spans) + first * float(cost.embedding_dense[0]) + last * float(cost.head_dense[0])
    return dense, _over(prefix.expert, spans) + last * float(cost.head_expert[0])


def _over(column: Array, spans: list[Span]) -> float:
    return float(sum(column[stop] - column[start] for start, stop in spans))


def simulated(context: RowContext, times: ChunkTimes, hop_s: float | None = None) -> PipelineRun:
    """The pipeline of some chunk times, run; ``hop_s`` None: as long as the strategy's hop takes."""
    hop_s = float(context.cost.hop_s[0]) if hop_s is None else hop_s
    return run_pipeline(context.strategy.schedule, context.strategy.order_sizes, times, hop_s)


def stage_bill(context: RowContext, stage: int, spans: list[Span], relieved: list[Span]) -> StageBill:
    """Time and memory of one stage that holds some layer ranges, of which parts are relieved."""
    cost, prefix, key = context.cost, context.prefix, context.key
    first, last = stage == 0, stage == context.head_stage
    ends = [end for end, here in ((context.table.embedding, first), (context.table.head, last)) if here]
    dense, expert = _parameters(context, stage, spans)
    states, host_s = (cost.dense_state, cost.expert_state), float(cost.stage_host_s[0] + cost.regather_s[0])
    flight = float(context.memory.passes.in_flight[0, stage])
    saved = _over(prefix.saved_bytes, spans) - _over(prefix.saving_bytes, relieved)
    again = any(stop > start for start, stop in relieved)
    frozen = _over(prefix.frozen_bytes, spans)
    frozen += first * float(cost.frozen.embedding[0]) + last * float(cost.frozen.head[0])
    moments = _over(prefix.moments_bytes, spans)
    moments += first * float(cost.frozen.moments_embedding[0]) + last * float(cost.frozen.moments_head[0])
    held = max(
        (
            _held(moment, stage, (dense, expert), (saved, frozen, moments), again=again)
            for moment in context.memory.moments
        ),
        key=lambda parts: sum(parts.values()),
    )
    offloaded = flight * _over(prefix.saving_bytes, relieved) if context.strategy.activation_offload else 0.0
    return StageBill(
        forward_s=_over(prefix.forward_s, spans)
        + HOST_FORWARD_SHARE * host_s
        + first * float(cost.embedding_forward_s[0])
        + last * float(cost.head_forward_s[0]),
        backward_s=_over(prefix.backward_s, spans)
        + _over(prefix.relief_s, relieved)
        + (1.0 - HOST_FORWARD_SHARE) * host_s
        + first * float(cost.embedding_backward_s[0])
        + last * float(cost.head_backward_s[0]),
        weight_gradient_s=_over(prefix.weight_gradient_s, spans)
        + sum(float(end.weight_gradient_s[key]) for end in ends),
        dense_parameters=dense,
        expert_parameters=expert,
        **held,
        host_optimizer_bytes=dense * float(states[0].host[0]) + expert * float(states[1].host[0]),
        host_activations_bytes=offloaded,
    )


def _held(
    moment: Moment, stage: int, parameters: tuple[float, float], layers: tuple[float, float, float], *, again: bool
) -> dict[str, float]:
    """What a stage holds at one moment, by kind.

    ``layers``: kept activations of a micro-batch, frozen bytes, and what of these is further moments of the optimizer;
    ``again``: layers are replayed.
    """
    saved, frozen, moments = layers
    states = moment.dense_state, moment.expert_state

    def of_states(name: str) -> float:
        return sum(count * float(getattr(state, name)[0]) for count, state in zip(parameters, states, strict=True))

    replays = float(moment.replay_bytes[0, stage]) if again else 0.0
    return {
        "weights_bytes": of_states("weights") + (frozen - moments),
        "gradients_bytes": of_states("gradients"),
        "optimizer_bytes": of_states("optimizer") + moments,
        "activations_bytes": float(moment.in_flight[0, stage]) * saved + float(moment.kept_bytes[0, stage]),
        "buffers_bytes": float(moment.buffer_bytes[0, stage]) + replays + of_states("passing"),
    }


def _busiest_terms(context: RowContext, stage: int, spans: tuple[list[Span], list[Span]]) -> dict[str, float]:
    """Seconds of the busiest stage over all micro-batches, by cause; with bubble, hops and tails they make the step."""
    held, relieved = spans
    prefix, key, table = context.prefix, context.key, context.table
    microbatches = context.strategy.num_microbatches
    ends = [end for end, here in ((table.embedding, stage == 0), (table.head, stage == context.head_stage)) if here]
    parts = {
        name: _over(getattr(prefix, f"{name}_s"), held) + sum(float(getattr(end, f"{name}_s")[key]) for end in ends)
        for name in ("compute", "tp", "cp", "ep")
    }
    relief = _over(prefix.relief_s, relieved)
    total = _over(prefix.forward_s, held) + _over(prefix.backward_s, held) + float(context.ends_s[stage])
    terms = {name: microbatches * seconds for name, seconds in parts.items()}
    offload = context.strategy.activation_offload
    terms["recompute"] = 0.0 if offload else microbatches * relief
    terms["offload"] = microbatches * relief if offload else 0.0
    host_s = float(context.cost.stage_host_s[0]) + _over(prefix.host_s, held)
    host_s += sum(float(end.host_s[key]) for end in ends)
    # What is left of the stage's time is ZeRO-2/3 traffic, which data parallelism causes; without it, it is rounding.
    # Experts that tensor parallelism does not split are sharded over its ranks, too.
    has_experts = float(prefix.expert[-1]) > 0
    alone = context.strategy.dp * context.strategy.cp == 1 and not (has_experts and context.strategy.edp > 1)
    terms["dp"] = 0.0 if alone else max(0.0, microbatches * (total - host_s - sum(parts.values())))
    if host_s > 0:
        terms["host"] = microbatches * host_s
    return terms


def _optimizer_s(context: RowContext, dense: Array, expert: Array) -> float:
    workload, hardware = context.costs.workload, context.costs.hardware
    seconds = 0.0
    for parameters, parallel in ((dense, context.cost.dense_parallel), (expert, context.cost.expert_parallel)):
        if parameters[0] > 0:
            seconds += float(optimizer_s(parameters, parallel, workload, hardware)[0])
    return seconds
