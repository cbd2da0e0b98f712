"""``meshwright clusters``: which clusters are known, and what one looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.cli.problem_inputs import whole_number
from planner.operations.service import opened_service

if TYPE_CHECKING:
    from rich.console import RenderableType

    from profiles.cluster import Cluster

Reference = Annotated[str, typer.Argument(metavar="C", help="Cluster YAML or a built-in name.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    help_text = "Clusters: list the built-in ones, show any."
    group = typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(list_builtin)
    group.command("show")(show)
    app.add_typer(group, name="clusters")


def list_builtin(server: flags.Server = None, output: flags.Output = OutputFormat.TABLE) -> None:
    """Built-in clusters; `--devices N` of the other commands scales them."""
    from planner.operations.clusters import LIST_CLUSTERS
    from planner.operations.named import Nothing, plain_rows

    with opened_service(server) as service:
        rows = plain_rows(service.call(LIST_CLUSTERS, Nothing()))
    write_answer(rows, output, lambda: _list_table(rows))


def show(
    cluster: Reference,
    devices: flags.Devices = None,
    fabric: Annotated[
        bool, typer.Option("--fabric", help="The fabric as a graph: bisection, rails, what a lost link costs.")
    ] = False,
    server: flags.Server = None,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """One cluster: pools, links and fabric, with the source of every number."""
    whole_number(devices, "--devices")
    from planner.operations.clusters import GET_CLUSTER
    from planner.operations.named import NamedRequest
    from profiles.cluster import Cluster
    from profiles.scaling import scale_cluster
    from profiles.validation import read_document

    with opened_service(server) as service:
        found = service.call(GET_CLUSTER, NamedRequest(name=cluster))
    the_cluster = read_document(Cluster, found.document, f"{service.address} {cluster}")
    if devices is not None:
        the_cluster = scale_cluster(the_cluster, devices)
    if fabric:
        from planner.answers.views.fabric import fabric_view
        from planner.cli.render.fabric import fabric_tables

        view = fabric_view(the_cluster)
        write_answer(view.model_dump(mode="json"), output, lambda: fabric_tables(view))
        return
    data = {"num_devices": the_cluster.num_devices, **the_cluster.model_dump(mode="json")}
    write_answer(data, output, lambda: _show_tables(the_cluster))


def _list_table(rows: list[dict[str, Any]]) -> list[RenderableType]:
    from planner.answers.views.words import gib
    from planner.cli.render.tables import table

    cells = [
        (
            row["name"],
            row["device"],
            str(row["devices_per_node"]),
            gib(row["memory_bytes"]),
            f"{row['scale_up']} x {row['scale_up_domain_size']}",
            _rate(row["scale_up_bandwidth_bytes_per_s"]),
            f"{row['nics_per_node']} x {_rate(row['nic_bandwidth_bytes_per_s'])}",
        )
        for row in rows
    ]
    columns = ("name", "device", ">devices a node", ">memory", "scale-up", ">a device", "NICs a node")
    return [table("", columns, cells)]


def _show_tables(cluster: Cluster) -> list[RenderableType]:
    from planner.answers.views.words import gib, seconds
    from planner.cli.render.tables import facts, heading, table

    parts: list[RenderableType] = [facts([("name", cluster.name), ("devices", f"{cluster.num_devices:,}")])]
    for pool in cluster.pools:
        link, host = pool.scale_up, pool.host
        per_device = f"{_rate(link.bandwidth_bytes_per_s)} a device"
        parts += [
            heading(f"Pool {pool.name}"),
            facts(
                [
                    ("device", f"{pool.device.name}, {gib(pool.device.memory_bytes)}"),
                    ("nodes", f"{pool.num_nodes:,} of {pool.devices_per_node} devices"),
                    ("scale-up", f"{link.name or link.kind}: {link.domain_size} devices, {per_device}"),
                    ("NICs", f"{pool.nics_per_node} a node, {_rate(pool.nic_bandwidth_bytes_per_s)} each"),
                    ("host", f"{gib(host.memory_bytes)} a node, {_rate(host.link_bandwidth_bytes_per_s)} a device"),
                ]
            ),
        ]
    if cluster.fabric:
        rows = [
            (level.name, f"{level.num_nodes:,}", f"{level.oversubscription:g}", seconds(level.latency_s))
            for level in cluster.fabric
        ]
        parts += [heading("Fabric"), table("", ("level", ">nodes below", ">oversubscription", ">latency"), rows)]
    sources = [(name, each.confidence, each.source) for name, each in cluster.provenance.items()]
    return [*parts, heading("Sources"), table("", ("number", "confidence", "source"), sources)]


def _rate(bytes_per_s: float) -> str:
    """``450 GB/s``: decimal, one-way, as datasheets say it."""
    return f"{bytes_per_s / 1e9:,.4g} GB/s"
