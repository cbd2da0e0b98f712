"""Layers that do nothing: how DualPipeV, which halves a rank's share of equal layers, runs chunks of unequal ones.

``--noop-layers`` names layers of ``--num-layers`` that are left out when they are built (MindSpeed 028de58c
features_manager/pipeline_parallel/noop_layers.py, core/pipeline_parallel/noop_layers/transformer.py); patterns of
layers count them.  They stand behind the layers of each chunk that has fewer than the fullest one.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.backends.megatron.arguments import ArgumentReader, Words
from planner.backends.megatron.model_flags import list_pattern
from planner.errors import DocumentInvalid
from planner.plan.plan import ChunkPlan

NOOP_LAYERS = "--noop-layers"


def noop_places(counts: Sequence[int]) -> tuple[int, ...]:
    """Numbers of the empty layers where chunks of ``counts`` layers are filled up to the fullest one."""
    each = max(counts)
    return tuple(chunk * each + place for chunk, count in enumerate(counts) for place in range(count, each))


def filled_up(flags: dict[str, Words], counts: Sequence[int], with_experts: Sequence[bool]) -> dict[str, Words]:
    """Flags of a model whose chunks are filled up; ``with_experts``: of every layer that does something."""
    places = noop_places(counts)
    if not places:
        return flags
    total = max(counts) * len(counts)
    found = {**flags, "--num-layers": (str(total),), NOOP_LAYERS: (",".join(map(str, places)),)}
    if "--moe-layer-freq" in flags:
        real = iter(with_experts)
        found["--moe-layer-freq"] = (list_pattern([layer in places or next(real) for layer in range(total)]),)
    return found


def filled_chunks(reader: ArgumentReader, layers: int, count: int, mtp: int) -> tuple[ChunkPlan, ...]:
    """Chunks of ``count`` times as many layers, without those that do nothing.  Raises DocumentInvalid."""
    where = reader.at(NOOP_LAYERS)
    words = reader.word(NOOP_LAYERS, "").split(",")
    places = {int(word) for word in words if word.isdecimal()}
    if len(places) != len(words) or max(places) >= layers or layers % count:
        raise DocumentInvalid(f"{','.join(words)[:60]} are no layers of {count} equal chunks of {layers}", where=where)
    each, chunks, first = layers // count, list[ChunkPlan](), 0
    for chunk in range(count):
        real = sum(place not in places for place in range(chunk * each, (chunk + 1) * each))
        last = chunk == count - 1
        chunks.append(
            ChunkPlan(
                chunk=chunk,
                first_layer=first,
                num_layers=real,
                has_embedding=chunk == 0,
                has_head=last,
                num_mtp_layers=mtp if last else 0,
            )
        )
        first += real
    if tuple(sorted(places)) != noop_places([chunk.num_layers for chunk in chunks]):
        raise DocumentInvalid("plans have empty layers behind the others of a chunk only", where=where)
    return tuple(chunks)
