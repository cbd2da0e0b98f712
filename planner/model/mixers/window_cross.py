"""Cross-attention of learned queries to a window of a tower's frames (Q-Former, arXiv 2301.12597, section 3.1).

A window of ``window`` frames gives keys and values, of ``source_width`` features each, to its own ``queries``.  For one
query: ``window / queries`` frames are projected, and ``window`` are seen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field

from planner.model.mixers.kinds import EqualHeads
from planner.model.mixers.parts import projection
from planner.model.operator import Operator


class WindowCrossSpec(EqualHeads):
    """Cross-attention of one layer kind, with biases on every projection."""

    kind: Literal["window_cross"] = "window_cross"
    source_width: int = Field(gt=0)
    window: int = Field(gt=0, description="frames that each query sees")
    queries: int = Field(gt=0, description="queries of one window")


def window_cross_operators(mixer: WindowCrossSpec, hidden_size: int, *, input_from: str) -> tuple[Operator, ...]:
    """From the queries and the frames to the output projection."""
    width = mixer.num_heads * mixer.head_dim
    frames = mixer.window / mixer.queries
    keys = projection("cross_key_values", mixer.source_width, 2 * width, "column", bias=True, keeps_input=False)
    # Its rows are frames: widths are those of one query's share of them.
    share = round(frames * mixer.source_width), round(frames * 2 * width)
    keys = replace(keys, tokens_per_token=frames, read_width=share[0], write_width=share[1])
    core = Operator(
        name="attention_core",
        op_class="attention",
        module="attention_core",
        shard="heads",
        read_width=width + share[1],
        write_width=width,
        num_heads=mixer.num_heads,
        num_kv_heads=mixer.num_heads,
        qk_dim=mixer.head_dim,
        v_dim=mixer.head_dim,
        causal=False,
        window=mixer.window,
        saved_width=width + share[1],
        saved_shard="heads",
        saved_from="cross_key_values",
    )
    return (
        projection("cross_queries", hidden_size, width, "column", bias=True, saved_from=input_from),
        keys,
        core,
        projection("output_projection", width, hidden_size, "row", bias=True, saved_from="attention_core"),
    )
