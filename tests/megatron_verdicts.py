"""Asks the real Megatron-LM about plans, whatever our rules say about them, and compares the two verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.backends.checking.validator import Verdict
from planner.backends.checking.worker import Worker
from planner.backends.emission.emission import Finding
from planner.backends.emission.layout import chunks_in_model_order, layout_of
from planner.backends.megatron.arguments import write_arguments
from planner.backends.megatron.environment import environment
from planner.backends.megatron.flags import sections
from planner.backends.megatron.validator import arguments_request, shell_words
from planner.backends.megatron.write import data_arguments, offloads_modules
from planner.plan.plan import Plan

REFUSING_STAGES = {
    "A": {"validate"},
    "B": {"validate", "config"},
    "C": {"groups"},
    "O": {"optimizer"},
    "D2": {"schedule"},
}
"""Where Megatron itself stops a plan that breaks a rule of this letter (or this rule); others are ours alone."""


def ask_megatron(
    worker: Worker,
    plan: Plan,
    environ: Mapping[str, str] | None = None,
    extra: Sequence[str] = (),
    ranks: Sequence[int] = (),
) -> Verdict:
    """Megatron's verdict on the arguments of a plan, and the parameters of ``ranks``."""
    architecture = plan.problem.cluster.pools[0].device.architecture
    wanted = environment(plan.chosen(), architecture, fine_grained_offload=offloads_modules(plan))
    arguments = [*shell_words(write_arguments(sections(plan))), *shell_words(data_arguments(plan)), *extra]
    seen = wanted if environ is None else environ
    request = arguments_request(arguments, plan.chosen().world_size, seen, architecture)
    return worker.ask({**request, "ranks": list(ranks)})


def disagreement(answer: Verdict, plan: Plan, findings: Sequence[Finding]) -> str | None:
    """How Megatron's verdict differs from our rules', None when it does not.

    It must stop where one of the violated rules says that it stops, and otherwise accept and derive the same numbers.
    """
    rules = {finding.rule.removeprefix("megatron.") for finding in findings}
    if "U3" in rules:
        # Megatron runs another number of micro-batches than the plan, so what follows from it is not comparable.
        rules.discard("D2")
        if answer.stage == "schedule":
            return None
    stages = [REFUSING_STAGES[key] for rule in rules for key in (rule, rule[0]) if key in REFUSING_STAGES]
    if stages:
        allowed = set().union(*stages)
        return None if answer.stage in allowed else f"{sorted(rules)} should stop it in {sorted(allowed)}: {answer}"
    if not answer.accepted:
        return f"our rules ({sorted(rules)}) let it pass, Megatron stops in {answer.stage}: {answer.message}"
    wanted = derived_facts(plan)
    if "U3" in rules:
        del wanted["num_microbatches"]
    found = {name: answer.facts[name] for name in wanted}
    return None if found == wanted else f"Megatron derives {found}, the plan says {wanted}"


def derived_facts(plan: Plan) -> dict[str, object]:
    """What Megatron should find out about an accepted plan."""
    strategy = plan.chosen()
    names = ("dp", "num_microbatches", "vpp", "tp", "ep", "etp", "cp", "sp")
    facts: dict[str, object] = {name: getattr(strategy, name) for name in names}
    facts["layers_per_chunk"] = [chunk.num_layers for chunk in chunks_in_model_order(layout_of(plan))]
    facts["recompute_granularity"] = None if strategy.recompute == "none" else strategy.recompute
    if strategy.zero_stage:
        facts["optimizer_shards"] = strategy.dp_shard * strategy.cp
    return facts
