"""Writes a plan as a DeepSpeed run: three JSON files, one script, the launcher's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner.backends.deepspeed.adapters import ADAPTER_FILE, PEFT_VERSION, adapter_text
from planner.backends.deepspeed.config import CONFIG_FILE, ds_config
from planner.backends.deepspeed.model_config import model_config
from planner.backends.deepspeed.space import TABLE
from planner.backends.deepspeed.training_document import TRAINING_FILE, training_document, training_text
from planner.backends.emission.emission import BackEndFiles
from planner.backends.emission.refusal import refused
from planner.backends.rules.rule import mixtures, rule_input
from planner.backends.rules.training_recipe import routing
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan

MODEL_CONFIG_FILE = "model_config.json"


TRAIN_SCRIPT = "train_deepspeed.py"
ALLOCATOR = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
"""Without it pieces of freed memory are lost to a plan that fills the device; torch 2.8 knows this name alone."""
ADAPTER_LINES: tuple[tuple[str, str], ...] = (
    (
        "  training.json       what",
        "  adapter_config.json PEFT's own file: which matrices have adapters, and their rank\n"
        "  training.json       what",
    ),
    (
        "    model.train()\n    return model\n\n\n# --- pipeline",
        "    return with_adapters(model)\n\n\n"
        "def with_adapters(model):\n"
        '    """Adapters beside the frozen base, as adapter_config.json says, in the type of the base."""\n'
        "    from peft import LoraConfig, get_peft_model\n\n"
        "    # Recomputed layers give no gradients where none of their inputs asks for one.\n"
        "    model.enable_input_require_grads()\n"
        "    torch.manual_seed(int(os.environ.get('SEED', '1234')))  # the same adapters on every mesh\n"
        "    model = get_peft_model(model, LoraConfig.from_pretrained(str(HERE)), autocast_adapter_dtype=False)\n"
        "    model.train()\n    return model\n\n\n# --- pipeline",
    ),
    (
        "model=model, config=config, model_parameters=model.parameters(), mpu=groups\n",
        "model=model,\n        config=config,\n"
        "        model_parameters=[each for each in model.parameters() if each.requires_grad],\n        mpu=groups,\n",
    ),
)
"""What the script says instead where adapters learn."""
LOSS_CLASSES = ("mixtral", "qwen2_moe", "qwen3_moe")
"""Families whose transformers class has a balancing loss (5.23: router_aux_loss_coef is used in the model's file)."""


def write(plan: Plan, version: str) -> BackEndFiles:
    """The files that every rank needs.

    Raises BackEndRefused with every violated rule when DeepSpeed cannot run the plan.
    """
    findings = TABLE.violations(rule_input(plan))
    if findings:
        raise refused("DeepSpeed", "deepspeed", findings)
    training = plan.problem.workload.trained
    versions = {"deepspeed": version, "torch": "2.8 or newer", "transformers": "5"}
    files = {
        CONFIG_FILE: _text(ds_config(plan)),
        MODEL_CONFIG_FILE: _text(model_config(plan.problem.model)),
        TRAINING_FILE: training_text(training_document(plan)),
        TRAIN_SCRIPT: training_script(adapters=training.adapters),
    }
    if training.adapters:
        files[ADAPTER_FILE] = adapter_text(training)
        versions["peft"] = PEFT_VERSION
    return BackEndFiles(
        files=files,
        script=TRAIN_SCRIPT,
        version=version,
        versions=versions,
        environment=_environment(plan),
        assumptions=_assumptions(plan),
    )


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1) + "\n"


def _environment(plan: Plan) -> dict[str, str]:
    """TP and Ulysses overlap needs kernels to start in the order in which they were queued."""
    s = plan.chosen()
    return ALLOCATOR | ({"CUDA_DEVICE_MAX_CONNECTIONS": "1"} if s.overlap_tp else {})


def _assumptions(plan: Plan) -> tuple[str, ...]:
    s, model = plan.chosen(), plan.problem.model
    lines = [
        "Weights are random and the data synthetic; the script marks where yours go.",
        "model_config.json holds what the plan holds, and rope scaling and routing as published; dropout takes the"
        " transformers class's default.",
        "Attention runs through PyTorch's scaled_dot_product_attention.",
    ]
    if s.optimizer_offload:
        lines.append("DeepSpeed builds its CPU Adam at the first start: the nodes need a C++ compiler.")
    if s.tp > 1:
        lines.append("AutoTP shards a model that every rank first builds whole in host memory.")
    if s.schedule == "dualpipev":
        lines.append("DeepSpeed's DualPipeV does not defer weight gradients, so its bubble is larger than DualPipeV's.")
    if plan.problem.workload.trained.adapters:
        lines.append(
            f"{ADAPTER_FILE} is PEFT's own: alpha is twice the rank, dropout 0; the base is random until yours."
        )
    lines += routing_assumptions(model)
    if s.ep > 1:
        lines.append("Experts run through AutoEP without capacity limits; load imbalance is not planned for.")
    if mixtures(model) and s.ep == 1:
        lines.append("Without ep every rank holds and runs all experts of its samples.")
    return tuple(lines)


def routing_assumptions(model: ModelSpec) -> tuple[str, ...]:
    """What a transformers class does not do by itself for experts.

    The loss of mixtral and the Qwen classes is added where ``output_router_logits`` is true (modeling_qwen3_moe.py:652)
    and holds one number a token, layer, choice and expert, which no prediction counts; other classes have none.
    """
    recipe = routing(model)
    if recipe is None:
        return ()
    lines = []
    if model.family in LOSS_CLASSES:
        lines.append(
            "YOURS: nothing balances the experts until output_router_logits is true in model_config.json; the plan"
            f" takes them to be balanced and counts no memory for that loss (coefficient: {recipe.source})."
        )
    else:
        lines.append(
            "YOURS: nothing balances the experts, which the plan takes to be balanced: the transformers class has no"
            " balancing loss and updates no bias."
        )
    if recipe.scaling_factor is None:
        lines.append("YOURS: routed_scaling_factor in model_config.json, not known for this size.")
    return tuple(lines)


def training_script(*, adapters: bool = False) -> str:
    """The text of ``train_deepspeed.py``, a data file: this package must not import torch.

    The script builds a transformers model (data, tensor, sequence and expert parallelism), or a ``PipelineModule``
    whose ``_partition_layers`` is replaced by the plan's list (DeepSpeed has no explicit stage list:
    ``runtime/pipe/module.py:396``).  ``adapters``: with the lines that PEFT needs.
    """
    text = (Path(__file__).parent / f"{TRAIN_SCRIPT}.txt").read_text(encoding="utf-8")
    for before, after in ADAPTER_LINES if adapters else ():
        if text.count(before) != 1:
            raise AssertionError(f"{TRAIN_SCRIPT} has not one place for {before!r}")
        text = text.replace(before, after)
    return text
