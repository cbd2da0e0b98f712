"""Runs torchtitan's own trainer on CPU ranks, on the emitted configuration: one rank of ``train.sh``.

    python tiny_run_worker.py OVERLAY VOCABULARY BATCH -u -m torchtitan.train --module titan_plan --config plan WORDS...

OVERLAY is a folder with torchtitan, VOCABULARY and BATCH are numbers of tokens and of samples a step.  Rank 0, or the
ranks of the last stage, print ``{"step", "loss"}`` as JSON lines.

The trainer, its configuration, meshes, FSDP2, tensor, context and expert parallelism, pipelines, activation
checkpointing, compiled layers and loss, and optimizer are torchtitan's.  Ours: samples and initial weights that do not
depend on the layout, and what needs a GPU: attention runs uncompiled (flex attention's backward has no compiled form on
a CPU), the compiler is ``aot_eager`` (the same tracing and autograd, without generated kernels).
"""

from __future__ import annotations

import inspect
import json
import os
import runpy
import sys
import types
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def device_on_cpu() -> None:
    """The device of torchtitan is the CPU, of which it asks no memory."""
    import torch
    import torchtitan.tools.utils as tools

    tools.device_type, tools.device_module = "cpu", torch.cpu
    import torchtitan.distributed.parallel_dims as dims

    dims.device_type = "cpu"
    from torchtitan.components import metrics

    none = metrics.DeviceMemStats(*(0.0,) * 4, 0, 0)
    monitor = types.SimpleNamespace(
        device_name="cpu", device_capacity_gib=1.0, get_peak_stats=lambda: none, reset_peak_stats=lambda: None
    )
    metrics.device_type = "cpu"
    metrics.build_device_memory_monitor = lambda: monitor
    from torchtitan.distributed import utils

    # It waits at a barrier that names a CUDA device.
    utils.set_pg_timeouts = lambda *_, **__: None


def attention_on_cpu() -> None:
    """Flex attention as torch computes it without a kernel; its masks as they are made without a compiler."""
    import torch.nn.attention.flex_attention as flex
    from torchtitan.distributed import compile as compiling
    from torchtitan.models.common import attention

    # Only the compiled form has no backward pass on a CPU.
    flex._validate_device = lambda *_: None
    attention.FlexAttention._compiled_flex_attn = flex.flex_attention
    for name in [name for name in vars(attention) if "compiled_create_block_mask" in name]:
        setattr(attention, name, flex.create_block_mask)
    compiling._maybe_regional_inductor_backend = lambda _, backend: backend


def sums_on_gloo() -> None:
    """FSDP2's own switch for groups that cannot scale while they reduce: a plain sum, scaled apart."""
    from torch.distributed.fsdp import FSDPModule

    divide = FSDPModule.set_gradient_divide_factor

    def divided(self: Any, factor: float) -> None:
        divide(self, factor)
        self.set_force_sum_reduction_for_comms(True)

    FSDPModule.set_gradient_divide_factor = divided  # type: ignore[method-assign]


def micro_batches_to_schedules() -> None:
    """Schedules take lists of micro-batches, as the torch does that this release of torchtitan is written for.

    torchtitan 0.3.0 trainer.py:856 calls ``step(arg_mbs=, kwarg_mbs=, target_mbs=)`` (pytorch pull request 188500);
    torch 2.13.0 has that as ``_step_microbatches``, for which its own ``step`` cuts a whole batch.
    """
    from torch.distributed.pipelining import schedules

    for kind in (schedules.PipelineScheduleSingle, schedules.PipelineScheduleMulti):
        if "arg_mbs" not in inspect.signature(kind.step).parameters:
            kind.step = _step_of_micro_batches  # type: ignore[method-assign,assignment]


def _step_of_micro_batches(self: Any, **words: Any) -> None:
    for stage in getattr(self, "_stages", None) or [self._stage]:
        stage.has_backward = self._has_backward
        stage.clear_runtime_states()
    self._step_microbatches(**words)


def samples(vocabulary: int, total: int, rank: int, ranks: int, each: int, length: int) -> Iterator[Any]:
    """This rank's micro-batches for ever: sample k of the batch is the same tokens whatever the layout and the step."""
    import torch

    while True:
        for start in range(rank * each, total, each * ranks):
            drawn = [torch.Generator().manual_seed(start + offset) for offset in range(each)]
            tokens = torch.stack([torch.randint(0, vocabulary, (length + 1,), generator=one) for one in drawn])
            positions = torch.arange(length, dtype=torch.int32).expand(each, -1).contiguous()
            yield {"input": tokens[:, :-1].contiguous(), "positions": positions}, tokens[:, 1:].contiguous()


def data_on_cpu(vocabulary: int, total: int) -> None:
    """A loader of such samples, and no tokenizer."""
    from torchtitan.components import tokenizer
    from torchtitan.hf_datasets import text_datasets

    def loader(self: Any, *, dp_world_size: int, dp_rank: int, seq_len: int, local_batch_size: int, **_: Any) -> Any:
        return samples(vocabulary, total, dp_rank, dp_world_size, local_batch_size, seq_len)

    text_datasets.HuggingFaceTextDataLoader.Config.build = loader
    for name in ("HuggingFaceTokenizer", "BaseTokenizer"):
        getattr(tokenizer, name).Config.build = lambda self, **_: None


def fill(model: Any) -> None:
    """Every weight from its name and the global index of each element."""
    import torch
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    for name, weight in model.named_parameters():
        plain = name.replace("_checkpoint_wrapped_module.", "").replace("_orig_mod.", "")
        local, offsets = weight, (0,) * weight.dim()
        if isinstance(weight, DTensor):
            local = weight.to_local()
            _, offsets = compute_local_shape_and_global_offset(weight.shape, weight.device_mesh, weight.placements)
        index = torch.zeros((), dtype=torch.float64)
        for size, begin, length in zip(weight.shape, offsets, local.shape, strict=True):
            index = index[..., None] * size + torch.arange(begin, begin + length, dtype=torch.float64)
        noise = torch.frac(torch.sin(index * 12.9898 + zlib.crc32(plain.encode()) % 1000) * 43758.5453)
        local.detach().copy_((0.04 * noise + ("norm" in plain)).reshape(local.shape))


def weights_and_losses(answers: Any) -> None:
    """Fill each part of the model once it is initialised; print each step's loss where it is known."""
    import torch
    from torchtitan.components import metrics
    from torchtitan.protocols.model import BaseModel
    from torchtitan.trainer import Trainer

    begin, step = BaseModel.init_weights, Trainer.train_step

    def init_weights(self: Any, **words: Any) -> None:
        begin(self, **words)
        with torch.no_grad():
            fill(self)

    def log(self: Any, number: int, loss: float, *_: Any, **__: Any) -> None:
        if print_here[0]:
            print(json.dumps({"step": number, "loss": loss}), file=answers, flush=True)

    def train_step(self: Any, data: Any) -> None:
        dims = self.parallel_dims
        print_here[0] = self.pp_has_last_stage if dims.pp_enabled else True
        step(self, data)

    print_here = [True]
    BaseModel.init_weights = init_weights
    metrics.MetricsProcessor.log = log
    metrics.MetricsProcessor.should_log = lambda self, number: True
    Trainer.train_step = train_step


def main() -> None:
    """Prepare, then hand over to ``python -m torchtitan.train``."""
    overlay, vocabulary, batch, *words = sys.argv[1:]
    # Our own folder holds modules named as the standard library's or torchtitan's.
    own = str(Path(__file__).parent)
    sys.path[:] = [overlay, *(path for path in sys.path if path != own)]
    sys.path.insert(0, os.getcwd())
    from planner.backends.checking.answers import FeignedModules
    from planner.backends.torchtitan.validator_worker import STUBS

    FeignedModules(*STUBS)
    device_on_cpu()
    attention_on_cpu()
    sums_on_gloo()
    micro_batches_to_schedules()
    data_on_cpu(int(vocabulary), int(batch))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    weights_and_losses(answers)
    at = words.index("torchtitan.train")
    sys.argv = ["torchtitan.train", *words[at + 1 :]]
    runpy.run_module("torchtitan.train", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
