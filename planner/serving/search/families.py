"""What a question leaves open besides layouts: engines, their releases and number formats."""

from __future__ import annotations

from itertools import product

from planner.serving.engines.facts import model_facts
from planner.serving.engines.registry import ENGINES
from planner.serving.layout import Formats, InstanceGroup
from planner.serving.problem import ServingProblem
from planner.serving.search.curves import Family, Refusal
from planner.serving.words import CacheFormat, EngineName
from profiles.errors import DocumentInvalid


def families_of(problem: ServingProblem) -> tuple[Family, ...]:
    """Engine releases and formats that are searched.  Raises DocumentInvalid for a release that is not known."""
    constraints = problem.constraints
    weights = constraints.weights or (problem.checkpoint,)
    caches = constraints.kv_cache or caches_of(problem)
    formats = [
        Formats(weights=each, experts=problem.expert_checkpoint if each == problem.checkpoint else None, kv_cache=cache)
        for each, cache in product(weights, caches)
    ]
    return tuple(Family(engine, release, each) for (engine, release), each in product(releases_of(problem), formats))


def releases_of(problem: ServingProblem) -> list[tuple[EngineName, str]]:
    """(engine, release) of the question: the pinned release of each engine, or those that are said."""
    found: list[tuple[EngineName, str]] = []
    for said in problem.constraints.engines or tuple(ENGINES):
        name, _, release = said.partition("==")
        engine = ENGINES.get(name)  # type: ignore[call-overload]
        if engine is None:
            raise DocumentInvalid(
                f"there is no engine {name} here", where="engines", hint=f"engines: {', '.join(ENGINES)}"
            )
        if release and release not in engine.releases:
            raise DocumentInvalid(
                f"{name} {release} is not known", where="engines", hint=f"releases: {', '.join(engine.releases)}"
            )
        found.append((engine.name, release or engine.releases[0]))
    return found


def caches_of(problem: ServingProblem) -> tuple[CacheFormat, ...]:
    """Formats of keys and values on the device: 8 bit where it multiplies in 8 bit."""
    device = problem.cluster.pools[0].device
    return ("fp8", "bf16") if "fp8" in device.peak_flops_per_s else ("bf16",)


def refusal_of(problem: ServingProblem) -> Refusal:
    """The rules of the engines about groups on the cluster's devices."""
    facts, pool = model_facts(problem.model), problem.cluster.pools[0]

    def refusal(family: Family, group: InstanceGroup) -> str | None:
        return ENGINES[family.engine].refusal(
            facts,
            pool.device,
            family.release,
            family.formats,
            group,
            served=None,
            devices_per_node=pool.devices_per_node,
        )

    return refusal
