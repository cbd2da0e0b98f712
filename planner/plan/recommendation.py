"""Why the recommended plan is, or is not, the fastest one: sentences for every door."""

from __future__ import annotations

from planner.plan.plan import FastestPlan, Plan

UNSEARCHED = "The strategy was given and is estimated, not searched: no bound is known."
"""What is proved of an estimate of a given strategy."""


def back_ends_words(plan: Plan) -> str:
    """What each line of the table of back-ends is: the fastest plan, also where another one is recommended."""
    if all(each.strategy is None for each in plan.backends):
        return "the same strategy under the physics of each"
    mine = "the plan" if plan.fastest is None else "the fastest plan"
    return f"{mine} of each, under its own physics; gap: how much faster a better one could be"


def is_another(plan: Plan) -> bool:
    """Whether a plan was recommended instead of the fastest one, which stands beside it."""
    return plan.fastest is not None and not plan.fastest.is_recommended


def proved_words(fastest: FastestPlan) -> str:
    """``proved`` or not."""
    return "which is proved" if fastest.status == "optimal" else "as far as the search came"


def same_words(fastest: FastestPlan) -> str:
    """The line of a plan that is both."""
    return f"also the recommended plan: within {100 * fastest.band:.0f} % of it none is surer to fit or simpler"


def recommendation_sentence(plan: Plan) -> str:
    """What was recommended and what it costs; empty where the fastest plan was asked for."""
    fastest = plan.fastest
    if fastest is None:
        return ""
    if fastest.is_recommended:
        return f"The fastest plan is {same_words(fastest)}."
    return (
        f"It is recommended beside the fastest plan of {fastest.step_time_s:.4g} s, {proved_words(fastest)}; it is"
        f" {fastest.price}. Predicted times within {100 * fastest.band:.0f} % are not told apart."
    )
