"""Counts what DeepSpeed's ZeRO holds on a CPU: ``python deepspeed_memory_worker.py CASE...``, a JSON object a line.

A case is a JSON object: ``stage``, ``gradients``, ``overlap``.  One rank of ``RANKS``, whose collectives do nothing
(torch's fake process group), trains a stack of matrices for two steps of two micro-batches; every storage that an
operator makes is followed until it is freed.  Of the second step the answer has the most bytes a parameter alive
inside a backward pass and inside ``step``.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

WIDTH = 64
LAYERS = 12
BUCKET_ELEMENTS = 2 * WIDTH * WIDTH
LIVE_ELEMENTS = 4 * WIDTH * WIDTH
RANKS = 64


def tracker() -> Any:
    """A dispatch mode that knows the most bytes alive since ``most`` was set to 0."""
    import torch
    from torch.multiprocessing.reductions import StorageWeakRef
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Alive(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.storages: dict[int, tuple[StorageWeakRef, int]] = {}
            self.most = 0

        def add(self, tensors: Any) -> None:
            for tensor in tree_leaves(tensors):
                if isinstance(tensor, torch.Tensor):
                    storage = tensor.untyped_storage()
                    held = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
                    self.storages[storage._cdata] = (held, storage.nbytes())
            freed = [key for key, (held, _) in self.storages.items() if held.expired()]  # type: ignore[no-untyped-call]
            for key in freed:
                del self.storages[key]
            self.most = max(self.most, sum(size for _, size in self.storages.values()))

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = kwargs or {}
            out = func(*args, **given)
            self.add((args, given, out))
            return out

    return Alive()


def config_of(case: dict[str, Any]) -> dict[str, Any]:
    """The configuration of DeepSpeed."""
    gradients = case["gradients"]
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 2,
        "optimizer": {"type": "AdamW", "params": {"torch_adam": True, "fused": True}},
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {
            "stage": case["stage"],
            "overlap_comm": case["overlap"],
            "reduce_bucket_size": BUCKET_ELEMENTS,
            "stage3_max_reuse_distance": LIVE_ELEMENTS,
            "stage3_max_live_parameters": LIVE_ELEMENTS,
            "stage3_prefetch_bucket_size": WIDTH * WIDTH if case["overlap"] else 0,
            "stage3_param_persistence_threshold": 0,
        },
        "bf16": {"enabled": True},
        "data_types": {"grad_accum_dtype": gradients},
        "communication_data_type": gradients,
    }


def count(case: dict[str, Any]) -> dict[str, float]:
    """Bytes a parameter alive at most."""
    import deepspeed
    import torch

    model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))
    engine, *_ = deepspeed.initialize(model=model, config=config_of(case), model_parameters=model.parameters())
    alive = tracker()
    answer = {"backward": 0.0, "step": 0.0}
    with alive:
        for number in range(4):
            loss = engine(torch.ones(1, WIDTH, dtype=torch.bfloat16)).sum()
            alive.most = 0
            engine.backward(loss)
            answer["backward"] = max(answer["backward"], alive.most) if number >= 2 else 0.0
            alive.most = 0
            engine.step()
            answer["step"] = alive.most
    parameters = LAYERS * WIDTH * WIDTH
    return {name: value / parameters for name, value in answer.items()}


def main() -> None:
    """One line a case."""
    os.environ |= {"DS_ACCELERATOR": "cpu", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": str(RANKS)}
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # DeepSpeed logs to stdout
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    for case in sys.argv[1:]:
        answers.write(json.dumps(count(json.loads(case))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
