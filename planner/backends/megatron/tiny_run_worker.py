"""Trains a tiny model with megatron-core's own schedules on CPU ranks, from emitted argument files.

    torchrun --nproc-per-node=4 megatron_train.py OVERLAY STEPS DIR-OR-ARGS-FILE...

OVERLAY is a folder with megatron-core.  Each folder (or ``megatron.args`` with ``data.args`` beside it) is trained for
STEPS steps in turn, all by this one launch, so all must be for its number of ranks.  Rank 0 prints JSON lines: one
``{"run", "replaced"}`` that says what of the arguments cannot run on a CPU and what ran instead, and ``{"run", "step",
"loss"}`` for each step; ``{"run", "error"}`` where a run failed.

Megatron's parser, model, forward-backward schedules, token dispatch and gradient reductions across tensor, pipeline and
embedding ranks are the real ones.  Ours: samples and initial weights that do not depend on the layout (weights are a
function of their global name and index in Megatron's distributed checkpoints), the reduction over data-parallel ranks,
and plain Adam in fp32.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.util
import io
import json
import logging
import os
import sys
import traceback
import types
import typing
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

SUMMED = """
--use-distributed-optimizer --num-distributed-optimizer-instances --overlap-grad-reduce --overlap-param-gather
--use-megatron-fsdp --data-parallel-sharding-strategy --init-model-with-meta-device
"""
DROPPED = {
    **dict.fromkeys(SUMMED.split(), "gradients summed over data-parallel ranks"),
    **dict.fromkeys(("--bf16", "--fp16", "--fp8-format", "--fp8-recipe", "--grad-reduce-in-bf16"), "fp32"),
    **dict.fromkeys(("--use-precision-aware-optimizer", "--exp-avg-dtype", "--exp-avg-sq-dtype"), "plain Adam"),
    **dict.fromkeys(("--ckpt-format", "--dist-ckpt-optim-fully-reshardable"), "no checkpoint"),
    "--tp-comm-overlap": "Transformer Engine's user buffers need CUDA",
    # megatron-core 0.19.2 training/arguments.py asks for bf16 or fp16.
    "--overlap-moe-expert-parallel-comm": "experts' exchange beside nothing, as in fp32",
    "--moe-flex-dispatcher-backend": "DeepEP and HybridEP need CUDA",
    "--moe-grouped-gemm": "experts one after the other",
    "--moe-permute-fusion": "unfused permutation",
    "--attention-backend": "unfused attention",
    "--cross-entropy-loss-fusion": "unfused loss",
    "--cross-entropy-fusion-impl": "unfused loss",
}
REPLACED = {
    "--transformer-impl": ("local", "no Transformer Engine on a CPU: Megatron's local layers"),
    "--moe-token-dispatcher-type": ("alltoall", "DeepEP and HybridEP need CUDA"),  # of flex alone
}
_UNFUSED = (
    "rope-fusion persist-layer-norm masked-softmax-fusion bias-dropout-fusion bias-swiglu-fusion bias-gelu-fusion"
)
ADDED = tuple(f"--no-{name}" for name in (*_UNFUSED.split(), "gradient-accumulation-fusion"))
_NEED_TRITON = "megatron.core.transformer.moe.ops.paged_stash"
_DEADLINE = datetime.timedelta(seconds=90)


def feign_packages() -> None:
    """Make Megatron importable without triton (see planner/backends/megatron/validator_worker.py)."""
    import typing_extensions

    if not hasattr(typing, "override"):
        typing.override = typing_extensions.override  # type: ignore[attr-defined]
    if importlib.util.find_spec("triton") is None:
        stash = types.ModuleType(_NEED_TRITON)

        def attribute(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return MagicMock()

        stash.__getattr__ = attribute  # type: ignore[method-assign]
        sys.modules[_NEED_TRITON] = stash


def cuda_to_cpu() -> Any:
    """A mode in which what Megatron puts on CUDA is on the CPU, and streams do nothing."""
    import torch
    from torch.overrides import TorchFunctionMode

    class OnCpu(TorchFunctionMode):
        def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            if kwargs.get("device") is not None and str(kwargs["device"]) != "meta":
                kwargs["device"] = "cpu"
            if func in (torch.Tensor.cuda, torch.Tensor.record_stream):
                return args[0]
            return func(*args, **kwargs)

    torch.cuda.current_device = lambda: torch.device("cpu")  # type: ignore[assignment,return-value]
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(major=9, minor=0)  # type: ignore[assignment]
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.synchronize = lambda *_: None
    stream = MagicMock()
    torch.cuda.Stream = torch.cuda.Event = lambda *_a, **_k: stream  # type: ignore[assignment,misc]
    torch.cuda.current_stream = lambda *_: stream
    torch.cuda.stream = lambda *_: contextlib.nullcontext()  # type: ignore[assignment]
    return OnCpu()


def feign_kernels() -> None:
    """One random state (no dropout draws from it), norms that know sequence parallelism, counts on the host."""
    import torch
    from megatron.core.tensor_parallel import random
    from megatron.core.transformer import torch_norm
    from megatron.core.transformer.moe import token_dispatcher

    random.CudaRNGStatesTracker.fork = lambda self, name=None: contextlib.nullcontext()
    random._get_cuda_rng_state = lambda *_a, **_k: torch.get_rng_state()
    random._set_cuda_rng_state = lambda *_a, **_k: None

    def on_host(tensor: Any, as_numpy: bool = False, record_stream: bool = False) -> Any:
        return tensor.numpy() if as_numpy and torch.is_tensor(tensor) else tensor

    def norm(kind: Any, config: Any, hidden_size: int, eps: float = 1e-5, **_options: object) -> Any:
        # Megatron's wrapper refuses sequence parallelism only because torch's norms do not mark their weights.
        made = {"RMSNorm": torch.nn.RMSNorm, "LayerNorm": torch.nn.LayerNorm}[config.normalization](hidden_size, eps)
        for weight in made.parameters():
            weight.sequence_parallel = config.sequence_parallel
        return made

    begin = random.CheckpointWithoutOutput.__init__

    def without_fp8(self: Any, fp8: object = False) -> None:
        # Megatron takes False for True here and asks Transformer Engine (random.py:740).
        begin(self, fp8=None)

    random.CheckpointWithoutOutput.__init__ = without_fp8
    torch_norm.WrappedTorchNorm.__new__ = norm
    token_dispatcher.maybe_move_tensor_to_cpu = on_host


def uneven_exchanges() -> None:
    """Gathers and scatters of unequal parts, which gloo lacks: one broadcast, or one reduction, a part."""
    import torch.distributed as dist

    gather, scatter, ranks_of = dist.all_gather, dist.reduce_scatter, dist.get_process_group_ranks

    def all_gather(parts: Any, own: Any, group: Any = None, async_op: bool = False) -> Any:
        if len({part.shape for part in parts}) == 1:
            return gather(parts, own, group=group, async_op=async_op)
        for rank, part in zip(ranks_of(group), parts, strict=True):
            dist.broadcast(part.copy_(own) if rank == dist.get_rank() else part, rank, group=group)
        return None

    def reduce_scatter(own: Any, parts: Any, op: Any = dist.ReduceOp.SUM, group: Any = None, **words: Any) -> Any:
        if len({part.shape for part in parts}) == 1:
            return scatter(own, parts, op=op, group=group, **words)
        for rank, part in zip(ranks_of(group), parts, strict=True):
            dist.reduce(whole := part.contiguous(), rank, op=op, group=group)
            own.copy_(whole if rank == dist.get_rank() else own)
        return None

    dist.all_gather = all_gather  # type: ignore[assignment]
    dist.reduce_scatter = reduce_scatter  # type: ignore[assignment]


def words_of(path: Path) -> list[str]:
    """Lines that are neither empty nor comments, split at blanks."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.split() and line[0] != "#"]


def without_fused_recompute(lines: list[list[str]]) -> tuple[list[list[str]], dict[str, str]]:
    """Recompute without ``moe_act``, which only grouped experts know; none where nothing else is recomputed."""
    name, granularity = "--recompute-modules", "--recompute-granularity"
    modules = next((line[1:] for line in lines if line[0] == name), [])
    if "moe_act" not in modules:
        return lines, {}
    left = [module for module in modules if module != "moe_act"]
    kept = [line for line in lines if line[0] != name and (left or line[0] != granularity)]
    return kept + ([[name, *left]] if left else []), {f"{name} moe_act": "kept instead: only grouped experts drop it"}


def runnable_words(path: Path) -> tuple[list[str], dict[str, str]]:
    """Arguments for a CPU, and what was replaced by what."""
    folder = path if path.is_dir() else path.parent
    files = (folder / "megatron.args" if path.is_dir() else path, folder / "data.args")
    lines = [line.split() for file in files if file.is_file() for line in words_of(file)]
    lines, replaced = without_fused_recompute(lines)
    words: list[str] = []
    for flag, *values in lines:
        if flag in DROPPED:
            replaced[flag] = DROPPED[flag]
        elif flag in REPLACED and ("dispatcher" not in flag or values == ["flex"]):
            words += [flag, REPLACED[flag][0]]
            replaced[flag] = REPLACED[flag][1]
        else:
            words += [flag, *values]
    more = [flag for flag in ADDED if flag not in words]
    return [*words, *more], replaced | dict.fromkeys(more, "added: the fused kernel needs CUDA")


@contextlib.contextmanager
def groups(args: Any) -> Iterator[Any]:
    """Megatron's process groups over the launch's ranks."""
    import megatron.core.parallel_state as mpu

    mpu.initialize_model_parallel(
        args.tensor_model_parallel_size,
        args.pipeline_model_parallel_size,
        args.virtual_pipeline_model_parallel_size,
        context_parallel_size=args.context_parallel_size,
        expert_model_parallel_size=args.expert_model_parallel_size,
        expert_tensor_parallel_size=args.expert_tensor_parallel_size,
        order="tp-cp-ep-pp-dp" if args.use_tp_pp_dp_mapping else "tp-cp-ep-dp-pp",
        create_gloo_process_groups=False,
    )
    try:
        yield mpu
    finally:
        mpu.destroy_model_parallel()


def build(args: Any, config: Any) -> list[Any]:
    """This rank's chunks, with weights that do not depend on the layout."""
    from megatron.core.distributed import DistributedDataParallelConfig
    from megatron.core.distributed.finalize_model_grads import finalize_model_grads
    from megatron.core.enums import ModelType
    from megatron.core.process_groups_config import ProcessGroupCollection
    from megatron.training.argument_utils import gpt_config_from_args
    from megatron.training.models.gpt import GPTModelBuilder

    builder = GPTModelBuilder(gpt_config_from_args(args, config))
    own = ProcessGroupCollection.use_mpu_process_groups()
    count = args.virtual_pipeline_model_parallel_size
    chunks = [builder.build_model(own, vp_stage=stage) for stage in (range(count) if count else (None,))]
    for chunk in chunks:
        chunk.model_type = ModelType.encoder_or_decoder
        chunk.ddp_config = DistributedDataParallelConfig()
        chunk.finish_grad_sync = lambda chunk=chunk, **_options: reduce_over_replicas(chunk)
        fill(chunk)
    config.finalize_model_grads_func = finalize_model_grads
    return chunks


def fill(chunk: Any) -> None:
    """Every weight from its global name and the global index of each element, as distributed checkpoints name them."""
    import torch
    from megatron.core.dist_checkpointing.dict_utils import nested_values
    from megatron.core.dist_checkpointing.mapping import ShardedTensor, apply_factories

    named = chunk.sharded_state_dict()
    apply_factories(named)
    filled = 0
    for shard in nested_values(named):
        if not isinstance(shard, ShardedTensor) or shard.data is None:
            continue
        index = torch.zeros((), dtype=torch.float64)
        for axis, size in enumerate(shard.global_shape):
            begin = shard.global_offset[axis]
            length = 1 if axis < shard.prepend_axis_num else shard.data.shape[axis - shard.prepend_axis_num]
            index = index[..., None] * size + torch.arange(begin, begin + length, dtype=torch.float64)
        noise = torch.frac(torch.sin(index * 12.9898 + zlib.crc32(shard.key.encode()) % 1000) * 43758.5453)
        shard.data.detach().copy_((0.04 * noise + ("norm" in shard.key)).reshape(shard.data.shape))
        filled += shard.data.numel()
    there = sum(weight.numel() for weight in chunk.parameters())
    if filled < there:
        raise RuntimeError(f"only {filled} of {there} weights have a global name")


def reduce_over_replicas(chunk: Any) -> None:
    """Sum gradients over the ranks that hold the same weight, as a mean over all data-parallel ranks."""
    import megatron.core.parallel_state as mpu
    import torch.distributed as dist

    dense = mpu.get_data_parallel_group(with_context_parallel=True)
    expert = mpu.get_expert_data_parallel_group()
    for weight in chunk.parameters():
        if weight.grad is not None:
            dist.all_reduce(weight.grad, group=dense if getattr(weight, "allreduce", True) else expert)
            weight.grad /= dense.size()


def samples(args: Any, rank: int) -> Iterator[Any]:
    """This rank's micro-batches: sample k of the batch is the same tokens whatever the layout, in every step."""
    import torch

    each, dp = args.micro_batch_size, args.data_parallel_size
    for start in range(rank * each, args.global_batch_size, each * dp):
        drawn = [torch.Generator().manual_seed(start + offset) for offset in range(each)]
        yield torch.stack([torch.randint(0, args.vocab_size, (args.seq_length + 1,), generator=one) for one in drawn])


def forward_step(batches: Iterator[Any], model: Any) -> tuple[Any, Any]:
    """One micro-batch through one chunk."""
    import torch

    tokens = next(batches)
    length = tokens.shape[1] - 1
    positions = torch.arange(length).expand(tokens.shape[0], -1)
    mask = torch.triu(torch.ones(1, 1, length, length, dtype=torch.bool), 1)
    losses = model(tokens[:, :-1], positions, mask, labels=tokens[:, 1:].contiguous())
    return losses, lambda output: (output.mean(), {"loss": output.mean().detach()})


def train(args: Any, config: Any, steps: int) -> Iterator[float]:
    """The loss of every step, averaged over the global batch, on every rank."""
    import torch
    import torch.distributed as dist
    from megatron.core.num_microbatches_calculator import ConstantNumMicroBatchesCalculator
    from megatron.core.pipeline_parallel import get_forward_backward_func

    with groups(args) as mpu:
        chunks = build(args, config)
        optimizer = torch.optim.Adam([weight for chunk in chunks for weight in chunk.parameters()], lr=args.lr)
        micro_batches = ConstantNumMicroBatchesCalculator(
            args.global_batch_size, args.micro_batch_size, args.data_parallel_size, False, 0
        ).get()
        for _ in range(steps):
            optimizer.zero_grad()
            rank = mpu.get_data_parallel_rank()
            iterators = [samples(args, rank) for _chunk in chunks]
            said = get_forward_backward_func()(
                forward_step_func=forward_step,
                data_iterator=iterators if len(chunks) > 1 else iterators[0],
                model=chunks if len(chunks) > 1 else chunks[0],
                num_microbatches=micro_batches,
                seq_length=args.seq_length,
                micro_batch_size=args.micro_batch_size,
                forward_only=False,
            )
            optimizer.step()
            mine = mpu.get_tensor_model_parallel_rank() == 0
            total = torch.tensor(
                [sum(each["loss"].item() for each in said) * mine, len(said) * mine], dtype=torch.float64
            )
            dist.all_reduce(total)
            yield float(total[0] / total[1])


def run(path: Path, steps: int, say: Any) -> None:
    """One set of arguments: parse, validate, train."""
    from megatron.training.arguments import core_transformer_config_from_args, parse_args, validate_args

    words, replaced = runnable_words(path)
    say({"run": str(path), "replaced": replaced})
    sys.argv = ["pretrain_gpt.py", *words]
    noise = io.StringIO()
    try:
        with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
            args = parse_args()
            validate_args(args)
            config = core_transformer_config_from_args(args)
    except SystemExit as error:
        raise ValueError(" ".join(noise.getvalue().rpartition("error: ")[2].split())) from error
    config.perform_initialization = False
    for step, loss in enumerate(train(args, config, steps)):
        say({"run": str(path), "step": step, "loss": loss})


def main() -> None:
    """Train every folder of the command line."""
    overlay, steps, *paths = sys.argv[1:]
    sys.path.insert(0, overlay)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    feign_packages()
    # Plans with Megatron-FSDP or overlapped experts have another number, which goes with what no CPU runs.
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
    # Megatron compiles small functions of its layers; on a CPU that takes longer than all the steps.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    import torch.distributed as dist

    # Gloo and Megatron talk on stdout: theirs goes to stderr, ours stays.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        if dist.get_rank() == 0:
            print(json.dumps(answer), file=answers, flush=True)

    with cuda_to_cpu():
        feign_kernels()
        uneven_exchanges()
        dist.init_process_group("gloo", timeout=_DEADLINE)
        try:
            for path in paths:
                try:
                    run(Path(path), int(steps), say)
                except Exception as error:
                    # Other ranks may hang in this run's collectives, so no later run can follow.
                    say({"run": path, "error": f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"})
                    traceback.print_exc()
                    raise SystemExit(1) from error
        finally:
            dist.destroy_process_group()


if __name__ == "__main__":
    main()
