"""Writes a Megatron-Bridge run: ``overrides.txt`` + ``bridge_recipe.py`` + ``bridge_train.py``."""

from __future__ import annotations

from pathlib import Path

from planner.backends.emission.emission import BackEndFiles
from planner.backends.emission.refusal import refused
from planner.backends.megatron.environment import environment
from planner.backends.megatron.flags import sections
from planner.backends.megatron.model_flags import model_flags
from planner.backends.megatron.model_rules import QUICK_GELU
from planner.backends.megatron.token_mixers import way
from planner.backends.megatron.version import MEGATRON_CORE_VERSION
from planner.backends.megatron.write import (
    dispatch_assumptions,
    mixer_assumptions,
    offloads_modules,
    overlap_assumptions,
)
from planner.backends.megatron_bridge.adapters import CLASSES, adapter_class, adapter_fields
from planner.backends.megatron_bridge.overrides import OVERRIDES_FILE, overrides_text
from planner.backends.megatron_bridge.space import TABLE
from planner.backends.megatron_bridge.version import BRIDGE_VERSION
from planner.backends.rules.fp8_parameters import weights_kept
from planner.backends.rules.optimizer_recipe import filled
from planner.backends.rules.rule import latent, mixture, rule_input, used_kinds
from planner.backends.rules.token_mixers import softmax_attention
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.question.problem import Workload

RECIPE_FILE = "bridge_recipe.py"
TRAIN_SCRIPT = "bridge_train.py"
_TYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8": "uint8"}
"""Megatron's words for number formats as torch types (megatron-core 0.19.2 training/arguments.py:1043)."""


def write(plan: Plan, version: str) -> BackEndFiles:
    """The files that every rank needs.

    Raises BackEndRefused with every violated rule when Bridge cannot run the plan.
    """
    findings = TABLE.violations(rule_input(plan))
    if findings:
        raise refused("Megatron-Bridge", "megatron-bridge", findings)
    architecture = plan.problem.cluster.pools[0].device.architecture
    variables = environment(plan.chosen(), architecture, fine_grained_offload=offloads_modules(plan))
    return BackEndFiles(
        files={
            OVERRIDES_FILE: overrides_text(sections(plan), variables, version),
            RECIPE_FILE: recipe(plan),
            TRAIN_SCRIPT: (Path(__file__).parent / "train.py.txt").read_text(encoding="utf-8"),
        },
        script=TRAIN_SCRIPT,
        version=version,
        versions={"megatron-bridge": version, "megatron-core": MEGATRON_CORE_VERSION},
        environment=variables,
        assumptions=_assumptions(plan),
    )


def recipe(plan: Plan) -> str:
    """``bridge_recipe.py``: what overrides cannot say, filled into a file that is the same for all plans."""
    model, workload = plan.problem.model, plan.problem.workload
    values = {
        "PROVIDER": provider(model),
        "ACTIVATION": _activation(plan),
        "PRECISION": "fp16_mixed" if workload.precision == "fp16" else "bf16_mixed",
        "FUSIONS": fusions(plan),
        "STATES": _states(workload),
        "VOCABULARY": model.vocab_size,
        "LAYERS": model.num_layers,
        "HIDDEN": model.hidden_size,
        "HEADS": (softmax_attention(model) or used_kinds(model)[0].attention).num_heads,
        "TOKENS": workload.sequence_length,
        **_mixers(model),
        **_adapters(plan),
    }
    text = (Path(__file__).parent / "recipe.py.txt").read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return filled(text)


def _states(workload: Workload) -> str:
    """Number formats of the optimizer's states, of those that are not Bridge's own."""
    said = workload.optimizer_states
    if said is None:
        kinds = dict.fromkeys(("exp_avg_dtype", "exp_avg_sq_dtype"), "bf16")
        kinds = kinds if workload.optimizer == "adam_bf16_states" else {}
    else:
        kinds = {"exp_avg_dtype": said.first, "exp_avg_sq_dtype": said.second, "main_params_dtype": said.master}
    return "{" + ", ".join(f'"{name}": torch.{_TYPES[kind]}' for name, kind in kinds.items()) + "}"


def provider(model: ModelSpec) -> str:
    """Bridge's class of the model."""
    if way(model) == "pattern":
        return "HybridModelProvider"
    return "MLAModelProvider" if latent(model) else "GPTModelProvider"


def _mixers(model: ModelSpec) -> dict[str, str]:
    """The lines of a recipe with other token mixers than attention; without them they are empty.

    As Bridge's own providers of such models have them (models/qwen/qwen3_next_bridge.py:80-94,
    models/glm_moe_dsa/glm5_bridge.py:75-79).
    """
    lines = dict.fromkeys(("PROVIDER_IMPORT", "LAYER_IMPORT", "LAYER_SPEC", "LAYER_WORDS"), "")
    found = way(model)
    if found == "pattern":
        module = "megatron.bridge.models.hybrid.hybrid_provider"
        lines["PROVIDER_IMPORT"] = f"from {module} import HybridModelProvider\n"
    elif found != "gpt":
        name = "get_transformer_block_with_experimental_attention_variant_spec"
        module = "megatron.core.models.gpt.experimental_attention_variant_module_specs"
        lines["LAYER_IMPORT"] = f"from {module} import (\n    {name},\n)\n"
        lines["LAYER_SPEC"] = f'LAYERS = {{"transformer_layer_spec": {name}, "hetereogenous_dist_checkpoint": True}}\n'
        lines["LAYER_WORDS"] = "**LAYERS, "
    return lines


def _adapters(plan: Plan) -> dict[str, str]:
    """The lines of a recipe with adapters; without them they are empty."""
    training = plan.problem.workload.trained
    if not training.adapters:
        return dict.fromkeys(("OS", "ADAPTER_IMPORT", "ADAPTERS", "CHECKPOINT", "PEFT"), "")
    name = adapter_class(training)
    fields = "".join(
        f"    {key!r}: {value!r},\n" for key, value in adapter_fields(training, plan.problem.model).items()
    )
    return {
        "OS": "import os\n",
        "ADAPTER_IMPORT": f"from megatron.bridge.peft.{CLASSES[name]} import {name}\n",
        "ADAPTERS": (
            "# Adapters beside the frozen base.  YOUR base: MODEL_PATH, a Megatron or Hugging Face checkpoint folder.\n"
            f"ADAPTERS = {name}\nADAPTER_FIELDS = {{\n{fields}}}\n".replace("'", '"')
        ),
        "CHECKPOINT": 'pretrained_checkpoint=os.environ.get("MODEL_PATH")',
        "PEFT": "        peft=ADAPTERS(**ADAPTER_FIELDS),\n",
    }


def fusions(plan: Plan) -> dict[str, bool]:
    """The fusions that Megatron-LM's command line turns on where nobody says no.

    megatron-core 0.19.2 training/argument_utils.py:303-319 and training/arguments.py:1549-1574 and 2750-2768: the
    activation's with a gated SiLU, and with GELU where linear layers have biases; the rotary one with rotary positions.
    """
    flags = model_flags(plan.problem.model, plan.problem.workload)
    with_bias = "--disable-bias-linear" not in flags and "--squared-relu" not in flags
    return {
        "bias_activation_fusion": "--swiglu" in flags or with_bias,
        "bias_dropout_fusion": True,
        "masked_softmax_fusion": True,
        "apply_rope_fusion": flags["--position-embedding-type"] == ("rope",) and "--no-rope-fusion" not in flags,
        "persist_layer_norm": True,
    }


def _activation(plan: Plan) -> str:
    model = plan.problem.model
    if model.family == "gpt_oss" or model.activation_function == QUICK_GELU:
        return '__import__("megatron.core.activations", fromlist=["quick_gelu"]).quick_gelu'
    if model.activation_function == "relu2":
        return '__import__("megatron.core.activations", fromlist=["squared_relu"]).squared_relu'
    gated = any(part.gated for kind in used_kinds(model) for part in (kind.mlp, kind.moe) if part)
    return f"torch.nn.functional.{'silu' if gated else 'gelu'}"


def _assumptions(plan: Plan) -> tuple[str, ...]:
    lines = [
        f"Megatron-Bridge {BRIDGE_VERSION} runs with its own megatron-core, Transformer Engine and Python 3.12.",
        f"{RECIPE_FILE} trains on mock data; {OVERRIDES_FILE} can be given to another recipe of the same model, whose"
        " comm_overlap and mixed_precision sections must then be objects, not empty or names.",
        f"Learning rate and optimizer are in {RECIPE_FILE}, the same for all back-ends; initialisation is Bridge's.",
    ]
    lines += weights_kept(plan.problem.workload, plan.chosen(), "fp8_param_gather")
    flag, field = "--dsa-indexer-loss-coeff", "model.dsa_indexer_loss_coeff"
    lines += [line.replace(flag, field) for line in mixer_assumptions(plan)]
    lines += [*_adapter_assumptions(plan), *overlap_assumptions(plan)]
    if mixture(plan.problem.model):
        lines += dispatch_assumptions(plan)
    return tuple(lines)


def _adapter_assumptions(plan: Plan) -> tuple[str, ...]:
    training = plan.problem.workload.trained
    if not training.adapters:
        return ()
    lines = [
        f"{RECIPE_FILE}: adapters of Bridge's {adapter_class(training)}, alpha twice the rank, dropout 0; their base is"
        " loaded from MODEL_PATH, which must be set.",
        "The rank of adapters is split over tp as well, which the plan does not count as less memory.",
    ]
    if mixture(plan.problem.model):
        lines.append("Routed experts have no adapters.")
    if training.dora and not latent(plan.problem.model):
        lines.append("DoRA: one A serves q, k and v and one gate and up; the plan counts an A for each.")
    return tuple(lines)
