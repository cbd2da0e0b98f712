"""The shapes that are measured when nobody names a model, and their order.

``full``: 25 weight shapes that span today's models at all tensor-parallel degrees, with 21 row counts
(1, 2, 4 ... 128, then multiples of 128 to 32768), so that m brackets in steps of at most 2 and an unseen (n, k) has
neighbours within 2 octaves; attention to 32768 tokens; memory-bound operators at sizes past every cache.
``small``: a handful of each, seconds on a laptop's CPU.

``value`` orders everything: the widest spread first, then ever finer, so that a time budget thins the grid evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from profiles.measure.case import WantedShape

GridName = Literal["small", "full", "none"]

ROW_ROUNDS: tuple[tuple[int, ...], ...] = (
    (4096, 512),
    (16384, 1024, 128),
    (8192, 2048, 256, 32),
    (32768, 64, 8, 1),
    (6144, 3072, 1536, 768, 384),
    (16, 4, 2),
)
"""m in the order of its value; together the grid of 21 row counts.  Multiples of 128 are what plans use."""

MATMUL_SITES: tuple[tuple[int, int], ...] = (
    (4096, 4096), (14336, 4096), (4096, 14336), (8192, 8192), (1024, 8192), (8192, 1024), (28672, 8192),
    (8192, 28672), (2048, 2048), (6144, 4096), (16384, 16384), (1024, 1024), (4096, 1024), (1024, 4096), (12288, 4096),
    (4096, 12288), (3584, 8192), (8192, 3584), (2048, 8192), (8192, 2048), (7168, 2048), (2048, 7168), (512, 4096),
    (4096, 512), (32768, 4096),
)  # fmt: skip
"""(n, k), most common first."""

ATTENTION_HEADS: tuple[tuple[int, int, int], ...] = (
    (32, 8, 128),
    (8, 1, 128),
    (32, 32, 128),
    (64, 8, 128),
    (16, 16, 64),
)
"""(heads, key heads, head size) of one device."""
ATTENTION_ROUNDS: tuple[tuple[int, ...], ...] = ((4096,), (1024, 16384), (2048, 8192), (512,), (32768,))

NORM_WIDTHS = (4096, 8192, 2048, 16384)
TOKEN_ROUNDS: tuple[tuple[int, ...], ...] = ((4096,), (16384,), (1024,), (8192, 2048, 256))
ACTIVATION_WIDTHS = (14336, 3584, 28672)
VOCABULARIES = (128256, 32000)
EXPERTS: tuple[tuple[int, int, int], ...] = (
    (16, 3072, 4096), (16, 4096, 1536), (4, 4096, 7168), (4, 7168, 2048), (8, 28672, 4096), (8, 4096, 14336),
    (32, 4096, 7168), (32, 7168, 2048), (16, 5760, 2880), (16, 2880, 2880), (20, 3072, 5120), (20, 5120, 1536),
    (4, 3072, 4096), (4, 4096, 1536), (16, 1536, 2048), (16, 2048, 768), (128, 1536, 2048), (128, 2048, 768),
    (8, 14336, 4096), (16, 4096, 4096), (32, 2048, 7168),
)  # fmt: skip
"""(groups, n, k) of one device: gate and up together, then down, of Qwen3-235B at ep 8 and 32, DeepSeek-V3 at ep 64 and
8, Mixtral-8x7B, gpt-oss-120b at ep 8, GLM-4.5 at ep 8, Qwen3-30B at ep 8 and 1; then three of one matrix each."""
EXPERT_ROUNDS: tuple[tuple[int, ...], ...] = ((256,), (16, 1024), (64, 4096), (4,), (1, 512, 2048))
ROUTERS: tuple[tuple[str, int, int], ...] = (
    ("softmax_topk", 128, 8), ("sigmoid_topk", 256, 8), ("softmax_topk", 8, 2), ("softmax_topk", 128, 4),
)  # fmt: skip
"""(choice, experts, experts of a token)."""
PERMUTATIONS: tuple[tuple[int, int], ...] = ((4096, 8), (7168, 8), (4096, 2), (2880, 4))
"""(hidden size, experts of a token)."""
OPTIMIZER_ELEMENTS = (32 << 20, 256 << 20)
COPY_BYTES = (256 << 20, 16 << 20, 1 << 20, 64 << 10, 4 << 10)


def generic_grid(name: GridName, *, host: bool) -> list[WantedShape]:
    """The shapes of a grid, most valuable first.  ``host``: copies stay within the CPU's memory."""
    if name == "none":
        return []
    shapes = list(_small(host) if name == "small" else _full(host))
    return sorted(shapes, key=lambda shape: shape.value)


def with_rows(shapes: Iterable[WantedShape], grid: GridName) -> list[WantedShape]:
    """A model's shapes first, then its weight shapes at the grid's other row counts."""
    own = list(shapes)
    rounds = ROW_ROUNDS if grid == "full" else ()
    sites = {(shape.sizes["n"], shape.sizes["k"]): shape.name for shape in own if shape.operator == "matmul"}
    known = {(shape.sizes["m"], *site) for shape in own for site in sites if shape.operator == "matmul"}
    more = [
        WantedShape("matmul", name, {"m": m, "n": n, "k": k}, value)
        for value, rows in enumerate(rounds, start=1)
        for m in rows
        for (n, k), name in sites.items()
        if (m, n, k) not in known
    ]
    return own + more


def _full(host: bool) -> Iterator[WantedShape]:
    yield from _rounds("matmul", "linear", "m", ROW_ROUNDS, [{"n": n, "k": k} for n, k in MATMUL_SITES])
    for value, lengths in enumerate(ATTENTION_ROUNDS, start=1):
        for length in lengths:
            yield from (_attention(heads, length, value) for heads in ATTENTION_HEADS)
    yield from _rounds(
        "grouped_matmul", "experts", "m", EXPERT_ROUNDS, [{"num_groups": g, "n": n, "k": k} for g, n, k in EXPERTS]
    )
    for name, experts, chosen in ROUTERS:
        sizes = [{"num_experts": experts, "experts_per_token": chosen}]
        yield from _rounds("router", name, "num_tokens", TOKEN_ROUNDS[:3], sizes)
    moved = [{"hidden_size": width, "experts_per_token": chosen} for width, chosen in PERMUTATIONS]
    for name in ("permute", "unpermute"):
        yield from _rounds("permute", name, "num_tokens", TOKEN_ROUNDS[:3], moved)
    for norm in ("rms_norm", "layer_norm"):
        yield from _rounds("norm", norm, "num_tokens", TOKEN_ROUNDS, [{"hidden_size": width} for width in NORM_WIDTHS])
    for activation in ("silu_mul", "gelu"):
        widths = [{"ffn_hidden_size": width} for width in ACTIVATION_WIDTHS]
        yield from _rounds("activation", activation, "num_tokens", TOKEN_ROUNDS, widths)
    tables = [{"vocab_size": size, "hidden_size": 4096} for size in VOCABULARIES]
    yield from _rounds("embedding", "embedding", "num_tokens", TOKEN_ROUNDS[:2], tables)
    ends = [{"vocab_size": size} for size in VOCABULARIES]
    yield from _rounds("cross_entropy", "cross_entropy", "num_tokens", TOKEN_ROUNDS[:3], ends)
    yield from (WantedShape("optimizer", "adamw", {"num_elements": count}, 1) for count in OPTIMIZER_ELEMENTS)
    yield from _copies(COPY_BYTES, host)


def _small(host: bool) -> Iterator[WantedShape]:
    sites = [{"n": n, "k": k} for n, k in ((256, 256), (1024, 256), (512, 1024))]
    yield from _rounds("matmul", "linear", "m", ((128,), (512,), (16,)), sites)
    yield from (_attention((4, 2, 64), length, value) for value, length in enumerate((256, 64), start=1))
    yield from _rounds("grouped_matmul", "experts", "m", ((64,),), [{"num_groups": 4, "n": 256, "k": 128}])
    yield WantedShape("router", "softmax_topk", {"num_tokens": 256, "num_experts": 16, "experts_per_token": 2}, 1)
    sizes = {"num_tokens": 256, "hidden_size": 256, "experts_per_token": 2}
    yield from (WantedShape("permute", name, dict(sizes), 1) for name in ("permute", "unpermute"))
    yield from (
        WantedShape("norm", name, {"num_tokens": 512, "hidden_size": 512}, 1) for name in ("rms_norm", "layer_norm")
    )
    sizes = {"num_tokens": 512, "ffn_hidden_size": 1024}
    yield from (WantedShape("activation", name, dict(sizes), 1) for name in ("silu_mul", "gelu"))
    yield WantedShape("embedding", "embedding", {"num_tokens": 512, "vocab_size": 2048, "hidden_size": 256}, 1)
    yield WantedShape("cross_entropy", "cross_entropy", {"num_tokens": 256, "vocab_size": 2048}, 1)
    yield from (WantedShape("optimizer", "adamw", {"num_elements": count}, 1) for count in (1 << 18, 1 << 20))
    yield from _copies((4 << 20, 64 << 10), host)


def _rounds(
    operator: str, name: str, counted: str, rounds: tuple[tuple[int, ...], ...], sites: list[dict[str, int]]
) -> Iterator[WantedShape]:
    """Every site at every count, a round of counts after the other."""
    for value, counts in enumerate(rounds, start=1):
        for count in counts:
            for site in sites:
                yield WantedShape(operator, name, {counted: count, **site}, value)


def _attention(heads: tuple[int, int, int], length: int, value: int) -> WantedShape:
    sizes = {"batch_size": 1, "query_length": length, "key_length": length}
    sizes |= dict(zip(("num_heads", "num_kv_heads", "head_dim"), heads, strict=True))
    return WantedShape("attention", "sdpa", sizes, value, causal=True)


def _copies(sizes: tuple[int, ...], host: bool) -> Iterator[WantedShape]:
    name = "host" if host else "device"
    yield from (WantedShape("copy", name, {"num_bytes": size}, value) for value, size in enumerate(sizes, start=1))
