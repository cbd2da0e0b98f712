"""Holds the units that the emitted script cuts into stages against the transformers model as a whole.

``python deepspeed_stage_worker.py DIRECTORY...`` prints, for each directory of emitted files, one JSON object: the
largest difference of the logits, both parameter counts, and whether AutoTP understands the class's sharding plan.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any


def load(directory: Path) -> Any:
    """The emitted script as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"emitted_{directory.name}", directory / "train_deepspeed.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare(directory: Path) -> dict[str, Any]:
    """Same weights, same tokens, once through the whole model and once through the units."""
    import torch
    from deepspeed.module_inject.tp_plan_converter import TPPlanConverter
    from deepspeed.pipe import TiedLayerSpec
    from deepspeed.runtime.tensor_parallel.config import _get_hf_tp_plan

    script = load(directory)
    plan, config = script.read("training.json"), script.read("ds_config.json")
    plan["dtype"] = "float32"
    whole = script.build_whole(plan, config, None, 7)
    try:
        sharding = _get_hf_tp_plan(whole)
        autotp = bool(sharding) and TPPlanConverter.convert(sharding) is not None
    except ValueError:
        autotp = False
    answer = {"parameters": sum(each.numel() for each in whole.parameters()), "autotp": autotp}
    if not hasattr(whole.base_model, "embed_tokens"):
        return answer
    tied: dict[str, Any] = {}
    steps = []
    for unit in script.units(plan, 7):
        if isinstance(unit, TiedLayerSpec):
            module = tied.setdefault(unit.key, None) or unit.build()
            tied[unit.key] = module
            steps.append((module, unit.forward_fn))
        else:
            steps.append((unit.build(), None))
    tokens = torch.randint(0, 128, (2, 24), generator=torch.Generator().manual_seed(3))
    hidden = tokens
    for module, forward in steps:
        hidden = forward(module, hidden) if forward else module(hidden)
    logits = whole(input_ids=tokens, use_cache=False).logits
    modules = {id(module): module for module, _ in steps}.values()
    return answer | {
        "difference": (hidden - logits).abs().max().item(),
        "spread": logits.std().item(),
        "unit_parameters": sum(each.numel() for module in modules for each in module.parameters()),
    }


def main() -> None:
    """One line a directory."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # DeepSpeed logs to stdout
    for name in sys.argv[1:]:
        answers.write(json.dumps(compare(Path(name))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
