"""``meshwright devices``: which accelerators are known, and where their numbers come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.operations.service import opened_service

if TYPE_CHECKING:
    from rich.console import RenderableType

    from profiles.device import Device

Name = Annotated[str, typer.Argument(metavar="DEVICE", help="A name of devices list.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    help_text = "Devices: list the known accelerators, show one."
    group = typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(list_builtin)
    group.command("show")(show)
    app.add_typer(group, name="devices")


def list_builtin(server: flags.Server = None, output: flags.Output = OutputFormat.TABLE) -> None:
    """Known accelerators, with their peak rates."""
    from planner.operations.devices import LIST_DEVICES
    from planner.operations.named import Nothing, plain_rows

    with opened_service(server) as service:
        rows = plain_rows(service.call(LIST_DEVICES, Nothing()))
    write_answer(rows, output, lambda: _list_table(rows))


def show(device: Name, server: flags.Server = None, output: flags.Output = OutputFormat.TABLE) -> None:
    """One accelerator, with the source of every number."""
    from planner.operations.devices import GET_DEVICE
    from planner.operations.named import NamedRequest
    from profiles.device import Device
    from profiles.validation import read_document

    with opened_service(server) as service:
        found = service.call(GET_DEVICE, NamedRequest(name=device))
    the_device = read_document(Device, found, device)
    write_answer(the_device.model_dump(mode="json"), output, lambda: _show_tables(the_device))


def _list_table(devices: list[dict[str, Any]]) -> list[RenderableType]:
    from planner.answers.views.words import gib
    from planner.cli.render.tables import table

    rows = [
        (
            device["name"],
            device["vendor"],
            gib(device["memory_bytes"]),
            f"{device['memory_bandwidth_bytes_per_s'] / 1e12:.2f} TB/s",
            *(_peak(device, dtype) for dtype in ("bf16", "fp8")),
        )
        for device in devices
    ]
    columns = ("name", "vendor", ">memory", ">bandwidth", ">bf16 TFLOP/s", ">fp8 TFLOP/s")
    return [table("", columns, rows)]


def _show_tables(device: Device) -> list[RenderableType]:
    from planner.answers.views.words import gib, percent
    from planner.cli.render.tables import facts, heading, table

    peaks = [
        (
            dtype,
            f"{rate / 1e12:,.4g} TFLOP/s",
            percent(device.achievable_matmul_fraction[dtype]) if dtype in device.achievable_matmul_fraction else "",
        )
        for dtype, rate in device.peak_flops_per_s.items()
    ]
    sources = [(name, each.confidence, each.source) for name, each in device.provenance.items()]
    return [
        facts(
            [
                ("name", f"{device.name} ({device.vendor}, {device.architecture})"),
                ("memory", f"{gib(device.memory_bytes)} ({device.memory_bytes:,} bytes)"),
                ("bandwidth", f"{device.memory_bandwidth_bytes_per_s / 1e12:.3g} TB/s"),
            ]
        ),
        heading("Peak rates, dense"),
        table("", ("dtype", ">peak", ">reached by matmuls"), peaks),
        heading("Sources"),
        table("", ("number", "confidence", "source"), sources),
    ]


def _peak(device: dict[str, Any], dtype: str) -> str:
    rate = device["peak_flops_per_s"].get(dtype)
    return f"{rate / 1e12:,.4g}" if rate else ""
