"""A back-end's rule and what it reads: the few facts that exist before a whole plan does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner.backends.emission.emission import Finding
from planner.backends.emission.layout import Layout, chunks_in_model_order, layout_of
from planner.model.spec import LayerSpec, ModelSpec, MoeSpec
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from profiles.cluster import Cluster


@dataclass(frozen=True, slots=True)
class RuleInput:
    """A strategy for a model and a workload on one kind of device.

    ``layers_per_chunk`` goes along the model, pp * vpp entries, None while the split is not decided; ``layout`` is
    there only for a whole plan.  Rules about what is missing are silent; ``scale_up_devices`` and
    ``device_memory_bytes`` are 0 while the cluster is not known.
    """

    strategy: Strategy
    model: ModelSpec
    workload: Workload
    architecture: str = ""
    layers_per_chunk: tuple[int, ...] | None = None
    layout: Layout | None = None
    scale_up_devices: int = 0
    device_memory_bytes: int = 0
    scale_up_kind: str = ""
    """As in ``profiles.cluster.ScaleUp``; empty while the cluster is not known."""
    nic_transport: str = ""
    """As in ``profiles.cluster.Pool``; empty while it is not known."""


@dataclass(frozen=True, slots=True)
class SpaceRule:
    """One rule: ``check`` says what is wrong and what would repair it, or None.

    ``fields``: the strategy fields that it is about, the first to blame first; none where it is about the model, the
    devices or the workload.
    """

    id: str
    source: str
    check: Callable[[RuleInput], str | None]
    fields: tuple[str, ...] = ()


def about_the_model(rule_id: str) -> bool:
    """Whether a rule says which models the files can build: the letter M in every room, ``megatron.M4`` too."""
    return rule_id.rpartition(".")[2].startswith("M")


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The rules of one back-end: those that depend on the model alone, and the others."""

    backend: str
    model_rules: Sequence[SpaceRule]
    strategy_rules: Sequence[SpaceRule]

    def violations(
        self, given: RuleInput, *, model_too: bool = True, only: Callable[[str], bool] = bool
    ) -> list[Finding]:
        """All rules that the strategy breaks; ``model_too=False`` leaves out those about the model alone.

        ``only``: those whose id it takes.
        """
        found = []
        for rule in (*self.model_rules, *self.strategy_rules) if model_too else self.strategy_rules:
            message = rule.check(given) if only(rule.id) else None
            if message is not None:
                found.append(Finding(f"{self.backend}.{rule.id}", message, rule.source, fields=rule.fields))
        return found

    def refuses(self, given: RuleInput) -> bool:
        """Whether the strategy breaks one of the rules that are not about the model alone."""
        return any(rule.check(given) is not None for rule in self.strategy_rules)


def rule_input(plan: Plan) -> RuleInput:
    """The rule's view of a whole plan."""
    layout, pool = layout_of(plan), plan.problem.cluster.pools[0]
    return RuleInput(
        strategy=plan.chosen(),
        model=plan.problem.model,
        workload=plan.problem.workload,
        architecture=pool.device.architecture,
        scale_up_devices=scale_up_devices(plan.problem.cluster),
        device_memory_bytes=pool.device.memory_bytes,
        scale_up_kind=pool.scale_up.kind,
        nic_transport=pool.nic_transport or "",
        layers_per_chunk=tuple(chunk.num_layers for chunk in chunks_in_model_order(layout)),
        layout=layout,
    )


def scale_up_devices(cluster: Cluster) -> int:
    """Devices that talk without a NIC: the scale-up domain, or the node where it has none or a smaller one."""
    pool = cluster.pools[0]
    domain = 1 if pool.scale_up.kind == "none" else pool.scale_up.domain_size
    return max(domain, pool.devices_per_node)


def used_kinds(model: ModelSpec) -> tuple[LayerSpec, ...]:
    """Layer kinds that really occur (in layers or MTP modules), in order of their index."""
    used = {run.kind for run in model.layer_runs} | ({model.mtp.kind} if model.mtp else set())
    return tuple(kind for index, kind in enumerate(model.layer_kinds) if index in used)


def mixtures(model: ModelSpec) -> tuple[MoeSpec, ...]:
    """Every distinct mixture of experts of the model; empty for a dense one."""
    return tuple(dict.fromkeys(kind.moe for kind in used_kinds(model) if kind.moe is not None))


def mixture(model: ModelSpec) -> MoeSpec | None:
    """The first mixture of experts of the model, None for a dense one."""
    return next(iter(mixtures(model)), None)


def latent(model: ModelSpec) -> bool:
    """Whether attention is DeepSeek's latent attention."""
    return any(kind.attention.kind == "mla" for kind in used_kinds(model))
