"""Reads the emitted files: ``mindspeed.args`` and ``launch.sh`` -> ``Strategy`` and layout.

Nothing is taken from ``plan.json``: what comes back is what MindSpeed would do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.backends.emission.layout import Layout
from planner.backends.megatron.arguments import ArgumentReader
from planner.backends.megatron.flags import GROUP_SIZE
from planner.backends.megatron.layout import even_chunks
from planner.backends.megatron.read import (
    LAYOUT,
    chunks_a_rank,
    chunks_of_layout,
    data_parallel,
    layout_of_flags,
    open_files,
    optimizer_instances,
    strategy_of_degrees,
    zero_stage,
)
from planner.backends.mindspeed.flags import CP_ALGORITHMS, DUALPIPEV, OWN_SWITCHES
from planner.backends.mindspeed.noop_layers import NOOP_LAYERS, filled_chunks
from planner.backends.mindspeed.recompute import MODULES_BY_NAME, MODULES_BY_SWITCH, in_order
from planner.backends.mindspeed.write import ARGUMENTS_FILE
from planner.errors import DocumentInvalid
from planner.plan.plan import ChunkPlan
from planner.strategy.schedules import ScheduleName
from planner.strategy.strategy import RecomputeModule, RecomputePolicy, Strategy


def read_back(files: Mapping[str, str]) -> tuple[Strategy, Layout]:
    """Strategy and layout of an emission's files.  Raises DocumentInvalid when they do not hold together."""
    reader, world_size = open_files(files, ARGUMENTS_FILE)
    chunks = _chunks(reader)
    strategy = _strategy(reader, world_size, chunks_a_rank(reader, chunks))
    return strategy, layout_of_flags(reader, strategy, chunks)


def _chunks(reader: ArgumentReader) -> tuple[ChunkPlan, ...]:
    layers, pp = reader.integer("--num-layers"), reader.integer("--pipeline-model-parallel-size")
    if reader.flag(LAYOUT):
        return chunks_of_layout(reader, layers)
    count = pp
    if _schedules_method(reader):
        count = 2 * pp
    elif reader.flag("--num-layers-per-virtual-pipeline-stage"):
        each = reader.integer("--num-layers-per-virtual-pipeline-stage")
        if each < 1 or pp < 1 or layers % (each * pp):
            what = f"{layers} layers are not chunks of {each} layers on {pp} pipeline ranks"
            raise DocumentInvalid(what, where=reader.at("--num-layers-per-virtual-pipeline-stage"))
        count = layers // each
    mtp = reader.integer("--mtp-num-layers", 0)
    if reader.flag(NOOP_LAYERS):
        return filled_chunks(reader, layers, count, mtp)
    return even_chunks(layers, count, mtp, reader.at("--num-layers"))


def _schedules_method(reader: ArgumentReader) -> bool:
    """Whether DualPipeV is chosen; it is the only method there is."""
    word = reader.word("--schedules-method", "")
    if word not in ("", DUALPIPEV):
        raise DocumentInvalid(f"{word!r} is not a schedule that plans use", where=reader.at("--schedules-method"))
    return word == DUALPIPEV


def _recompute(reader: ArgumentReader) -> tuple[RecomputePolicy, tuple[RecomputeModule, ...]]:
    names = reader.words("--recompute-modules")
    unknown = sorted(set(names) - set(MODULES_BY_NAME))
    if unknown:
        raise DocumentInvalid(f"plans do not use the modules {unknown}", where=reader.at("--recompute-modules"))
    modules = {MODULES_BY_NAME[name] for name in names}
    modules |= {module for switch, module in MODULES_BY_SWITCH.items() if reader.flag(switch)}
    word = reader.word("--recompute-granularity", "selective" if modules else "none")
    known: dict[str, RecomputePolicy] = {"none": "none", "selective": "selective", "full": "full"}
    if word not in known or (word == "full" and modules):
        what = f"{word!r} with the modules {sorted(modules)} is not a recompute setting that plans use"
        raise DocumentInvalid(what, where=reader.at("--recompute-granularity"))
    if word == "full" and reader.word("--recompute-method", "") != "block":
        raise DocumentInvalid("plans use recompute method 'block' only", where=reader.at("--recompute-method"))
    return known[word], in_order(tuple(modules))


def _strategy(reader: ArgumentReader, world_size: int, vpp: int) -> Strategy:
    dp, num_microbatches = data_parallel(reader, world_size)
    policy, modules = _recompute(reader)
    replicate = optimizer_instances(reader, dp)
    pp = reader.integer("--pipeline-model-parallel-size", 1)
    schedule: ScheduleName = "1f1b"
    group = 0
    if _schedules_method(reader):
        schedule = "dualpipev"
    elif vpp > 1:
        schedule = "interleaved"
        group = reader.integer(GROUP_SIZE, pp)
    degrees = strategy_of_degrees(reader, "--context-parallel-algo", CP_ALGORITHMS, OWN_SWITCHES)
    return replace(
        degrees,
        vpp=vpp,
        dp_replicate=replicate,
        dp_shard=dp // replicate,
        num_microbatches=num_microbatches,
        schedule=schedule,
        microbatch_group_size=group,
        zero_stage=zero_stage(reader, fsdp="--use-custom-fsdp", default="no_shard"),
        recompute=policy,
        recompute_modules=modules,
    )
