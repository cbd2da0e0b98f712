"""Reads the emitted files: ``megatron.args`` and ``launch.sh`` -> ``Strategy`` and layout.

Nothing is taken from ``plan.json``: what comes back is what Megatron would do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from planner.backends.emission.emitted import file_of
from planner.backends.emission.layout import Layout, StageLayout
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.backends.megatron.arguments import ARGUMENTS_FILE, ArgumentReader, parse_arguments
from planner.backends.megatron.dispatcher import FLEX, FLEX_BACKEND, TYPE
from planner.backends.megatron.flags import CP_KINDS, FSDP_STRATEGIES, GROUP_SIZE, OWN_SWITCHES, SIZES, SWITCHES
from planner.backends.megatron.layout import even_chunks, parse_layout
from planner.backends.megatron.recompute import MODULES_BY_FLAG
from planner.backends.megatron.token_mixers import PATTERN, parse_pattern
from planner.errors import DocumentInvalid
from planner.plan.plan import ChunkPlan, StageOffload, StageRecompute
from planner.strategy.strategy import DISPATCHERS, CpKind, Dispatcher, RecomputePolicy, Strategy

LAYOUT = "--pipeline-model-parallel-layout"


def read_back(files: Mapping[str, str]) -> tuple[Strategy, Layout]:
    """Strategy and layout of an emission's files.  Raises DocumentInvalid when they do not hold together."""
    reader, world_size = open_files(files, ARGUMENTS_FILE)
    chunks = _chunks(reader)
    strategy = _strategy(reader, world_size, chunks_a_rank(reader, chunks))
    return strategy, layout_of_flags(reader, strategy, chunks)


def _chunks(reader: ArgumentReader) -> tuple[ChunkPlan, ...]:
    layers = reader.integer("--num-layers")
    if reader.flag(PATTERN):
        return parse_pattern(reader.word(PATTERN, ""))
    if reader.flag(LAYOUT):
        return chunks_of_layout(reader, layers)
    pp = reader.integer("--pipeline-model-parallel-size")
    vpp = reader.integer("--num-virtual-stages-per-pipeline-rank", 1)
    return even_chunks(layers, pp * vpp, reader.integer("--mtp-num-layers", 0), reader.at("--num-layers"))


def open_files(files: Mapping[str, str], arguments_file: str) -> tuple[ArgumentReader, int]:
    """The arguments and the number of ranks of an emission.  Raises DocumentInvalid when a file is missing."""
    reader = ArgumentReader(parse_arguments(file_of(files, arguments_file), arguments_file), arguments_file)
    return reader, read_world_size(file_of(files, LAUNCH_SCRIPT))


def chunks_a_rank(reader: ArgumentReader, chunks: tuple[ChunkPlan, ...]) -> int:
    """Chunks of each pipeline rank.  Raises DocumentInvalid when some would have more than others."""
    pp = reader.integer("--pipeline-model-parallel-size")
    if pp < 1 or len(chunks) % pp:
        raise DocumentInvalid(f"{len(chunks)} chunks do not divide over {pp} pipeline ranks", where=reader.at(LAYOUT))
    return len(chunks) // pp


def chunks_of_layout(reader: ArgumentReader, layers: int) -> tuple[ChunkPlan, ...]:
    """The chunks that the layout flag spells out.  Raises DocumentInvalid unless they hold all layers once."""
    chunks = parse_layout(reader.word(LAYOUT, ""), reader.at(LAYOUT))
    if sum(chunk.num_layers for chunk in chunks) != layers:
        raise DocumentInvalid(f"the layout does not place all {layers} layers once", where=reader.at(LAYOUT))
    return chunks


def data_parallel(reader: ArgumentReader, world_size: int) -> tuple[int, int]:
    """World divided by the model axes, and the micro-batches that the batch sizes leave.  Raises DocumentInvalid."""
    names = ("--tensor-model-parallel-size", "--context-parallel-size", "--pipeline-model-parallel-size")
    model = 1
    for name in names:
        model *= reader.integer(name, 1)
    if model < 1 or world_size % model:
        what = f"{world_size} ranks do not divide by tp x cp x pp = {model}"
        raise DocumentInvalid(what, where=LAUNCH_SCRIPT)
    dp = world_size // model
    samples = reader.integer("--global-batch-size")
    each = reader.integer("--micro-batch-size") * dp
    if each < 1 or samples % each:
        what = f"global batch {samples} is not a multiple of micro-batch x dp = {each}"
        raise DocumentInvalid(what, where=reader.at("--global-batch-size"))
    return dp, samples // each


def optimizer_instances(reader: ArgumentReader, dp: int) -> int:
    """Over how many copies dp is split.  Raises DocumentInvalid when they are unequal."""
    name = "--num-distributed-optimizer-instances"
    replicate = reader.integer(name, 1)
    if replicate < 1 or dp % replicate:
        raise DocumentInvalid(f"dp={dp} does not divide into {replicate} optimizer instances", where=reader.at(name))
    return replicate


def zero_stage(reader: ArgumentReader, *, fsdp: str, default: str) -> int:
    """The ZeRO stage; ``fsdp`` is the release's switch for stages 2 and 3, ``default`` its default sharding."""
    if not reader.flag(fsdp):
        return int(reader.flag("--use-distributed-optimizer"))
    name = "--data-parallel-sharding-strategy"
    word = reader.word(name, default)
    for stage, known in FSDP_STRATEGIES.items():
        if known == word:
            return stage
    raise DocumentInvalid(f"{word!r} is not a sharding that plans use", where=reader.at(name))


def cp_kind(reader: ArgumentReader, flag: str, words: Mapping[str, str]) -> CpKind:
    """How cp ranks talk; ``words`` are the flag's names of the kinds, ring by default."""
    if reader.integer("--context-parallel-size", 1) == 1:
        return "none"
    word = reader.word(flag, words["ring"])
    if word == words["ring"]:
        return "ring"
    if word == words["all_to_all"]:
        return "all_to_all"
    raise DocumentInvalid(f"{word!r} is not a context parallelism that plans use", where=reader.at(flag))


def strategy_of_degrees(
    reader: ArgumentReader, cp_flag: str, cp_words: Mapping[str, str], own_switches: Mapping[str, str]
) -> Strategy:
    """What both releases say with the same flags, the model axes and their order, and every switch of the strategy."""
    tp = reader.integer(SIZES["tp"], 1)
    sizes: dict[str, Any] = {name: reader.integer(flag, tp if name == "etp" else 1) for name, flag in SIZES.items()}
    said: dict[str, Any] = {name: reader.flag(flag) for name, flag in {**SWITCHES, **own_switches}.items()}
    return Strategy(
        **sizes,
        **said | {"sp": said["sp"] and tp > 1},
        cp_kind=cp_kind(reader, cp_flag, cp_words),
        micro_batch_size=reader.integer("--micro-batch-size"),
        dispatcher=_dispatcher(reader) if sizes["ep"] > 1 else "alltoall",
        axis_order="tp-cp-ep-pp-dp" if reader.flag("--use-tp-pp-dp-mapping") else "tp-cp-ep-dp-pp",
    )


def _dispatcher(reader: ArgumentReader) -> Dispatcher:
    """How routed tokens are sent.  Raises DocumentInvalid for a word that plans do not use."""
    word = reader.word(TYPE, "alltoall")
    said = reader.word(FLEX_BACKEND, "deepep") if word == "flex" else word
    for known in DISPATCHERS:
        if known == said and (word == "flex") == (known in FLEX):
            return known
    where = reader.at(FLEX_BACKEND if word == "flex" else TYPE)
    raise DocumentInvalid(f"{said!r} is not a dispatcher that plans use", where=where)


def _recompute(reader: ArgumentReader) -> RecomputePolicy:
    word = reader.word("--recompute-granularity", "none")
    known: dict[str, RecomputePolicy] = {"none": "none", "selective": "selective", "full": "full"}
    if word not in known:
        raise DocumentInvalid(f"{word!r} is not a recompute granularity", where=reader.at("--recompute-granularity"))
    if word == "full" and reader.word("--recompute-method", "") != "block":
        raise DocumentInvalid("plans use recompute method 'block' only", where=reader.at("--recompute-method"))
    return known[word]


def _strategy(reader: ArgumentReader, world_size: int, vpp: int) -> Strategy:
    dp, num_microbatches = data_parallel(reader, world_size)
    recompute = _recompute(reader)
    replicate = optimizer_instances(reader, dp)
    unknown = sorted(set(reader.words("--recompute-modules")) - set(MODULES_BY_FLAG))
    if unknown:
        raise DocumentInvalid(f"plans do not use the modules {unknown}", where=reader.at("--recompute-modules"))
    degrees = strategy_of_degrees(reader, "--cp-comm-type", CP_KINDS, OWN_SWITCHES)
    return replace(
        degrees,
        vpp=vpp,
        dp_replicate=replicate,
        dp_shard=dp // replicate,
        num_microbatches=num_microbatches,
        schedule="interleaved" if vpp > 1 else "1f1b",
        microbatch_group_size=reader.integer(GROUP_SIZE, degrees.pp) if vpp > 1 else 0,
        zero_stage=zero_stage(reader, fsdp="--use-megatron-fsdp", default="optim_grads_params"),
        recompute=recompute,
        recompute_modules=tuple(MODULES_BY_FLAG[word] for word in reader.words("--recompute-modules")),
        activation_offload=_offloads(reader),
    )


def _offloads(reader: ArgumentReader) -> bool:
    whole = reader.integer("--cpu-offloading-num-layers", 0)
    return reader.flag("--fine-grained-activation-offloading") or whole > 0


def layout_of_flags(reader: ArgumentReader, strategy: Strategy, chunks: tuple[ChunkPlan, ...]) -> Layout:
    """The stages; ``--cpu-offloading-num-layers`` takes some layers of one, every other offload all of them."""
    whole = reader.integer("--cpu-offloading-num-layers", 0)
    stages = []
    for stage in range(strategy.pp):
        own = tuple(chunk for chunk in chunks if strategy.chunk_stage(chunk.chunk) == stage)
        layers = sum(chunk.num_layers for chunk in own)
        offloaded = (whole or layers) if strategy.activation_offload else 0
        offload = StageOffload(optimizer=strategy.optimizer_offload, activation_layers=offloaded)
        stages.append(StageLayout(stage, own, stage_recompute(reader, strategy, own), offload))
    return tuple(stages)


def stage_recompute(reader: ArgumentReader, strategy: Strategy, own: tuple[ChunkPlan, ...]) -> StageRecompute:
    """Block recompute takes the first N layers of each chunk (core/recompute.py:167); selective takes every layer."""
    if strategy.recompute == "none":
        return StageRecompute(policy="none")
    policy: Literal["selective", "full"] = strategy.recompute
    first = reader.integer("--recompute-num-layers") if policy == "full" else max(chunk.num_layers for chunk in own)
    counts = tuple(min(first, chunk.num_layers) for chunk in own)
    if not any(counts):
        return StageRecompute(policy="none")
    return StageRecompute(policy=policy, modules=strategy.recompute_modules, num_layers_per_chunk=counts)
