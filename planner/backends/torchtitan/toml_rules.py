"""What torchtitan 0.2.2 cannot run and 0.3.0 can; checked when files for that release are asked for."""

from __future__ import annotations

from dataclasses import replace

from planner.backends.rules.packed_sequences import packed_sequences
from planner.backends.rules.rule import RuleInput, SpaceRule
from planner.backends.torchtitan.degrees import shard_degree
from planner.backends.torchtitan.family import family_of

_TITAN = "torchtitan 0.2.2"


def _sequence(given: RuleInput) -> str | None:
    s, tokens = given.strategy, given.workload.sequence_length
    parts = 2 * s.tp * s.cp
    return f"sequence length {tokens} is not a multiple of 2 x tp x cp = {parts}" if tokens % parts else None


def _tied(given: RuleInput) -> str | None:
    if given.model.tie_embeddings and family_of(given.model) != "qwen3":
        return "only the family qwen3 ties embedding and head"
    return None


def _pipeline(given: RuleInput) -> str | None:
    if given.strategy.pp > 1 and family_of(given.model) == "qwen3":
        return "the family qwen3 has no pipeline; use pp=1 or torchtitan 0.3.0"
    return None


def _plain_data_parallel(given: RuleInput) -> str | None:
    s = given.strategy
    if s.dp > 1 and shard_degree(s) * s.cp == 1 and s.dp != s.world_size:
        return "plain data parallelism runs alone: use ZeRO with tp, pp or ep"
    return None


def _experts_on_one_shard(given: RuleInput) -> str | None:
    s = given.strategy
    if s.ep > 1 and shard_degree(s) * s.cp == 1:
        return f"ep={s.ep} needs dp_shard x cp > 1: the mesh that shards the rest does not exist with one rank"
    return None


def _always_sequence_parallel(given: RuleInput) -> str | None:
    s = given.strategy
    return "tensor parallelism comes with sequence parallelism only: sp must be on" if s.tp > 1 and not s.sp else None


def _float8(given: RuleInput) -> str | None:
    return "fp8 is written for 0.3.0 only; use precision bf16" if given.workload.precision == "fp8" else None


TOML_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("V1", f"{_TITAN} models/llama3/infra/parallelize.py:69", _sequence, ("tp", "cp")),
    SpaceRule("V3", f"{_TITAN} models/qwen3/__init__.py: pipelining_fn=None", _pipeline, ("pp",)),
    SpaceRule(
        "V4",
        f"{_TITAN} models/llama3/infra/parallelize.py: DDP has not supported > 1D",
        _plain_data_parallel,
        ("zero_stage", "dp_replicate", "dp_shard", "cp", "tp", "pp"),
    ),
    SpaceRule(
        "V5",
        f"{_TITAN} models/deepseek_v3/infra/parallelize.py: fsdp mesh",
        _experts_on_one_shard,
        ("ep", "dp_shard", "cp", "zero_stage", "dp_replicate"),
    ),
    SpaceRule("V7", f"{_TITAN} models/llama3/infra/parallelize.py: apply_tp", _always_sequence_parallel, ("sp", "tp")),
)
TOML_MODEL_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("V2", f"{_TITAN} models/llama3/model/args.py", _tied),
    SpaceRule("M44", "docs: emit torchtitan", _float8),
    replace(packed_sequences(f"{_TITAN} models/llama3/model/args.py:45 (sdpa, causal)"), id="V8"),
)
"""Those that no strategy mends."""
