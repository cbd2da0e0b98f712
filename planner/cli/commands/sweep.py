"""``meshwright sweep``: plan every combination of models, clusters, device counts, lengths and batches; one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli import options as flags
from planner.cli.backend_names import complete_backends
from planner.cli.planning import search_options
from planner.cli.problem_inputs import positive
from planner.cli.remote_question import remote_sweep
from planner.cli.sweep_inputs import SweepFlags, read_cells, read_question
from planner.cli.sweeping import SweepOutput, answer_sweep
from planner.cli.workload_flags import NOTHING_SAID, KindFlags, with_flags
from planner.operations.service import opened_service

EXECUTORS = "serial|processes|ray|ray://HOST:PORT"

SweepFile = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="The sweep as YAML or JSON; flags replace its axes.")
]
Models = Annotated[
    list[str] | None, typer.Option("--model", "-m", metavar="M,...", help="Models, as `plan` takes them. Repeatable.")
]
Clusters = Annotated[
    list[str] | None,
    typer.Option("--cluster", "-c", metavar="C,...", help="Clusters, as `plan` takes them. Repeatable."),
]
Devices = Annotated[
    list[str] | None,
    typer.Option("--devices", "-n", metavar="N,...", help="Device counts (default: clusters as they are described)."),
]
Lengths = Annotated[
    list[str] | None, typer.Option("--sequence-length", metavar="S,...", help="Tokens a sample, one or more.")
]
Batches = Annotated[
    list[str] | None, typer.Option("--global-batch-size", metavar="B,...", help="Samples a step, one or more.")
]
Backend = Annotated[
    str | None,
    typer.Option(
        "--backend",
        metavar="B[==RELEASE],...",
        help="Software that may run the plans (see plan --help; default: what the file says, else any).",
        autocompletion=complete_backends,
    ),
]
Price = Annotated[
    float | None, typer.Option("--price", metavar="X", help="Price of a device hour (default: the cluster's own).")
]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", metavar="SECONDS", help="Stop each search and report its gap.")
]
ExecutorName = Annotated[
    str | None,
    typer.Option(
        "--executor", metavar="E", help=f"Who searches (default processes): {EXECUTORS}. The plans are the same."
    ),
]
Workers = Annotated[
    int | None, typer.Option("--workers", metavar="N", help="Processes of this machine (default: one a core).")
]
RayCode = Annotated[
    Path | None,
    typer.Option("--ray-code", metavar="FOLDER", help="Send Meshwright's sources in FOLDER to Ray's workers."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sweep")(sweep)


@with_flags("kinds", KindFlags)
def sweep(  # noqa: PLR0913, PLR0917  # a flag is an argument
    file: SweepFile = None,
    model: Models = None,
    cluster: Clusters = None,
    devices: Devices = None,
    sequence_length: Lengths = None,
    global_batch_size: Batches = None,
    kinds: KindFlags = NOTHING_SAID,
    profile: flags.Profile = "auto",
    price: Price = None,
    pin: flags.Pin = None,
    forbid: flags.Forbid = None,
    backend: Backend = None,
    memory_margin: flags.MemoryMargin = None,
    fits: flags.Fits = None,
    top: flags.TopK = 3,
    time_limit: TimeLimit = None,
    seed: flags.Seed = 0,
    executor: ExecutorName = None,
    workers: Workers = None,
    ray_code: RayCode = None,
    database: flags.Database = None,
    server: flags.Server = None,
    quiet: flags.Quiet = False,
    output: Annotated[SweepOutput, typer.Option("--output", "-o", help="How to print the answer.")] = SweepOutput.TABLE,
) -> None:
    """Plan every combination of models, clusters, device counts, sequence lengths and batch sizes."""
    from planner.answers.sweep.executor import PROCESSES
    from planner.answers.sweep.executor import executor as executor_of
    from planner.operations.sweep import SweepAsked

    axes = {
        "models": model,
        "clusters": cluster,
        "device_counts": devices,
        "sequence_lengths": sequence_length,
        "global_batch_sizes": global_batch_size,
    }
    positive(price, "--price")
    search = search_options(top, time_limit, seed)
    said = SweepFlags(file, axes, kinds, pin or [], forbid or [], backend, memory_margin, fits)
    here = {"--executor": executor is not None, "--workers": workers is not None, "--ray-code": bool(ray_code)}
    with opened_service(server, database, only_here=here, instead="its workers search") as service:
        chosen = executor_of(executor or PROCESSES, workers, ray_code)
        question = read_question(said)
        asked = SweepAsked(
            question=service.question(
                lambda: read_cells(question, profile), lambda: remote_sweep(service, question, profile)
            ),
            price_per_device_hour=price,
            top_k=search.top_k,
            time_limit_s=search.time_limit_s,
            seed=search.seed,
            executor=chosen,
        )
        answer_sweep(service, question, asked, quiet=quiet, output=output)
