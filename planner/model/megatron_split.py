"""The split of the layers over the chunks of the pipeline, as Megatron-LM's arguments state it.

Facts: Megatron-LM core 0.19, ``megatron/training/arguments.py:894-964``,
``core/transformer/transformer_block.py`` (``get_num_layers_to_build``) and
``core/transformer/pipeline_parallel_layer_layout.py``.

- ``--pipeline-model-parallel-layout`` says everything, the number of chunks a stage too.
- ``--account-for-embedding-in-pipeline-split`` and ``--account-for-loss-in-pipeline-split``: all chunks alike, of one
  layer more each; the embedding takes a layer's place on the first chunk, the loss on the last.
- None of them: all chunks alike; Megatron-LM refuses what does not divide (``uneven``).
- ``--decoder-first-pipeline-num-layers`` and ``--decoder-last-pipeline-num-layers``: layers of all chunks of the first
  and of the last stage; the other stages share the rest evenly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.model.megatron_flags import MegatronFlags
from planner.model.megatron_layout import expanded_layout
from profiles.errors import DocumentInvalid

LAYOUT = "pipeline-model-parallel-layout"
ACCOUNTS = "account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split"
ENDS = "decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers"
STAGES = "num-virtual-stages-per-pipeline-rank", "num-layers-per-virtual-pipeline-stage"


@dataclass(frozen=True, slots=True)
class PipelineSplit:
    """Chunks of each stage, and the layers of every chunk along the model where the arguments say them."""

    vpp: int = 1
    chunk_layers: tuple[int, ...] | None = None


def read_split(flags: MegatronFlags, pp: int) -> PipelineSplit:
    """The split over ``pp`` stages; what does not hold together is a finding."""
    layers = flags.integer("num-layers")
    if flags.has(LAYOUT):
        others = [name for name in (*STAGES, *ACCOUNTS, *ENDS) if flags.has(name)]
        if others:
            flags.refuse(LAYOUT, f"already says what --{others[0]} says", f"leave --{others[0]} out")
        return _of_layout(flags, pp, layers)
    more = tuple(int(flags.has(name)) for name in ACCOUNTS)
    ends = tuple(flags.integer(name) for name in ENDS)
    vpp = _chunks_a_stage(flags, pp, None if layers is None else layers + sum(more))
    if layers is None:
        return PipelineSplit(vpp)
    if not any(more) and ends == (None, None):
        return PipelineSplit(vpp, None if pp == 1 or layers % (pp * vpp) else (layers // (pp * vpp),) * (pp * vpp))
    if any(more) and ends != (None, None):
        name = next(name for name, given in zip(ACCOUNTS, more, strict=True) if given)
        flags.refuse(name, "excludes a number of layers of the first or the last stage", f"leave --{name} out")
        return PipelineSplit(vpp)
    stages = _of_ends(flags, pp, layers, ends) if not any(more) else _alike(flags, pp, layers + sum(more), more)
    if stages is None:
        return PipelineSplit(vpp)
    if any(count % vpp for count in stages):
        flags.refuse(STAGES[0], f"{vpp} chunks must divide the {max(stages)} layers of a stage", "correct it")
        return PipelineSplit(vpp)
    chunks = [stages[chunk % pp] // vpp for chunk in range(pp * vpp)]
    chunks[0] -= more[0]
    chunks[-1] -= more[1]
    return PipelineSplit(vpp, tuple(chunks))


def uneven(layers: int, strategy: Mapping[str, Any], chunk_layers: tuple[int, ...] | None) -> tuple[str, ...]:
    """What Megatron-LM refuses of layers that nothing deals and that do not divide over the chunks."""
    chunks = strategy.get("pp", 1) * strategy.get("vpp", 1)
    if chunk_layers is not None or chunks == 1 or layers % chunks == 0:
        return ()
    return (
        f"layers: {layers} do not divide over {chunks} chunks, so Megatron-LM refuses to start as the script stands"
        f" (--{LAYOUT} would say an uneven split; the best one is predicted)",
    )


def _chunks_a_stage(flags: MegatronFlags, pp: int, layers: int | None) -> int:
    """Chunks of each stage, of ``layers`` with the ends that count as such."""
    vpp, each = flags.integer(STAGES[0]), flags.integer(STAGES[1])
    if vpp is None and each is not None and layers is not None:
        if layers % (pp * each):
            flags.refuse(STAGES[1], f"{each} times {pp} stages must divide {layers} layers", "correct it")
        vpp = max(layers // (pp * each), 1)
    return vpp or 1


def _alike(flags: MegatronFlags, pp: int, layers: int, more: tuple[int, ...]) -> list[int] | None:
    """Layers of every stage where all have as many, with the ends that count as layers."""
    if layers % pp == 0:
        return [layers // pp] * pp
    name = next(name for name, given in zip(ACCOUNTS, more, strict=True) if given)
    flags.refuse(name, f"makes {layers} layers, which {pp} stages must divide", "correct it")
    return None


def _of_ends(flags: MegatronFlags, pp: int, layers: int, ends: tuple[int | None, ...]) -> list[int] | None:
    """Layers of every stage where the first, the last or both are given."""
    given = {stage: count for stage, count in zip((0, pp - 1), ends, strict=True) if count is not None}
    left, others = layers - sum(given.values()), pp - len(given)
    if left < 0 or (left % others if others else left):
        name = ENDS[0] if ends[0] is not None else ENDS[1]
        flags.refuse(name, f"leaves {left} layers, which {others} stages must divide", "correct it")
        return None
    return [given.get(stage, left // max(others, 1)) for stage in range(pp)]


def _of_layout(flags: MegatronFlags, pp: int, layers: int | None) -> PipelineSplit:
    text = flags.text(LAYOUT)
    if text is None:
        return PipelineSplit()
    try:
        words = expanded_layout(text, flags.where)
    except DocumentInvalid as error:
        flags.refuse(LAYOUT, f"is no layout: {error.what}", "write E, t, m, L and | between chunks")
        return PipelineSplit()
    counts = tuple(word.count("t") for word in words)
    if len(words) % pp:
        flags.refuse(LAYOUT, f"has {len(words)} chunks, which {pp} stages must divide", "correct it")
    elif layers is not None and sum(counts) != layers:
        flags.refuse(LAYOUT, f"places {sum(counts)} layers of {layers}", "correct it")
    elif not words[0].startswith("E") or not words[-1].endswith("L") or "".join(words).count("E") != 1:
        flags.refuse(LAYOUT, "does not begin with the embedding (E) or end with the loss (L)", "correct it")
    else:
        return PipelineSplit(len(words) // pp, counts)
    return PipelineSplit(max(len(words) // pp, 1))
