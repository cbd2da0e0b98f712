"""The memory of a measured run: what the worst rank needs, and the figure that its source would print."""

from __future__ import annotations

from planner.evidence.runs.flavours import Flavour
from planner.evidence.runs.mapped_run import MappedRun
from planner.evidence.runs.resident import resident_bytes
from planner.evidence.runs.whole_layer_memory import whole_layer_peak_bytes
from planner.predict.candidate import Candidate
from planner.predict.cost.hardware import COMMUNICATOR_BYTES, FRAMEWORK_BYTES, WORKSPACE_BYTES
from planner.strategy.strategy import Strategy

RESERVED_PER_ALLOCATED = 1.10
"""Memory that PyTorch's caching allocator holds for each byte in use at the peak: rounding, segments and blocks that
fit no later tensor.  Read off five torchtitan runs of the fit part (1.06-1.16; a sixth, of another cluster, is far
off).  Fit part, together with what the back-end keeps: mean error of reserved memory 74 % -> 10 %; held part
124 % -> 28 %.  A plan's own memory is what is allocated."""


def device_bytes(mapped: MappedRun, candidate: Candidate) -> float:
    """Memory of the worst rank, with what no allocator counts."""
    if not runs_whole_layers(mapped):
        return candidate.peak_memory_bytes
    return _whole_layers_bytes(mapped) + _outside_allocator_bytes(mapped.strategy)


def reported_bytes(candidate: Candidate, mapped: MappedRun) -> float:
    """The figure that the source would print: its rank, and without what its counter does not see."""
    flavour, outside = mapped.flavour, _outside_allocator_bytes(mapped.strategy)
    if runs_whole_layers(mapped):
        return _counted(_whole_layers_bytes(mapped), outside, flavour)
    if flavour.memory == "resident":
        totals = resident_bytes(candidate, mapped.model, mapped.workload, mapped.traits)
    elif flavour.memory == "allocated":
        totals = [stage.total_bytes for stage in candidate.stages]
    else:
        totals = _with_step_blocks(candidate, flavour)
    total = {"worst": max(totals), "first": totals[0], "last": totals[-1]}[flavour.memory_rank]
    if flavour.memory == "resident":
        return total
    return _counted(total - outside, outside, flavour)


def _with_step_blocks(candidate: Candidate, flavour: Flavour) -> list[float]:
    """Bytes of every stage with the optimizer step's blocks, which the pool holds beside the activations."""
    strategy = candidate.strategy
    dense = strategy.dp_shard * strategy.cp if strategy.zero_stage else 1
    expert = max(1, strategy.tp * dense // (strategy.etp * strategy.ep)) if strategy.zero_stage else 1
    return [
        stage.total_bytes + flavour.step_bytes * (stage.dense_parameters / dense + stage.expert_parameters / expert)
        for stage in candidate.stages
    ]


def runs_whole_layers(mapped: MappedRun) -> bool:
    """Whether PyTorch runs this run's layers whole on each device."""
    strategy = mapped.strategy
    return mapped.flavour.whole_layers and strategy.tp == strategy.pp == 1 and strategy.recompute != "selective"


def _counted(allocated: float, outside: float, flavour: Flavour) -> float:
    """What the source's counter shows of tensors in use."""
    if flavour.memory == "allocated":
        return allocated
    reserved = allocated * RESERVED_PER_ALLOCATED
    return reserved if flavour.memory == "reserved" else reserved + outside


def _outside_allocator_bytes(strategy: Strategy) -> float:
    """Device context and communicators: nvidia-smi counts them, torch's allocator does not; workspaces it does."""
    edp = strategy.tp * strategy.cp * strategy.dp // (strategy.etp * strategy.ep)
    axes = (strategy.tp, strategy.cp, strategy.dp, strategy.pp, strategy.ep, strategy.ep * (edp > 1))
    return float(FRAMEWORK_BYTES - WORKSPACE_BYTES + COMMUNICATOR_BYTES * sum(size > 1 for size in axes))


def _whole_layers_bytes(mapped: MappedRun) -> float:
    return whole_layer_peak_bytes(mapped.row, mapped.model, mapped.strategy, mapped.software, mapped.workload.trained)
