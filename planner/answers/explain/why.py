"""The explanation of a plan: sentences from its numbers, causes, and what stops the next faster plan."""

from __future__ import annotations

from pydantic import Field

from planner.answers.diff import worst_stage
from planner.answers.explain.neighbours import Neighbour, neighbours
from planner.answers.explain.pools_ladder import pools_ladder
from planner.answers.explain.trust_ladder import Rung, trust_ladder
from planner.answers.over_pools import is_over_pools, split_sentences
from planner.backends.asked import physics_of, software_of
from planner.plan.communication_bill import Traffic, communication_bill
from planner.plan.limits import missing
from planner.plan.plan import Plan
from planner.plan.recommendation import UNSEARCHED, recommendation_sentence
from planner.predict.memory.fit_chance import chance_words
from planner.predict.physics.physics import TUNED
from planner.predict.step_terms import MEMORY_TERMS, term_words, told_terms
from planner.strategy.fields import DERIVED_FIELDS, value_words
from planner.strategy.strategy import Strategy
from profiles.document import Document

GIB = 2**30


class Cause(Document):
    """One term of the step time: what it costs and which choice makes it."""

    term: str
    seconds: float
    share: float = Field(description="of the step time")
    choice: str = Field(description="the part of the strategy that causes it")
    because: str


class MemoryCause(Document):
    """What fills the worst device."""

    stage: int
    total_bytes: int
    limit_bytes: int
    spare_bytes: int
    terms_bytes: dict[str, int] = Field(description="weights, gradients, optimizer, activations, buffers")
    binding: bool = Field(description="less than 5 % of the limit is left")
    fits_probability: float | None = Field(
        default=None, exclude_if=lambda value: value is None, description="as the plan's"
    )
    because: str


class Explanation(Document):
    """Three levels: ``sentences`` to read, ``causes`` and ``memory`` to look up, ``neighbours`` as the ledger."""

    schema_version: int = 1
    plan_id: str
    problem_id: str
    headline: str
    sentences: tuple[str, ...]
    causes: tuple[Cause, ...]
    memory: MemoryCause
    communication: tuple[Traffic, ...] = Field(
        default=(), description="payload of one rank of a stage and one step: see planner.plan.communication_bill"
    )
    neighbours: tuple[Neighbour, ...] = ()
    ladder: tuple[Rung, ...] = Field(
        default=(),
        description="beyond 512 devices, and over several kinds of them: cheap measurements that would settle the plan,"
        " in their order",
    )


def explain(plan: Plan, *, with_neighbours: bool = True) -> Explanation:
    """Explain a plan; ``with_neighbours`` re-estimates every strategy one move away (some tens of estimates)."""
    several = is_over_pools(plan)  # their stages have no neighbours of one move: the search decides them together
    ladder = (pools_ladder if several else trust_ladder)(plan) if with_neighbours else ()
    with_neighbours = with_neighbours and not several
    around = neighbours(plan) if with_neighbours else ()
    causes = _causes(plan)
    memory = _memory(plan)
    return Explanation(
        plan_id=plan.plan_id,
        problem_id=plan.problem.problem_id,
        headline=_headline(plan),
        sentences=tuple(
            sentence
            for sentence in (
                _proof_sentence(plan),
                *(split_sentences(plan) if several else ()),
                recommendation_sentence(plan),
                memory.because,
                _time_sentence(causes),
                _runner_up_sentence(plan),
                _next_step_sentence(plan, causes, around) if with_neighbours else "",
            )
            if sentence
        ),
        causes=causes,
        memory=memory,
        communication=communication_bill(plan, physics_of(plan)),
        neighbours=around,
        ladder=ladder,
    )


def _headline(plan: Plan) -> str:
    problem = plan.problem
    return (
        f"{problem.model.name} on {problem.cluster.num_devices:,} devices of {problem.cluster.name}: "
        f"{plan.step_time_s:.3f} s a step, {plan.model_flops_utilization:.1%} of the peak"
    )


def _proof_sentence(plan: Plan) -> str:
    if plan.status == "infeasible":
        told = "; ".join(missing(plan))
        return f"This strategy does not fit: {told}." if told else "This strategy breaks a limit of the problem."
    if plan.bound is None:
        return UNSEARCHED
    if plan.status == "optimal":
        were = "was" if plan.search.evaluated == 1 else "were"
        return (
            f"It is proved best: of {plan.search.enumerated:,} strategies, {plan.search.evaluated:,} {were} solved "
            f"exactly, and for the rest a lower bound or a rule shows that they cannot be faster."
        )
    gap = f"{plan.bound.gap:.1%}"
    if plan.outcome == "recommended":
        return f"No plan of the searched spaces is predicted to be more than {gap} faster, which is proved."
    return f"It is not proved best: a plan that is up to {gap} faster is not excluded."


def _causes(plan: Plan) -> tuple[Cause, ...]:
    strategy = plan.chosen()
    total = sum(plan.breakdown_s.values()) or 1.0
    causes = []
    for term, value in told_terms(plan.breakdown_s):
        choice, because = _reason(term, strategy, plan)
        causes.append(Cause(term=term, seconds=value, share=value / total, choice=choice, because=because))
    return tuple(causes)


def _reason(term: str, strategy: Strategy, plan: Plan) -> tuple[str, str]:
    """(choice, sentence) of a term of the breakdown."""
    s = strategy
    zero = f"dp={s.dp} zero={s.zero_stage}"
    table = {
        "compute": ("the model and the devices", _compute_words(plan)),
        "recompute": (f"recompute={s.recompute}", "layers are computed again in the backward pass to save memory"),
        "tp": (
            f"tp={s.tp}",
            f"every layer exchanges its activations among {s.tp} devices; what compute hides is not counted",
        ),
        "cp": (f"cp={s.cp} {s.cp_kind}", f"attention exchanges keys and values among {s.cp} devices"),
        "ep": (f"ep={s.ep}", f"tokens travel to their experts and back among {s.ep} devices"),
        "dp": (
            zero,
            f"gradients and parameters of {s.dp} replicas meet once a step; what compute hides is not counted",
        ),
        "pp_bubble": (
            f"pp={s.pp} {s.schedule}",
            f"{s.num_microbatches} micro-batches fill {s.pp} stages; devices idle while the pipeline fills and drains",
        ),
        "pp_send": (f"pp={s.pp}", "activations travel between stages; only what nothing hides is counted"),
        "optimizer": (zero, "every parameter is updated once a step"),
        "offload": ("offload", "states travel between device and host"),
        "host": (_host_words(plan), "the device waits while the host launches kernels, as measured runs show"),
    }
    return table.get(term, (term, "see the cost model in docs/"))


def _host_words(plan: Plan) -> str:
    """What makes the host late: the back-end whose physics the plan assumes, and a calibration's overhead."""
    problem = plan.problem
    known = ["calibration"] if problem.calibration and problem.calibration.factors.host_overhead_s else []
    software = software_of(plan)
    named = [] if software.release.physics.name == TUNED.name else [software.title]
    return " and ".join([*named, *known])


def _compute_words(plan: Plan) -> str:
    """Balance of the stages, from their own times."""
    times = [stage.forward_s + stage.backward_s for stage in plan.stages]
    imbalance = max(times) / (sum(times) / len(times)) - 1
    if len(times) == 1:
        return "matrix products, attention and element-wise work of all layers"
    return f"the slowest of {len(times)} stages is {imbalance:.1%} above their mean"


def _memory(plan: Plan) -> MemoryCause:
    stage = worst_stage(plan)
    bill = stage.peak_memory_bytes
    terms = {term: int(getattr(bill, term)) for term in MEMORY_TERMS}
    spare = plan.memory_limit_bytes - bill.total
    binding = spare < 0.05 * plan.memory_limit_bytes
    largest = max(terms, key=lambda term: terms[term])
    state = "binds" if binding else "does not bind"
    rest = f"{spare / GIB:.1f} GiB are spare" if spare >= 0 else f"{-spare / GIB:.1f} GiB are missing"
    because = (
        f"Memory {state}: stage {stage.stage} uses {bill.total / GIB:.1f} of {plan.memory_limit_bytes / GIB:.1f} GiB, "
        f"most of it {largest} ({terms[largest] / GIB:.1f} GiB); {rest}."
    )
    if plan.fits_probability is not None:
        because += f" The chance that it fits is {chance_words(plan.fits_probability)}."
    return MemoryCause(
        stage=stage.stage,
        total_bytes=bill.total,
        limit_bytes=plan.memory_limit_bytes,
        spare_bytes=spare,
        terms_bytes=terms,
        binding=binding,
        fits_probability=plan.fits_probability,
        because=because,
    )


def _time_sentence(causes: tuple[Cause, ...]) -> str:
    overheads = [cause for cause in causes if cause.term != "compute"]
    if not overheads:
        return "Nothing but compute takes time."
    first = overheads[0]
    lost = sum(cause.share for cause in overheads)
    return (
        f"Everything that is not compute takes {lost:.1%} of the step; most of it is {term_words(first.term)} "
        f"({first.share:.1%}, from {first.choice}): {first.because}."
    )


def _runner_up_sentence(plan: Plan) -> str:
    if not plan.alternatives:
        return ""
    other = plan.alternatives[0]
    fields = [field for field in other.differs_in if field not in DERIVED_FIELDS]
    parts = [
        f"{field} {value_words(plan.strategy.get(field))} -> {value_words(other.strategy.get(field))}"
        for field in fields
    ]
    what = ", ".join(parts) or "an equal strategy"
    if other.slower_by < 0:
        return f"Of other degrees, {what} would be {-other.slower_by:.1%} faster."
    if other.slower_by == 0:
        return f"The runner-up ({what}) is as fast; the plan wins by the tie-break."
    return (
        f"The runner-up ({what}) is {other.slower_by:.1%} slower and peaks at {other.peak_memory_bytes / GIB:.1f} GiB."
    )


def _next_step_sentence(plan: Plan, causes: tuple[Cause, ...], around: tuple[Neighbour, ...]) -> str:
    """What would have to change for a faster step."""
    blocked = [each for each in around if each.outcome == "does_not_fit" and (each.slower_by or 0.0) < 0]
    if blocked:
        best = min(blocked, key=lambda each: (each.slower_by or 0.0, each.move))
        lack = (
            f"{best.over_limit_bytes / GIB:.1f} GiB on stage {best.over_limit_stage}"
            if best.over_limit_bytes
            else "memory"
        )
        gain = f"Next step: {best.move} would be {-(best.slower_by or 0.0):.1%} faster"
        return f"{gain}, but misses {lack}; memory limits the plan."
    excluded = [each for each in around if each.outcome == "faster" and each.reason]
    if excluded:
        best = excluded[0]
        return f"Next step: {best.move} would be {-(best.slower_by or 0.0):.1%} faster, but is {best.reason}."
    overheads = [cause for cause in causes if cause.term != "compute"]
    if overheads and overheads[0].share > 0.02:
        return (
            f"Next step: no single move is faster and blocked by memory only; {term_words(overheads[0].term)} "
            f"({overheads[0].seconds:.3g} s) is the largest cost that is not compute."
        )
    return "Next step: compute limits the plan; only faster kernels or more devices shorten the step."
