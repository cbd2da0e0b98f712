"""The seconds that adapters and quantised weights add to a step, beside what the frozen model costs.

Both are bound by memory traffic on the device, or by launches on the host::

    device  passes * 2 T h bytes for each adapted matmul and pass over it
            + (stored + 2) bytes a weight of a layer, read and written again for each pass (quantised weights)
    host    launches of the adapters' kernels and of one dequantisation a matmul

A pass: forward, replay (full recompute), backward.  A step takes the device's extra seconds where the device is the
slower side, and the host's where the host is: ``max(device - waiting, host if waiting)``, ``waiting`` being the
seconds for which the device already waits for the host.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.evidence.runs.adapters import KERNELS, adapters_of, passes_of
from planner.evidence.runs.software import SoftwareDescription
from planner.evidence.runs.truth import TruthRow
from planner.evidence.runs.whole_layer_memory import STORED_BYTES
from planner.model.parameters import embedding_parameters, head_parameters, total_parameters
from planner.model.spec import ModelSpec
from planner.strategy.strategy import Strategy

STREAM_FRACTION = 0.85
"""Part of the data sheet's memory rate that streaming kernels reach (as the cost model takes for point-wise work)."""
QUANTISED_MATRICES = 7.0
"""Weight matrices of a gated layer, each dequantised by a kernel of its own."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Of the device and its host: bytes and launches a second, and seconds for which the device waits for its host."""

    memory_bytes_per_s: float
    launch_s: float
    waiting_s: float


def adapter_seconds(
    row: TruthRow,
    model: ModelSpec,
    strategy: Strategy,
    said: SoftwareDescription,
    pace: Pace,
) -> float:
    """Seconds of a step; 0 for a run whose weights all learn."""
    if not said.adapters:
        return 0.0
    replays = 1.0 if strategy.recompute == "full" else 0.0
    passes = 2.0 + replays
    adapters = adapters_of(row.notes, model)
    split = strategy.tp * strategy.pp * strategy.cp
    tokens = strategy.micro_batch_size * float(row.sequence_length or 0)
    moved = passes_of(said) * 2.0 * tokens * model.hidden_size * adapters.count * passes / split
    kernels = adapters.count * (KERNELS[0] * (1.0 + replays) + KERNELS[1])
    if said.training == "qlora":
        in_layers = total_parameters(model) - embedding_parameters(model) - head_parameters(model)
        moved += (STORED_BYTES[said.quantization or "nf4-dq"] + 2.0) * in_layers * passes / (strategy.tp * strategy.pp)
        kernels += QUANTISED_MATRICES * model.num_layers * passes
    device_s = strategy.num_microbatches * moved / (STREAM_FRACTION * pace.memory_bytes_per_s)
    host_s = strategy.num_microbatches * kernels / strategy.pp * pace.launch_s
    return max(device_s - pace.waiting_s, host_s if pace.waiting_s > 0 else 0.0, 0.0)
