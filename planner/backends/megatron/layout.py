"""Megatron's notation for which layers sit where: ``--pipeline-model-parallel-layout``.

``E`` embedding, ``t`` transformer layer, ``m`` MTP layer, ``L`` head and loss, ``|`` between chunks, ``x*n`` and
``(..)*n`` repeat.  Entry k is chunk ``k // PP`` of pipeline rank ``k % PP``
(core/transformer/pipeline_parallel_layer_layout.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from planner.errors import DocumentInvalid
from planner.model.megatron_layout import expanded_layout
from planner.plan.plan import ChunkPlan


def layout_string(chunks: Sequence[ChunkPlan]) -> str:
    """The layout of chunks in model order, equal neighbours grouped."""
    words = [chunk_word(chunk) for chunk in chunks]
    parts = []
    for word, equal in groupby(words[:-1]):
        count = len(list(equal))
        parts.append(f"({word}|)*{count}" if count > 1 else f"{word}|")
    return "".join(parts) + words[-1]


def chunk_word(chunk: ChunkPlan) -> str:
    """One chunk, for example ``Et*3`` or ``t*2mL``."""
    layers = "t" if chunk.num_layers == 1 else f"t*{chunk.num_layers}" if chunk.num_layers else ""
    mtp = "m" if chunk.num_mtp_layers == 1 else f"m*{chunk.num_mtp_layers}" if chunk.num_mtp_layers else ""
    return ("E" if chunk.has_embedding else "") + layers + mtp + ("L" if chunk.has_head else "")


def parse_layout(text: str, where: str) -> tuple[ChunkPlan, ...]:
    """Chunks in model order.  Raises DocumentInvalid for anything that is not a layout."""
    chunks: list[ChunkPlan] = []
    first = 0
    for index, word in enumerate(expanded_layout(text, where)):
        count = word.count("t")
        chunks.append(
            ChunkPlan(
                chunk=index,
                first_layer=first,
                num_layers=count,
                has_embedding="E" in word,
                has_head="L" in word,
                num_mtp_layers=word.count("m"),
            )
        )
        first += count
    return tuple(chunks)


def is_even(chunks: Sequence[ChunkPlan]) -> bool:
    """Whether Megatron would make this split by itself: equal chunks, embedding first, head and MTP last."""
    last = len(chunks) - 1
    return len({chunk.num_layers for chunk in chunks}) == 1 and all(
        chunk.has_embedding == (chunk.chunk == 0)
        and chunk.has_head == (chunk.chunk == last)
        and (chunk.num_mtp_layers == 0 or chunk.chunk == last)
        for chunk in chunks
    )


def even_chunks(num_layers: int, num_chunks: int, num_mtp_layers: int, where: str) -> tuple[ChunkPlan, ...]:
    """Megatron's own split.  Raises DocumentInvalid when the layers do not divide."""
    if num_chunks < 1 or num_layers % num_chunks:
        raise DocumentInvalid(f"{num_layers} layers do not divide into {num_chunks} equal chunks", where=where)
    each = num_layers // num_chunks
    last = num_chunks - 1
    return tuple(
        ChunkPlan(
            chunk=chunk,
            first_layer=chunk * each,
            num_layers=each,
            has_embedding=chunk == 0,
            has_head=chunk == last,
            num_mtp_layers=num_mtp_layers if chunk == last else 0,
        )
        for chunk in range(num_chunks)
    )
