"""What the planner calls things, for the pages: ``web/src/vocabulary.ts``; and for readers: the glossary.

Fields, schedules, terms and launchers are declared once, in ``planner``.  The pages have types made of these words, so
a word that the planner has and a page lacks fails the web build.
"""

from __future__ import annotations

import json
from typing import Any, get_args

from docs.generate import page, table

GENERAL = (
    ("axis", "an axis of the device mesh: tp, cp, ep, dp, pp. A *dim* is one of a tensor"),
    ("back-end", "the software that trains, with its release: Megatron-LM 0.19.2"),
    ("band", "predicted ratio of two step times below which the model does not tell them apart"),
    ("bound", "a step time that no strategy of the searched spaces is below; proved"),
    ("calibration", "a few factors between the predictions and one back-end on one device, fitted to measured runs"),
    ("candidate", "a strategy with its layers dealt to stages, and its numbers"),
    ("chunk", "consecutive layers that one pipeline stage holds; an interleaved stage holds several"),
    ("device", "one accelerator; a *node* holds several, a *pool* is nodes of one kind"),
    ("estimate", "the prediction of a strategy that was given, searched by nobody: it bounds nothing"),
    ("fastest plan", "the plan that the proof is about"),
    ("fits", "the chance that the fullest device holds its predicted peak of memory"),
    ("gap", "how much faster than a plan another one could be, at most: step time over bound, less one"),
    ("hop", "a transfer of activations or their gradients from one pipeline stage to the next"),
    ("interval", "80 % of runs of such a plan are expected inside it"),
    ("level", "a tier of the network: inside a node, a rack, the fabric"),
    ("MFU", "model FLOPs of a step over what the devices could do in it; recompute is no useful work"),
    ("micro-batch", "samples that go through the model at once on one data-parallel rank"),
    ("moment", "a point of a step at which memory may be fullest: forward, backward, optimizer"),
    ("pin", "a field of the strategy that the search holds at a value"),
    ("plan", "the immutable answer: a strategy, its stages, predicted time and memory, bound, back-end, provenance"),
    ("problem", "the whole question: model, cluster, workload, constraints, objective, profile"),
    ("profile", "measured times of operators and links of a device"),
    ("recommended plan", "among the plans within the band, the one surest to fit, then with the fewest mechanisms"),
    ("relief", "a way to keep less on a device: recompute or offload of activations"),
    ("room", "the folder of one back-end in `planner/backends`, or one folder of `planner`"),
    ("space", "the strategies that a back-end can run"),
    ("stage", "the layers that one pipeline rank holds"),
    ("strategy", "degrees and switches of one training configuration"),
    ("tail", "what follows the last backward pass of a step: reductions that are not hidden, the optimizer"),
    ("virtual stage", "see chunk"),
)


def glossary_page() -> str:
    """The words of the planner: general ones, and those that are declared as data."""
    from planner.predict.step_terms import TERM_WORDS
    from planner.strategy.fields import FIELDS
    from planner.strategy.schedules import SCHEDULES

    fields = [(f"`{each.name}`", ", ".join(f"`{alias}`" for alias in each.aliases), each.meaning) for each in FIELDS]
    schedules = [(f"`{each.name}`", each.source, each.remarks) for each in SCHEDULES]
    terms = [(f"`{name}`", words) for name, words in TERM_WORDS.items()]
    return page(
        "Glossary",
        "The words that commands, documents, pages and code use for one thing each.",
        table(("word", "means"), GENERAL),
        "## Fields of a strategy",
        "Values and what may be pinned: [strategy](strategy.md).",
        table(("field", "also", "meaning"), fields),
        "## Schedules",
        "How they run and what they hold: [schedules](../explanation/schedules.md).",
        table(("schedule", "order after", "remarks"), schedules),
        "## Terms of a step",
        table(("term", "meaning"), terms),
    )


def vocabulary_module() -> str:
    """The TypeScript module."""
    from planner.backends.launch import LauncherName
    from planner.predict.step_terms import MEMORY_TERMS, TERM_WORDS
    from planner.question.optimizers import OPTIMIZERS
    from planner.strategy.fields import FIELDS
    from planner.strategy.relief_layers import RECOMPUTE_WORDS, WHERE_NEEDED
    from planner.strategy.schedules import ScheduleName

    fields = {each.name: {"kind": each.kind, "meaning": each.meaning} for each in FIELDS}
    values: dict[str, Any] = {
        "SCHEDULES": list(get_args(ScheduleName)),
        "RECOMPUTE_WORDS": list(RECOMPUTE_WORDS),
        "OFFLOAD_WORDS": ["false", "true", WHERE_NEEDED],
        "OPTIMIZERS": list(OPTIMIZERS),
        "LAUNCHERS": list(get_args(LauncherName)),
        "TIME_TERM_WORDS": TERM_WORDS,
        "MEMORY_TERM_NAMES": list(MEMORY_TERMS),
        "STRATEGY_FIELDS": fields,
    }
    lines = ["/* Written by `python -m docs.generate`; changes here are lost. */", ""]
    lines += [f"export const {name} = {_literal(value)} as const;" for name, value in values.items()]
    lines += [
        "",
        "export type Schedule = (typeof SCHEDULES)[number];",
        "export type Launcher = (typeof LAUNCHERS)[number];",
        "export type TimeTerm = keyof typeof TIME_TERM_WORDS;",
        "export type MemoryTerm = (typeof MEMORY_TERM_NAMES)[number];",
        "export type StrategyField = keyof typeof STRATEGY_FIELDS;",
    ]
    return "\n".join(lines) + "\n"


def _literal(value: Any) -> str:
    """A value as the style check of the pages writes it: no quotes around keys, a comma after the last line."""
    if isinstance(value, dict):
        lines = [
            f"  {_key(key)}: {_text(each) if isinstance(each, str) else _flat(each)}," for key, each in value.items()
        ]
        return "\n".join(["{", *lines, "}"])
    flat = _text(value)
    return flat if len(flat) <= 80 else "\n".join(["[", *(f"  {_text(each)}," for each in value), "]"])


def _flat(value: dict[str, str]) -> str:
    return f"{{ {', '.join(f'{_key(key)}: {_text(each)}' for key, each in value.items())} }}"


def _key(name: str) -> str:
    return name if name.isidentifier() else _text(name)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
