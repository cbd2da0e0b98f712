"""What each back-end runs, refuses and adds: pages of the registry with back-ends, columns and rules."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from docs.generate import page, table
from planner.backends.backend import BackEnd, Release
from planner.backends.registry import OURS
from planner.backends.rules.columns import Columns
from planner.backends.rules.rule import SpaceRule
from planner.predict.physics.physics import TUNED, Physics

COLUMN_WORDS: dict[str, str] = {
    "dispatchers": "dispatchers of experts",
    "schedules": "schedules",
    "cp_kinds": "cp kinds",
    "denoiser_cp_kinds": "cp kinds of diffusion transformers",
    "sequence_parallel": "sp",
    "zero_stages": "ZeRO",
    "zero_stages_with_pipeline": "ZeRO with pp > 1",
    "hybrid_sharding": "hybrid sharding",
    "hybrid_zero_stages": "ZeRO stages of hybrid sharding",
    "axis_orders": "rank orders, by number",
    "group_factors": "micro-batch groups of interleaving, times pp",
    "derived_group": "micro-batch groups follow from pp and the micro-batches",
    "tensor_parallel": "tensor parallelism",
    "repeated_kv_heads": "tp above the number of key-value heads",
    "pipeline_parallel": "pipelines",
    "apart": "pairs of axes of which one is 1",
    "expert_parallel": "expert parallelism",
    "expert_tensor_parallel": "tensor parallelism inside an expert",
    "expert_tensor": "etp",
    "optimizer_offload": "optimizer offload",
    "activation_offload": "activation offload",
    "fp8_parameters": "weights of layers stored in 8 bit, with fp8",
    "overlap_ep": "overlap of expert exchange",
    "overlap_tp": "overlap of tp communication",
    "overlap_tp_off": "sp without that overlap",
    "overlap_data": "overlap of gradient reduction and parameter gathering",
    "overlap_grad_with_pipeline": "overlap of gradient reduction with pp > 1",
    "recompute": "recompute",
    "selective_modules": "modules of selective recompute",
    "uniform_recompute": "same recompute in every chunk",
    "even_layers": "same layers in every chunk",
    "empty_ends": "first and last chunk without a layer",
    "whole_recompute": "full recompute of all layers or none",
}
"""Column -> words; every column has some, which a test holds."""
SHOWN = (
    *("schedules", "cp_kinds", "zero_stages", "zero_stages_with_pipeline", "recompute", "optimizer_offload"),
    *("activation_offload", "uniform_recompute", "even_layers"),
)
"""Columns of the comparison; the others stand at each back-end, where they are not all that there is."""


def backends_page() -> str:
    """Every back-end of the registry: what it is, what it can run, and what its physics adds."""
    rows = [
        (
            f"[`{each.name}`](#{each.name})",
            each.title,
            _releases(each),
            _vendors(each),
            *_parts(each),
            _marked(each.summary),
        )
        for each in OURS
    ]
    head = ("name", "title", "releases", "devices", "files", "validators", "tiny run", "what it is")
    return page(
        "Back-ends",
        "A back-end is the software that trains. `--backend` takes these names, and `NAME==RELEASE` for a release that"
        " is not the first. `any` (the default) asks every back-end that files can be written for and that trains on"
        " these devices; those without files predict, for software of which runs were published. How to add one:"
        " [add a back-end](../how-to/add-a-back-end.md). What each refuses: [rules](rules.md).",
        table(head, rows),
        *(_section(each) for each in OURS),
    )


def rules_page() -> str:
    """Ids, fields and sources of every back-end's rules."""
    parts = [
        "What a back-end refuses, or accepts and then runs differently. The search of a back-end's space asks them"
        " of every strategy, and `meshwright check` asks them about an emitted folder. A rule without fields is about"
        " model, workload or devices. The meaning of the letters stands at the top of each `space.py`."
    ]
    for each in OURS:
        rows = [
            (f"`{each.name}.{rule.id}`", about(rule), ", ".join(f"`{name}`" for name in rule.fields), source)
            for rule, source in rules_of(each)
        ]
        if rows:
            head = ("rule", "about", "fields", "source")
            parts.append(f"## {each.name}\n\n`planner/backends/{folder_of(each)}`\n\n" + table(head, rows))
    return page("Rules", *parts)


def columns_table() -> str:
    """What each release can run, as far as whole columns go."""
    rows = []
    for each in OURS:
        for release in each.releases:
            columns = release.space.columns
            name = each.name if len(each.releases) == 1 else f"{each.name} {release.version}"
            rows.append((name, *(_value(getattr(columns, column)) for column in SHOWN)))
    return table(("back-end", *(COLUMN_WORDS[column] for column in SHOWN)), rows)


def folder_of(each: BackEnd) -> str:
    """Where its space stands, for example ``megatron/space.py``."""
    return f"{each.name.replace('-', '_')}/space.py"


def rules_of(each: BackEnd) -> list[tuple[SpaceRule, str]]:
    """Every rule of every release once, model rules first, with its source; where releases cite differently, both."""
    found: dict[str, tuple[SpaceRule, dict[str, None]]] = {}
    for release in each.releases:
        for rule in (*release.space.rules.model_rules, *release.space.rules.strategy_rules):
            found.setdefault(rule.id, (rule, {}))[1][rule.source] = None
    return [(rule, "; ".join(sources)) for rule, sources in found.values()]


def about(rule: SpaceRule) -> str:
    """The name of the checking function as words; a rule that wraps another function is named after that one."""
    check: Any = rule.check
    cells = getattr(check, "__closure__", None) or ()
    wrapped = [cell.cell_contents for cell in cells if inspect.isfunction(cell.cell_contents)]
    return str((wrapped or [check])[0].__name__).strip("_").replace("_", " ")


def _section(each: BackEnd) -> str:
    lines = [f"## {each.name}"]
    if each.inside:
        lines.append(f"Its space is a part of that of `{each.inside}`, under the same physics.")
    for release in each.releases:
        title = f"**{each.title} {release.version}**".replace(" **", "**")
        lines.append(f"{title}: {_physics(release.physics)}")
        lines.append(_columns(release))
    return "\n\n".join(line for line in lines if line)


def _physics(physics: Physics) -> str:
    """Its traits that differ from the neutral ones."""
    skipped = ("name", "summary")
    values = [(each.name, getattr(physics, each.name), getattr(TUNED, each.name)) for each in fields(Physics)]
    other = [f"`{name}` {_trait(value)}" for name, value, neutral in values if name not in skipped and value != neutral]
    return f"physics `{physics.name}`, {_marked(physics.summary)}" + (
        f". Traits: {'; '.join(other)}." if other else "."
    )


def _columns(release: Release) -> str:
    """Columns that the comparison does not show and that are narrower than the declared space."""
    widest = Columns(schedules=())
    rows = [
        (COLUMN_WORDS[each.name], _value(getattr(release.space.columns, each.name)))
        for each in fields(Columns)
        if each.name not in SHOWN and getattr(release.space.columns, each.name) != getattr(widest, each.name)
    ]
    return table(("column", "values"), rows) if rows else ""


def _marked(text: str) -> str:
    """Docstrings mark code with two ticks, Markdown with one."""
    return text.replace("``", "`")


def _trait(value: object) -> str:
    if isinstance(value, frozenset):
        return ", ".join(sorted(str(each) for each in value)) or "none"
    return f"{value:.4g}" if isinstance(value, float) else _value(value)


def _value(value: object) -> str:
    """Yes and no for switches, a list for several values."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(_inner(each) for each in value) or "none"
    return str(value)


def _inner(value: object) -> str:
    return " + ".join(_value(each) for each in value) if isinstance(value, tuple) else _value(value)


def _releases(each: BackEnd) -> str:
    several = len(each.releases) > 1
    return ", ".join(f"{one.version}{' (predicts only)' * (several and one.predicts_only)}" for one in each.releases)


def _what(each: BackEnd) -> str:
    return _marked(each.summary)


def _vendors(each: BackEnd) -> str:
    return ", ".join(sorted(each.vendors)) or "any"


def _parts(each: BackEnd) -> Iterator[str]:
    yield "yes" if each.files is not None else "predicts only"
    yield ", ".join(f"`{validator.name}`" for validator in each.validators())
    yield "yes" if each.tiny_run is not None else ""
