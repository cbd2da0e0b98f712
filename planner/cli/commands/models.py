"""``meshwright models``: which models are known, and what one consists of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.answers.summaries import model_summary
from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.operations.service import opened_service

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.model.spec import ModelSpec

Reference = Annotated[str, typer.Argument(metavar="M", help="HF config.json, Megatron args, model YAML, or a name.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Models: list the built-in ones, show any.", no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(list_builtin)
    group.command("show")(show)
    app.add_typer(group, name="models")


def list_builtin(server: flags.Server = None, output: flags.Output = OutputFormat.TABLE) -> None:
    """Built-in models, with their sizes."""
    from planner.operations.models import LIST_MODELS
    from planner.operations.named import Nothing, plain_rows

    with opened_service(server) as service:
        rows = plain_rows(service.call(LIST_MODELS, Nothing()))
    write_answer(rows, output, lambda: _list_table(rows))


def show(
    model: Reference,
    sample: flags.Sample = None,
    server: flags.Server = None,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """One model: parameters by module, FLOPs, and the whole description in JSON."""
    from planner.cli.sample_size import sample_tokens
    from planner.model.parameters import parameters_by_module
    from planner.model.spec import ModelSpec
    from planner.operations.models import GET_MODEL
    from planner.operations.named import NamedRequest
    from profiles.validation import read_document

    with opened_service(server) as service:
        found = service.call(GET_MODEL, NamedRequest(name=model))
    spec = read_document(ModelSpec, found.document, f"{service.address} {model}")
    facts = model_summary(spec.name, spec)
    data = {**facts, "parameters_by_module": parameters_by_module(spec), "spec": spec.model_dump(mode="json")}
    if sample is not None:
        data["sequence_length"] = sample_tokens(spec, sample)
    write_answer(data, output, lambda: _show_tables(spec, data))


def _list_table(rows: list[dict[str, Any]]) -> list[RenderableType]:
    from planner.answers.views.words import count
    from planner.cli.render.tables import table

    cells = [
        (
            row["name"],
            row["family"],
            count(row["parameters"]),
            count(row["active_parameters"]),
            _stacks(row),
            str(row["hidden_size"]),
            str(row["num_experts"] or ""),
            str(row["max_sequence_length"] or "no limit"),
        )
        for row in rows
    ]
    columns = ("name", "family", ">parameters", ">active", ">layers", ">hidden", ">experts", ">longest sequence")
    return [table("", columns, cells)]


def _show_tables(spec: ModelSpec, data: dict[str, Any]) -> list[RenderableType]:
    from planner.answers.views.words import count, percent
    from planner.cli.render.tables import facts, heading, table
    from planner.model.flops import model_flops_per_token

    sequence = data.get("sequence_length") or min(spec.max_sequence_length, 8192)
    if spec.denoiser is not None:
        sequence = data.get("sequence_length") or spec.max_sequence_length
    total = data["parameters"]
    modules = [(name, f"{number:,}", percent(number / total)) for name, number in data["parameters_by_module"].items()]
    return [
        facts(
            [
                ("name", spec.name),
                ("family", spec.family),
                ("parameters", f"{total:,}  ({data['active_parameters']:,} active for a token)"),
                ("layers", f"{_stacks(data)}, {len(spec.layer_kinds)} kind{'s' * (len(spec.layer_kinds) > 1)}"),
                ("hidden size", f"{spec.hidden_size:,}"),
                *_reads(spec),
                *_longest(spec),
                ("training", f"{count(model_flops_per_token(spec, sequence))}FLOPs a token at {sequence:,} tokens"),
            ]
        ),
        heading("Parameters"),
        table("", ("module", ">parameters", ">share"), modules),
    ]


def _stacks(row: Mapping[str, Any]) -> str:
    """Layers; of an encoder and a decoder both numbers."""
    layers, encoder = row["num_layers"], row.get("encoder_layers", 0)  # a service of an earlier release has none
    return f"{encoder} + {layers - encoder}" if encoder else str(layers)


def _longest(spec: ModelSpec) -> list[tuple[str, str]]:
    """How long a sequence the positions reach; a denoiser's sample says it."""
    if spec.denoiser is not None:
        return []
    limit = spec.position_limit
    return [("positions", "no limit (by distance, or none)" if limit is None else f"{limit:,} tokens")]


def _reads(spec: ModelSpec) -> list[tuple[str, str]]:
    """What goes in: a vocabulary, or latents and text."""
    if spec.denoiser is None:
        return [("vocabulary", f"{spec.vocab_size:,}{' (tied)' if spec.tie_embeddings else ''}")]
    frames, height, width = spec.denoiser.usual_sample
    place = "in the sequence" if spec.denoiser.text_in_sequence else "beside the sequence"
    return [
        ("sample", f"{frames}x{height}x{width}: {spec.max_sequence_length:,} tokens (frames x height x width)"),
        ("text", f"{spec.denoiser.text_tokens:,} tokens, {place}"),
    ]
