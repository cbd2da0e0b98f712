"""Writes a torchtitan run: a configuration in the release's dialect, ``train.sh``, launcher files."""

from __future__ import annotations

from planner.backends.emission.emission import BackEndFiles, Finding
from planner.backends.emission.refusal import refused
from planner.backends.rules.rule import rule_input
from planner.backends.rules.training_recipe import routing, stretch
from planner.backends.torchtitan.config_module import MODULE_FILE, module_text
from planner.backends.torchtitan.space import TABLE, TOML_TABLE
from planner.backends.torchtitan.toml_config import CONFIG_FILE, MODEL_FILE, config_text, model_text
from planner.backends.torchtitan.train_script import TRAIN_SCRIPT, train_script
from planner.backends.torchtitan.version import PIPELINE_TORCH, TOML_VERSION, TORCHTITAN_VERSION
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan


def write(plan: Plan, version: str) -> BackEndFiles:
    """The files that every rank needs.

    Raises BackEndRefused with every violated rule when torchtitan cannot run the plan.
    """
    findings = violations_for(plan, version)
    if findings:
        raise refused(f"torchtitan {version}", f"torchtitan=={version}", findings)
    files = {TRAIN_SCRIPT: train_script(version, pipeline=plan.chosen().pp > 1)}
    if version == TOML_VERSION:
        files |= {CONFIG_FILE: config_text(plan), MODEL_FILE: model_text(plan)}
    else:
        files[MODULE_FILE] = module_text(plan)
    return BackEndFiles(
        files=files,
        script=TRAIN_SCRIPT,
        version=version,
        versions={"torchtitan": version},
        # Long runs with changing sizes (experts) fragment the allocator without it.
        environment={"PYTORCH_ALLOC_CONF": "expandable_segments:True"},
        executables=frozenset({TRAIN_SCRIPT}),
        assumptions=assumptions(plan, version),
    )


def violations_for(plan: Plan, version: str) -> list[Finding]:
    """All rules that a whole plan breaks in a release."""
    table = TOML_TABLE if version == TOML_VERSION else TABLE
    return table.violations(rule_input(plan))


def assumptions(plan: Plan, version: str) -> tuple[str, ...]:
    """What must hold for the files to do what the plan says."""
    s, model, workload = plan.chosen(), plan.problem.model, plan.problem.workload
    lines = [
        f"torchtitan {version} is installed on every node; tokenizer, data and steps are yours, in TRAIN_ARGS.",
        f"Weights start at random. Rotary positions use base {model.rotary_base:g}, {_stretched(model)}.",
        "Layers and loss are compiled (torch.compile).",
    ]
    if version == TORCHTITAN_VERSION:
        lines.append("spmd_backend partial_dtensor runs on torch 2.13; the default, spmd_types, needs a newer one.")
    if version == TORCHTITAN_VERSION and s.pp > 1:
        lines.append(f"Pipelines need torch {PIPELINE_TORCH} or newer (pytorch pull request 188500); train.sh looks.")
    if s.recompute == "selective":
        lines.append("torchtitan's selection recomputes every second matrix product too: less memory, more time.")
    if workload.gradient_dtype == "bf16":
        lines.append("Gradients are reduced and kept in fp32, not in bf16: FSDP2's only setting here.")
    if workload.precision == "fp8":
        lines.append("8-bit matrix products are scaled by rows (torchao); head and attention stay in bf16.")
    if s.dp * s.cp > 1 and s.zero_stage in (1, 2):
        lines.append("Parameters stay gathered from a step's first forward to its last backward pass.")
    recipe = routing(model)
    if recipe is not None:
        lines.append(
            "Experts run dropless over the standard dispatcher, balanced by a bias on the scores (updated by 0.001 a"
            f" step, torchtitan's default) and by no loss; chosen scores are"
            f" {'' if recipe.normalizes else 'not '}normalised."
        )
        if recipe.scaling_factor is None:
            lines.append("YOURS: router_route_scale (0.2.2: route_scale), which is 1: not known for this size.")
        elif recipe.scaling_factor != 1.0:
            lines.append(f"The routed experts' output is scaled by {recipe.scaling_factor:g}, as in the family.")
    return tuple(lines)


def _stretched(model: ModelSpec) -> str:
    found = stretch(model)
    return (
        f"scaled by {found.factor:g} for a long context ({found.source})" if found else "without long-context scaling"
    )
