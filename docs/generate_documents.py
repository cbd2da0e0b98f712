"""The content of each document and the parts of a strategy: tables from the Pydantic models and the space."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from docs.generate import first_sentence, page, table
from docs.generate_backends import columns_table

RELIEF_WORDS = (
    ("`recompute=full`", "every layer is computed again in the backward pass"),
    ("`recompute=selective`", "the modules of `recompute_modules` are computed again in every layer"),
    ("`activation_offload=true`", "every layer keeps its activations in host memory"),
    (
        "`recompute=full-where-needed`, `recompute=selective-where-needed`, `activation_offload=where-needed`",
        "on each stage as few layers as its memory demands, none where it demands none; the same number in every chunk,"
        " or every layer, where the back-end has one setting for all",
    ),
    (
        "`recompute=full-first-4`",
        "the first 4 layers of every chunk: Megatron-LM's `--recompute-method block --recompute-num-layers 4` (its"
        " `uniform` is `full`)",
    ),
)
LEFT_OUT = (
    "A search that is told nothing of recompute and offload takes as few layers as memory demands. An estimate says"
    " what was given, what was filled in by default and what the planner searched: `origins` in JSON, *Held and filled"
    " in* in the table.",
    "Left out, every field of the strategy has its default of the third column, but for these: `dp` takes the devices"
    " that are left, `num_microbatches` the batch; `sp` is on with `tp` > 1; keys and values go round a ring with"
    " `cp` > 1; `schedule` is interleaved in groups of `pp` with `vpp` > 1; `zero_stage` is 1; the two overlaps of data"
    " parallelism are on; `recompute_modules` is attention_core under selective recompute; and what a back-end cannot"
    " switch is as the back-end has it. The layers of the chunks are searched unless `--layers` gives them.",
)


def documents_page() -> str:
    """Every document that is written to disk, database or wire, field by field."""
    from planner.answers.diff import PlanDiff
    from planner.answers.explain.why import Explanation
    from planner.answers.explain.why_not import WhyNot
    from planner.answers.sensitivity import Sensitivity
    from planner.evidence.calibration.document import Calibration
    from planner.model.model_yaml import ModelDescription
    from planner.model.spec import ModelSpec
    from planner.plan.plan import Plan
    from planner.question.problem import Problem, Workload
    from profiles.cluster import Cluster
    from profiles.observation_store.batch import StoredBatch

    inputs = (Workload, Cluster, ModelDescription, ModelSpec)
    roots = (*inputs, Problem, Plan, PlanDiff, Explanation, WhyNot, Sensitivity, StoredBatch, Calibration)
    found: dict[str, type[BaseModel]] = {}
    for root in roots:
        for kind in _reachable(root):
            found.setdefault(kind.__name__, kind)
    intro = (
        "Documents are closed: an unknown key is an error with the nearest known one. They are frozen, hold finite"
        " numbers only, and are identified by the SHA-256 of their canonical JSON (sorted keys, no spaces, defaults"
        " written out). In cluster and device files a number whose key ends with a unit may be text with a unit:"
        ' `"400 Gbit/s"`, `"80 GiB"`, `"3 us"`, `"989 TFLOP/s"`. YAML is 1.2 without aliases and tags.'
    )
    return page("Documents", intro, *(_section(kind) for kind in found.values()))


def strategy_page() -> str:
    """Fields of a strategy: values, whether they can be pinned, what forbidding them means."""
    from planner.strategy.fields import FIELDS
    from planner.strategy.relief_layers import WHERE_NEEDED

    rows = []
    for each in FIELDS:
        values = {"count": "whole number", "switch": "true, false"}.get(each.kind, ", ".join(each.words))
        values += {"recompute": ", full-first-N", "activation_offload": f", {WHERE_NEEDED}"}.get(each.name, "")
        values += ", joined by +" if each.kind == "words" else ""
        neutral = str(each.neutral).lower() if isinstance(each.neutral, bool) else each.neutral
        forbidden = "cannot be forbidden" if neutral is None else f"`{neutral}`"
        alias = f" ({', '.join(f'`{word}`' for word in each.aliases)})" if each.aliases else ""
        rows.append(
            (f"`{each.name}`{alias}", values, forbidden if each.is_pinnable else "cannot be pinned", each.meaning)
        )
    return page(
        "Strategy",
        "The words of `--pin`, `--forbid`, `--strategy` and `--why-not`. `--forbid X` holds X at the value in the third"
        " column.",
        table(("field", "values", "forbidden means", "meaning"), rows),
        "## Which layers recompute or offload",
        "Whatever is given is held exactly, in `estimate`, `--pin`, `--why-not` and questions to the service alike.",
        table(("written", "means"), RELIEF_WORDS),
        *LEFT_OUT,
        _space_tables(),
    )


def _space_tables() -> str:
    """What is enumerated, and what each back-end can run."""
    from planner.backends.registry import backend
    from planner.backends.rules.legality import RULES
    from planner.question.problem import UNRESTRICTED
    from planner.search.choices import MOST_VIRTUAL_STAGES, VIRTUAL_STAGES
    from planner.search.chunk_family import END_RELIEF

    widest = backend(UNRESTRICTED).releases[0].space.columns
    groups = " or ".join(map(str, widest.group_factors))
    rules = [(f"`{rule.reason}`", rule.message) for rule in RULES]
    lines = (
        "## The declared space",
        "Degrees: all divisors, not only powers of two. Micro-batch sizes: all divisors of the batch of a replica."
        f" Chunks a device under interleaving: {_numbers(VIRTUAL_STAGES)}, and the divisors up to"
        f" {MOST_VIRTUAL_STAGES} of the layers of a device (of layers / pp, rounded up);"
        f" micro-batch groups: {groups} times pp. Memory relief, one a strategy: none; full recompute;"
        " offload of activations; selective recompute of every set of modules that the back-end recomputes and that"
        " frees something which no smaller set frees. Layers: with one chunk a device every way to deal"
        " consecutive layers; with several, near-even layouts whose first and last chunk are"
        f" up to {END_RELIEF} layers shorter. Every chunk holds a layer; in some back-ends (Megatron-LM,"
        " Megatron-Bridge) the first may hold the embedding alone and the last the head alone.",
        "Each back-end is searched in its own part of it; `--backend unrestricted` searches all of it, for study.",
        "## What a back-end can run",
        columns_table(),
        "## Legality",
        "Strategies that break one of these are never costed; `search.pruned` of a plan counts them by name.",
        table(("rule", "meaning"), rules),
    )
    return "\n\n".join(lines)


def _numbers(values: tuple[int, ...]) -> str:
    return ", ".join(str(value) for value in values)


def _reachable(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The document and every document inside it, outermost first."""
    yield kind
    for field in kind.model_fields.values():
        for part in _models_in(field.annotation):
            yield from _reachable(part)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _section(kind: type[BaseModel]) -> str:
    rows = []
    for name, field in kind.model_fields.items():
        if field.is_required():
            default = "required"
        elif field.default is PydanticUndefined:
            default = "empty"
        else:
            default = "" if field.default is None else f"`{_plain(field.default)}`"
        limits = ", ".join(filter(None, (_limit(each) for each in field.metadata)))
        words = "; ".join(filter(None, (field.description or "", limits)))
        rows.append((f"`{name}`", _type_words(field.annotation), default, words))
    return f"## {kind.__name__}\n\n{first_sentence(kind)}\n\n" + table(("key", "type", "default", "meaning"), rows)


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return "[]" if not value else str(list(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _limit(constraint: Any) -> str:
    """``> 0`` for ``Gt(0)``; lengths say so."""
    for name, sign in (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<=")):
        if hasattr(constraint, name):
            return f"{sign} {getattr(constraint, name)}"
    return f"at least {constraint.min_length} long" if hasattr(constraint, "min_length") else ""


def _type_words(annotation: Any) -> str:
    """A type in the words of JSON."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_words(part) for part in parts if part is not type(None))
    if origin is dict:
        return f"map to {_type_words(parts[1])}"
    if origin is tuple:
        whole = [part for part in parts if part is not Ellipsis]
        return f"list of {', '.join(dict.fromkeys(_type_words(part) for part in whole))}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    names = {int: "whole number", float: "number", str: "text", bool: "true or false"}
    return names.get(annotation, "any")
