"""``meshwright profile calibrate``: few factors per back-end and device, from measured runs."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import options as flags
from planner.cli.backend_names import complete_backends, parse_backends
from planner.cli.commands.profile.flags import Device, Profiles
from planner.cli.output import OutputFormat, talk, write_answer
from planner.errors import DocumentInvalid

if TYPE_CHECKING:
    from planner.backends.backend import Software
    from planner.evidence.calibration.document import Calibration
    from planner.evidence.runs.prediction import Inputs
    from profiles.device import Device as DeviceDocument
    from profiles.prediction.reference import ProfileReference


class GroupChoice(StrEnum):
    """What the runs of one calibration have in common beside device and version."""

    BACKEND = "backend"
    SOURCE = "source"


Truth = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[TRUTH.csv...]", help="Measured runs, one row each (see docs/how-to/judge-accuracy.md)."),
]
LogModel = Annotated[
    str | None, typer.Option("--model", "-m", metavar="M", help="Model of the stored training logs; with --cluster.")
]
LogCluster = Annotated[
    str | None, typer.Option("--cluster", "-c", metavar="C", help="Cluster of the stored training logs.")
]
Batch = Annotated[
    list[str] | None,
    typer.Option("--batch", metavar="ID", help="Only this batch of a stored log (see profile list). Repeatable."),
]
Strategy = Annotated[
    list[str] | None,
    typer.Option("--strategy", "-s", metavar="K=V,...", help="What the logs do not say of the strategy. Repeatable."),
]
Backend = Annotated[
    str | None,
    typer.Option(
        "--backend",
        metavar="NAME[==RELEASE]",
        help="The runs are of this back-end: those that name another are left out, and the calibration corrects it.",
        autocompletion=complete_backends,
    ),
]
SoftwareVersion = Annotated[
    str, typer.Option("--software-version", metavar="V", help="Version that ran, where rows and logs do not say it.")
]
By = Annotated[GroupChoice, typer.Option("--by", help="Group runs by back-end, or also by publication.")]
CalibrationOut = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the calibration (there must be exactly one).")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the fit and store nothing.")]
ListOnly = Annotated[bool, typer.Option("--list", help="List the stored calibrations.")]
Rows = Annotated[bool, typer.Option("--unmapped", help="JSON and YAML: every run that could not be used.")]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("calibrate")(calibrate_runs)


def calibrate_runs(  # noqa: PLR0913, PLR0917  # a flag is an argument
    truth: Truth = None,
    model: LogModel = None,
    cluster: LogCluster = None,
    batch: Batch = None,
    strategy: Strategy = None,
    global_batch_size: flags.GlobalBatchSize = None,
    sequence_length: flags.SequenceLength = None,
    backend: Backend = None,
    software_version: SoftwareVersion = "",
    device: Device = None,
    by: By = GroupChoice.BACKEND,
    profile: flags.Profile = "auto",
    out: CalibrationOut = None,
    dry_run: DryRun = False,
    list_only: ListOnly = False,
    unmapped: Rows = False,
    profiles: Profiles = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Fit factors of a back-end on a device to measured runs, and show the error before and after.

    Nothing is corrected by it until a plan or an estimate asks for it with --calibration.
    """
    from planner.cli.commands.profile.calibrate_answer import answer_data, answer_tables, list_data, list_tables

    if list_only:
        from planner.evidence.calibration.folder import calibrations_folder, stored_calibrations

        stored = stored_calibrations(calibrations_folder(profiles))
        write_answer(list_data(stored), output, lambda: list_tables(stored))
        return
    from planner.cli.commands.profile.calibrate_sources import Gathered, nothing_usable, user_words
    from planner.evidence.calibration.calibrate import calibrate

    gathered = Gathered(None if backend is None else _one_backend(backend))
    gathered.add_truth(truth or [], by.value, software_version)
    if model is not None or cluster is not None:
        said = user_words(model, cluster, strategy, global_batch_size, sequence_length, software_version)
        gathered.add_logs(said, profiles, tuple(batch or ()))
    elif not truth:
        raise DocumentInvalid(
            "nothing to calibrate with",
            where="profile calibrate",
            hint="give measured runs as CSV files, or --model M --cluster C for the stored training logs",
        )
    runs = gathered.wanted(tuple(device or ()))
    talk(f"predicting {len(runs)} measured runs", quiet=quiet)
    inputs, profile_ids = _inputs(profile, profiles)
    outcome = calibrate(runs, gathered.sources, inputs, profile_ids)
    lost = [*gathered.unmapped, *outcome.unmapped]
    if not outcome.calibrations:
        raise nothing_usable(lost)
    dated = datetime.now(UTC).isoformat(timespec="seconds")
    found = [each.model_copy(update={"created_at": dated}) for each in outcome.calibrations]
    written = _written(found, out, None if dry_run else profiles, store=not dry_run)
    data = answer_data(found, written, lost, with_rows=unmapped)
    write_answer(data, output, lambda: answer_tables(found, written, lost))


def _one_backend(text: str) -> Software:
    """The back-end that ran.  Raises NotFound, DocumentInvalid for none or several."""
    from planner.backends.registry import software
    from planner.question.problem import ANY

    names = parse_backends(text)
    if len(names) != 1 or names == (ANY,):
        hint = "name the one that ran, or leave --backend out: each run is then of what its row or log says"
        raise DocumentInvalid("a calibration belongs to one back-end", where="--backend", hint=hint)
    return software(names[0])


def _inputs(profile: str, profiles: str | None) -> tuple[Inputs, dict[str, str]]:
    """Predictions with the profile that ``--profile`` names, by device; and the ids of the profiles used."""
    from planner.evidence.runs.prediction import Inputs
    from planner.operations.profile_choice import AUTO, chosen_profile
    from profiles.observation_store.address import profiles_folder
    from profiles.prediction.profile_folder import profile_of_device, reference_of

    known: dict[str, ProfileReference | None] = {}
    ids: dict[str, str] = {}

    def profile_of(device: DeviceDocument) -> ProfileReference | None:
        if device.name not in known:
            if profile == AUTO and profiles is not None:
                found = profile_of_device(device, profiles_folder(profiles))
                known[device.name] = None if found is None else reference_of(found)
            else:
                known[device.name] = chosen_profile(profile, device)
            reference = known[device.name]
            if reference is not None:
                ids[device.name] = reference.profile_id
        return known[device.name]

    return Inputs(profile_of=profile_of), ids


def _written(found: list[Calibration], out: Path | None, profiles: str | None, *, store: bool) -> dict[str, str]:
    """Files by calibration id: stored ones, and the one that ``--out`` asks for.  Raises DocumentInvalid."""
    from planner.evidence.calibration.folder import calibration_text, calibrations_folder, keep
    from planner.operations.reading import write_file

    useful = [each for each in found if each.factors.changed()]
    if out is not None:
        if len(useful) != 1:
            names = "; ".join(f"{each.framework} on {each.device}" for each in useful[:12])
            what = f"{len(useful)} calibrations, one file" if useful else "no factor helps: there is nothing to write"
            hint = f"choose with --backend and --device among: {names}" if useful else "plan without a calibration"
            raise DocumentInvalid(what, where="--out", hint=hint)
        write_file(out, calibration_text(useful[0]))
    if not store:
        return {}
    folder = calibrations_folder(profiles)
    return {each.calibration_id: str(keep(each, folder)[0]) for each in useful}
