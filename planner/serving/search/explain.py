"""Why a deployment is the answer: what binds, why not the other kind, what another traffic would change."""

from __future__ import annotations

from planner.serving.layout import Deployment, InstanceGroup
from planner.serving.plan import RankedDeployment, ServingPlan, TrafficChange
from planner.serving.predict.prediction import Limit
from planner.serving.problem import ServingProblem
from planner.serving.search.amounts import model_amounts, request_amounts
from planner.serving.search.curves import Evaluator, Limits, prediction_meets
from planner.serving.traffic import Lengths, ServingTraffic
from planner.serving.words import WEIGHT_BYTES

GIB = 1 << 30
LIMIT_WORDS: dict[Limit, str] = {
    "kv_memory": "room for keys and values: more requests would wait for it",
    "prefill_compute": "the prompts' matmuls: most of the time goes to reading inputs",
    "decode_bandwidth": "memory bandwidth: a step reads the weights and all keys and values",
    "batch_limit": "the engine's limit of requests that run at once (max_num_sequences)",
    "token_budget": "the engine's limit of tokens in a step (max_num_batched_tokens)",
    "link": "the links between devices: collectives, or keys and values on their way",
    "arrivals": "nothing: everything that arrives is answered",
}
ARTICLES = {"aggregated": "An", "prefill": "A", "decode": "A"}
CHANGES = (("input x 0.5", 0.5, 1.0), ("input x 2", 2.0, 1.0), ("output x 0.5", 1.0, 0.5), ("output x 2", 1.0, 2.0))


def layout_words(group: InstanceGroup) -> str:
    """An instance in short: ``tp=4, ep=8``."""
    degrees = {name: value for name, value in group.layout.model_dump().items() if value > 1}
    return ", ".join(f"{name}={value}" for name, value in degrees.items()) or "one device"


def settings_words(group: InstanceGroup) -> str:
    """What an instance is told besides its axes: ``max_num_batched_tokens=2048``; empty = the engine's own."""
    usual = type(group.settings)()
    said = {name: value for name, value in group.settings.model_dump().items() if value != getattr(usual, name)}
    return ", ".join(f"{name}={value}" for name, value in said.items())


def deployment_words(deployment: Deployment) -> str:
    """A deployment in short: ``2 prefill (tp=4) + 1 decode (tp=8, max_num_sequences=1024)``."""
    return " + ".join(
        f"{group.num_instances} {group.role} ({', '.join(filter(None, (layout_words(group), settings_words(group))))})"
        for group in deployment.groups
    )


def why(problem: ServingProblem, best: RankedDeployment) -> tuple[str, ...]:
    """Sentences: the memory of an instance, what binds each group, and which promise is the nearest to its limit."""
    amounts, request = model_amounts(problem.model), request_amounts(problem.traffic)
    deployment, prediction = best.deployment, best.prediction
    formats = deployment.formats
    dense = (amounts.attention_weights + amounts.other_weights) * WEIGHT_BYTES[formats.weights]
    matrices = (dense + amounts.expert_weights * WEIGHT_BYTES[formats.of_experts]) / GIB
    memory = problem.cluster.pools[0].device.memory_bytes / GIB
    lines = [
        f"The matrices take {matrices:,.0f} GiB ({formats.weights}"
        + (f", experts {formats.of_experts}" if amounts.num_experts else "")
        + f"); a device has {memory:,.0f} GiB, so an instance needs at least"
        f" {max(1, -(-int(matrices * 1000) // int(memory * 1000)))} of them"
    ]
    for group, instance in zip(deployment.groups, prediction.instances, strict=False):
        words = f"{ARTICLES[group.role]} {group.role} instance ({layout_words(group)})"
        weights, cache = instance.weight_bytes / GIB, instance.cache_bytes / GIB
        held = instance.cache_tokens / max(request.context_tokens, 1)
        lines.append(
            f"{words} keeps {weights:,.1f} GiB of weights and {cache:,.1f} GiB of keys and values a device:"
            f" {instance.cache_tokens:,} tokens, or {held:,.0f} requests of mean length"
        )
    if prediction.bound_by is not None:
        lines.append(f"What binds is {LIMIT_WORDS[prediction.bound_by]}")
    nearest = _nearest_promise(problem, prediction_times(best))
    return (*lines, *nearest)


def prediction_times(line: RankedDeployment) -> dict[str, float]:
    """Times at the percentiles that are promised or usual, by name and percentile: ``ttft p90``."""
    found = {}
    for name in ("ttft", "tpot", "end_to_end"):
        spread = getattr(line.prediction, name)
        for percentile in (50, 90, 95, 99):
            if spread is not None:
                found[f"{name} p{percentile}"] = float(getattr(spread, f"p{percentile}_s"))
    return found


def _nearest_promise(problem: ServingProblem, times: dict[str, float]) -> tuple[str, ...]:
    from planner.serving.search.curves import limits_of

    limits = limits_of(problem.promised)
    used = {
        name: times[f"{name} p{limits.percentile}"] / limit
        for name, limit in (("ttft", limits.ttft_s), ("tpot", limits.tpot_s), ("end_to_end", limits.end_to_end_s))
        if limit is not None and f"{name} p{limits.percentile}" in times
    }
    if not used:
        return ()
    name, share = max(used.items(), key=lambda item: item[1])
    return (f"Of the promises {name} is the nearest to its limit: {share:.0%} of it at the {limits.percentile}th"
            " percentile",)  # fmt: skip


def why_not_other_kind(problem: ServingProblem, lines: list[RankedDeployment]) -> str:
    """The best of the other kind, and how much less it gives; or why there is none.  ``lines``: the best first."""
    best = lines[0]
    other = "aggregated" if best.deployment.disaggregated else "disaggregated"
    if problem.constraints.disaggregation != "any":
        return f"{other} deployments were not asked for"
    found = next((each for each in lines if each.deployment.disaggregated != best.deployment.disaggregated), None)
    if found is None or not found.meets:
        return f"of the {other} deployments that were evaluated none keeps the promises on these devices"
    words = f"the best {other} one, {deployment_words(found.deployment)} of {found.deployment.engine}"
    if problem.traffic.requests_per_s is not None:
        return f"{words}, needs {found.deployment.num_devices:,} devices"
    mine, its = best.prediction.output_tokens_per_s, found.prediction.output_tokens_per_s
    return f"{words}, gives {its:,.0f} instead of {mine:,.0f} output tokens a second ({its / mine - 1:+.0%})"


def traffic_changes(
    problem: ServingProblem, evaluator: Evaluator, best: RankedDeployment, limits: Limits
) -> tuple[TrafficChange, ...]:
    """The same deployment at the same load when requests get shorter or longer."""
    lines = []
    for words, inputs, outputs in CHANGES:
        traffic = _scaled(problem.traffic, inputs, outputs)
        if traffic.requests_per_s is None and traffic.all_at_once is None:
            traffic = traffic.model_copy(update={"concurrency": max(1, int(best.concurrency))})
        prediction = evaluator.predicted(best.deployment, traffic)
        name = f"p{limits.percentile}_s"
        lines.append(
            TrafficChange(
                change=words,
                ttft_s=None if prediction.ttft is None else getattr(prediction.ttft, name),
                tpot_s=None if prediction.tpot is None else getattr(prediction.tpot, name),
                output_tokens_per_s=prediction.output_tokens_per_s,
                meets=prediction_meets(prediction, limits),
            )
        )
    return tuple(lines)


def _scaled(traffic: ServingTraffic, inputs: float, outputs: float) -> ServingTraffic:
    return traffic.model_copy(
        update={
            "input_tokens": _lengths(traffic.input_tokens, inputs),
            "output_tokens": _lengths(traffic.output_tokens, outputs),
        }
    )


def _lengths(lengths: Lengths, factor: float) -> Lengths:
    return lengths.model_copy(
        update={
            "mean": None if lengths.mean is None else max(lengths.mean * factor, 1.0),
            "low": None if lengths.low is None else max(round(lengths.low * factor), 1),
            "high": None if lengths.high is None else max(round(lengths.high * factor), 1),
            "tokens": tuple(max(round(each * factor), 1) for each in lengths.tokens),
        }
    )


def lag_words(plan: ServingPlan, other: RankedDeployment, refused: tuple[str, ...]) -> tuple[str, ...]:
    """Why another deployment is not the answer: refused by its engine, no room, a broken promise, less of the goal."""
    from planner.serving.search.curves import limits_of

    best, lines = plan.best, list(refused)
    if not other.prediction.fits:
        return (*lines, f"it does not fit: {other.prediction.reason}")
    limits = limits_of(plan.problem.promised)
    times = prediction_times(other)
    for name, limit in (("ttft", limits.ttft_s), ("tpot", limits.tpot_s), ("end_to_end", limits.end_to_end_s)):
        seen = times.get(f"{name} p{limits.percentile}")
        if limit is not None and seen is not None and seen > limit:
            lines.append(
                f"it breaks the promise of {name}: {seen:.4g} s at the {limits.percentile}th percentile,"
                f" not {limit:g} s"
            )
    asked = plan.problem.traffic.requests_per_s
    if asked is not None:
        answers = other.prediction.requests_per_s
        if answers < 0.98 * asked:
            return (*lines, f"it answers {answers:,.3g} requests a second of the {asked:g} that arrive")
        return (*lines, f"it takes {other.deployment.num_devices:,} devices, the plan {best.deployment.num_devices:,}")
    mine, its = best.prediction.output_tokens_per_s_per_device, other.prediction.output_tokens_per_s_per_device
    rates = f"{its:,.1f} output tokens a second and device used, the plan {mine:,.1f}"
    lines.append(f"it gives {1 - its / mine:.0%} less: {rates}" if its < mine else f"it gives {rates}")
    if other.prediction.bound_by is not None:
        lines.append(f"what binds it is {LIMIT_WORDS[other.prediction.bound_by]}")
    return tuple(lines)
