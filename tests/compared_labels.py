"""What numbers are called where plans are compared: differences, other strategies, wrong inputs, several pools."""

from __future__ import annotations

import re

from planner.predict.step_terms import TERM_WORDS
from tests.plan_labels import MEMORY_WORDS, Data, Labelled, memory_terms
from tests.shown_numbers import Cell

POOL_TERMS = {
    "slowest_stage": "the slowest stage",
    "pp_bubble": "filling and draining",
    "pp_send": r"\bsends\b",
    "late": "reduction and optimizer",
}


def both_sides(name: str, unit: str, change: Data) -> list[Labelled]:
    """A quantity of two plans, by the heads of its columns."""
    return [
        Labelled(f"{name}, first", unit, r"^a\b|^plan\b", change["a"]),
        Labelled(f"{name}, second", unit, r"^b\b|^instead$", change["b"]),
        Labelled(f"{name}, change", unit, "^change$", change["change"]),
    ]


def difference_quantities(cell: Cell, difference: Data) -> list[Labelled]:
    """``PlanDiff`` in tables and in its sentence."""
    about = cell.heading.lower()
    if cell.column and about.startswith("time by term"):
        term = "step_time_s" if cell.row == "whole step" else _term_of(cell.row)
        changes = [*difference["breakdown_s"], *([difference["step_time_s"]] if "a" in difference else [])]
        return both_sides(term, "s", next(each for each in changes if each["term"] == term))
    if cell.column and about.startswith("memory of the worst device"):
        return both_sides(
            cell.row, "B", next(each for each in difference["peak_memory_bytes"] if each["term"] == cell.row)
        )
    if cell.column and about.startswith("stages that differ"):
        peaks = difference["stages"][cell.place]["peak_memory_bytes"]
        return [
            Labelled("peak of a stage", "B", "^peak$", peak, order)
            for order, peak in enumerate(each for each in peaks if each is not None)
        ]
    step = difference.get("step_time_s")
    if isinstance(step, dict):
        return [Labelled("ratio of step times", "%", "(more|less) time a step", abs(step["b"] / step["a"] - 1))]
    return []


def why_not_quantities(cell: Cell, answer: Data) -> list[Labelled]:
    """``WhyNot``: its sentence, and the tables of a difference."""
    found = difference_quantities(cell, answer)
    if cell.column or answer["other"] is None:
        return found
    other = answer["other"]
    found += [
        Labelled("other.step_time_s", "s", "takes|a step", other["step_time_s"]),
        Labelled("slower_by", "%", "slower|faster", answer["slower_by"]),
    ]
    for change in answer["breakdown_s"]:
        words = TERM_WORDS[change["term"]].partition(" (")[0]
        found.append(Labelled(f"change of {change['term']}", "s", rf"• (more for|on) {words}", abs(change["change"])))
    return found


def sensitivity_quantities(cell: Cell, answer: Data) -> list[Labelled]:
    """``Sensitivity``: its sentence, the tornado and every case."""
    about = cell.heading.lower()
    if cell.column and about.startswith("every case"):
        point = answer["points"][cell.place]
        keys = {
            "change": ("%", "^change$"),
            "step_time_s": ("s", "plan's step"),
            "time_per_token_change": ("%", "time a token"),
            "best_step_time_s": ("s", "best step"),
            "regret": ("%", "regret"),
        }
        return [
            Labelled(f"points[{cell.place}].{key}", unit, words, point[key])
            for key, (unit, words) in keys.items()
            if point[key] is not None
        ]
    # The sentence is about the bar that stands first.
    bar = answer["tornado"][cell.place if cell.column else 0]
    return [
        Labelled("lowest", "%", "^fastest$", bar["lowest"]),
        Labelled("highest", "%", "^slowest$", bar["highest"]),
        Labelled("lowest", "%", r"• to$", bar["lowest"], 0),
        Labelled("highest", "%", "^to • time a token", bar["highest"], 1),
    ]


def pools_quantities(cell: Cell, plan: Data) -> list[Labelled]:
    """A plan over unequal pools."""
    about = cell.heading.lower()
    if cell.column and about.startswith("stages"):
        stage = plan["stages"][int(cell.row)]
        limit = stage["memory_limit_bytes"]
        return [
            Labelled("microbatch_s", "s", "micro-batch", stage["microbatch_s"]),
            Labelled("total", "B", "^peak$", stage["peak_memory_bytes"]["total"]),
            Labelled("of limit", "%", "of limit", stage["peak_memory_bytes"]["total"] / limit),
            Labelled("devices", "", "^devices$", stage["devices"]),
            Labelled("layers", "", "^layers$", stage["layers"]),
            *memory_terms(stage["peak_memory_bytes"], limit),
        ]
    if cell.column and about.startswith("pools"):
        use = plan["pools"][cell.place]
        return [
            Labelled("busy", "%", "busy", use["busy_fraction"]),
            Labelled("used", "", "devices used", use["used"], 0),
            Labelled("devices", "", "devices used", use["devices"], 1),
            Labelled("stages", "", "^stages$", use["stages"]),
            Labelled("layers", "", "^layers$", use["layers"]),
        ]
    return _pools_facts(plan)


def _pools_facts(plan: Data) -> list[Labelled]:
    first = max(plan["stages"], key=lambda stage: stage["microbatch_s"])
    fullest = max(plan["stages"], key=lambda stage: stage["peak_memory_bytes"]["total"] / stage["memory_limit_bytes"])
    late = max(plan["stages"], key=lambda stage: stage["late_shown_s"])
    work, problem = plan["problem"]["workload"], plan["problem"]
    rates = [
        pool["num_nodes"] * pool["devices_per_node"] * pool["device"]["peak_flops_per_s"][work["precision"]]
        for pool in (cluster["pools"][0] for cluster in problem["clusters"])
    ]
    waits = 1 - min(stage["microbatch_s"] for stage in plan["stages"]) / first["microbatch_s"]
    return [
        Labelled("step_time_s", "s", "^step$", plan["step_time_s"], 0),
        *(Labelled(f"breakdown_s.{key}", "s", POOL_TERMS[key], value) for key, value in plan["breakdown_s"].items()),
        Labelled("lower_bound_s", "s", "no plan is faster than", plan["lower_bound_s"]),
        Labelled("gap", "%", "gap|of the bound", plan["gap"]),
        Labelled("tokens_per_s", "", "tokens/s", plan["tokens_per_s"]),
        Labelled("model_flops_utilization", "%", "mfu", plan["model_flops_utilization"]),
        Labelled("num_microbatches", "", r"• micro-batches of", plan["num_microbatches"]),
        Labelled("microbatch_samples", "", r"micro-batches of • samples", plan["microbatch_samples"]),
        Labelled("microbatch_s of the slowest stage", "s", "a micro-batch", first["microbatch_s"]),
        Labelled("late_shown_s", "s", "shows", late["late_shown_s"]),
        Labelled("late_s", "s", "^of$|^of •", late["late_s"]),
        Labelled("part of its memory limit", "%", "is the fullest at",
                 fullest["peak_memory_bytes"]["total"] / fullest["memory_limit_bytes"]),
        *(Labelled(f"part of the peak rate of {use['pool']}", "%", f"{use['pool']} has", rate / sum(rates))
          for use, rate in zip(plan["pools"], rates, strict=True)),
        Labelled("time of the search", "s", "^in •", None),
        Labelled("level of the measured ratios", "%", "• below", 0.95),
        Labelled("part of a round that the fastest stage waits", "%", "of each round", waits),
    ]  # fmt: skip


def _term_of(words: str) -> str:
    return next((term for term, said in TERM_WORDS.items() if said == words), words)


def is_memory_term(words: str) -> bool:
    """Whether a column's head names a part of the memory."""
    return any(re.match(each, words) for each in MEMORY_WORDS.values())
