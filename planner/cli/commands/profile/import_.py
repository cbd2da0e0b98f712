"""``meshwright profile import``: read files that measuring tools wrote, store what they measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.commands.profile.flags import INSTALLED, Profiles
from planner.cli.key_values import key_values
from planner.cli.options import Output, Quiet
from planner.cli.output import OutputFormat, write_answer
from planner.cli.problem_inputs import whole_number
from planner.errors import DocumentInvalid

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="Files or folders; the word aiconfigurator reads the installed package."),
]
FormatName = Annotated[
    str | None,
    typer.Option("--format", "-f", metavar="F", help="Do not guess: the format of all files (see profile formats)."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Store nothing; show what would be stored.")]
KeepGoing = Annotated[
    bool, typer.Option("--keep-going", help="Store good rows and good files; list the bad ones (exit code 2).")
]
Given = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="K=V", help="A fact that the file does not say: operation=all_gather. Repeatable."),
]
DeviceName = Annotated[
    str | None, typer.Option("--device", metavar="NAME", help="The device that was measured, where the file is silent.")
]
NoRedact = Annotated[
    bool, typer.Option("--no-redact", help="Keep addresses, user names and secrets found in free texts.")
]
Rows = Annotated[
    int, typer.Option("--rows", metavar="N", help="With --dry-run: at most so many rows a kind and batch.")
]
System = Annotated[
    str | None, typer.Option("--system", metavar="NAME", help="With aiconfigurator: the system, for example h100_sxm.")
]
ClusterOut = Annotated[
    Path | None,
    typer.Option("--cluster-out", metavar="FILE", help="Write the imported topology as a cluster YAML (with --base)."),
]
Base = Annotated[
    str | None,
    typer.Option("--base", metavar="C", help="Cluster whose other numbers --cluster-out takes."),
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("import")(import_files)


def import_files(  # noqa: PLR0913, PLR0917  # a flag is an argument
    files: Files,
    format_name: FormatName = None,
    dry_run: DryRun = False,
    keep_going: KeepGoing = False,
    given: Given = None,
    device: DeviceName = None,
    no_redact: NoRedact = False,
    rows: Rows = 10_000,
    system: System = None,
    cluster_out: ClusterOut = None,
    base: Base = None,
    profiles: Profiles = None,
    quiet: Quiet = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Read what benchmarks, profilers and machines wrote; store it once, in seconds and bytes."""
    whole_number(rows, "--rows")
    facts = parse_given(given or [], device)
    check_words(files, system, cluster_out, base)

    from planner.cli.commands.profile import cluster_out as clusters
    from planner.cli.commands.profile import import_answer, import_outcome
    from profiles.import_outcomes import mark_stored, store_usable
    from profiles.observation_store.store import ObservationStore

    store = ObservationStore.open(profiles)
    wanted = import_outcome.Wanted(format_name, facts, keep_going=keep_going, redact=not no_redact, quiet=quiet)
    outcomes = import_outcome.read_all(files, system, wanted)
    mark_stored(outcomes, store)
    refusal = import_outcome.refusal(outcomes, keep_going=keep_going)
    if refusal is not None and not (dry_run or keep_going):
        raise refusal
    cluster = None if cluster_out is None else clusters.complete(outcomes, cluster_out, base, facts.get("device"))
    if not dry_run:
        store_usable(outcomes, store)
        if cluster is not None:
            cluster.write()
    limit = rows if dry_run else 0
    data = import_answer.answer_data(outcomes, limit, cluster=cluster)
    write_answer(data, output, lambda: import_answer.answer_tables(outcomes, store, dry_run=dry_run, cluster=cluster))
    if refusal is not None:
        raise refusal


def check_words(files: Sequence[str], system: str | None, cluster_out: Path | None, base: str | None) -> None:
    """Raises DocumentInvalid for words that do not go together."""
    installed = system is not None or (INSTALLED in files and not Path(INSTALLED).exists())
    if installed and list(files) != [INSTALLED]:
        raise DocumentInvalid(
            "the installed tables are imported alone",
            where="--system" if system else INSTALLED,
            hint=f"meshwright profile import {INSTALLED} --system h100_sxm",
        )
    if installed and system is None:
        raise DocumentInvalid(
            "which system?", where=INSTALLED, hint=f"add --system, for example: {INSTALLED} --system h100_sxm"
        )
    if base is not None and cluster_out is None:
        raise DocumentInvalid("--base belongs to --cluster-out", where="--base", hint="add --cluster-out FILE")


def parse_given(pairs: Sequence[str], device: str | None) -> dict[str, str]:
    """``K=V`` words as a mapping, with ``--device``.  Raises DocumentInvalid."""
    hint = "for example --set group_size=16"
    facts = key_values(pairs, "--set", hint, dashes=True)
    if empty := next((name for name, value in facts.items() if not value), None):
        raise DocumentInvalid(f"{empty} has no value", where="--set", hint=hint)
    if device is not None:
        if not device.strip():
            raise DocumentInvalid("the name is empty", where="--device", hint="`meshwright devices list` shows names")
        if facts.get("device", device) != device:
            raise DocumentInvalid("the device is given twice", where="--device", hint="keep --device only")
        facts["device"] = device
    return facts
