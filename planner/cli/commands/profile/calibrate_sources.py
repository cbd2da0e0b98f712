"""The measured runs of ``profile calibrate``: rows of CSV files and stored training logs, with hashes."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.problem_inputs import whole_number
from planner.errors import DocumentInvalid, NotFound

if TYPE_CHECKING:
    from planner.backends.backend import Software
    from planner.evidence.calibration.calibrate import CalibrationRun
    from planner.evidence.calibration.log_runs import Said
    from planner.evidence.calibration.truth_runs import GroupBy
    from planner.evidence.runs.prediction import Unmapped


class Gathered:
    """Runs of all sources, with the hashes of what they came from and what could not be used.

    ``said``: the back-end that ``--backend`` names; None = each run is of what its row, log or publication says.
    """

    def __init__(self, said: Software | None = None) -> None:
        self.said = said
        self.runs: list[CalibrationRun] = []
        self.unmapped: list[Unmapped] = []
        self.sources: dict[str, str] = {}

    def add_truth(self, paths: list[Path], by: GroupBy, version: str) -> None:
        """Rows of CSV files; a name that two files share is told apart by its hash."""
        from planner.cli.commands.accuracy import read_truth_files
        from planner.evidence.calibration.truth_runs import truth_runs
        from planner.evidence.runs.truth import read_truth
        from planner.operations.reading import read_text

        if not paths:
            return
        rows, _ = read_truth_files(paths)
        file_of: dict[str, str] = {}
        for path in paths:
            text = read_text(path)
            digest = hashlib.sha256(text.encode()).hexdigest()
            name = path.name if self.sources.get(path.name, digest) == digest else f"{path.name}#{digest[:8]}"
            self.sources[name] = digest
            file_of |= dict.fromkeys((row.id for row in read_truth(text, str(path))), name)
        runs, unmapped = truth_runs(rows, file_of, by, version, self.said)
        self.runs += runs
        self.unmapped += unmapped

    def add_logs(self, said: Said, profiles: str | None, prefixes: tuple[str, ...]) -> None:
        """Stored iterations.  Raises NotFound where there are none."""
        from planner.evidence.calibration.log_runs import log_runs, source_name
        from profiles.observation_store.query import Selection, observations
        from profiles.observation_store.store import ObservationStore

        store = ObservationStore.open(profiles)
        batch_ids = tuple(store.resolve(prefix).batch.batch_id for prefix in prefixes)
        stored = observations(store, "iterations", Selection(batch_ids=batch_ids))
        if not stored:
            raise NotFound(
                "no training log is stored",
                where=str(store.folder),
                hint="`meshwright profile import LOG` stores one",
            )
        first_line = 1 + max((run.run.row.line for run in self.runs), default=0)
        runs, unmapped = log_runs(stored, said, first_line)  # type: ignore[arg-type]  # rows of this kind only
        self.sources |= {source_name(batch): batch.source.file_sha256 or batch.batch_id for batch, _ in stored}
        self.runs += runs
        self.unmapped += unmapped

    def wanted(self, devices: tuple[str, ...]) -> list[CalibrationRun]:
        """Runs of the back-end and devices that are asked for.  Raises DocumentInvalid when none is left."""
        from planner.evidence.calibration.runs_of_backend import runs_of_backend

        found = self.runs if self.said is None else runs_of_backend(self.runs, self.said)
        found = [run for run in found if not devices or run.device in devices]
        if found:
            return found
        if not self.runs:
            raise nothing_usable(self.unmapped)
        names = sorted({f"{run.framework} on {run.device}" for run in self.runs})
        raise DocumentInvalid(
            "no run is of that back-end and device",
            where="--backend --device",
            hint=f"there are: {'; '.join(names[:12])}",
        )


def nothing_usable(unmapped: list[Unmapped]) -> DocumentInvalid:
    """The error that says why no run can be used."""
    reasons = Counter(each.reason for each in unmapped).most_common(5)
    said = "; ".join(f"{count} x {reason}" for reason, count in reasons) or "nothing was measured"
    return DocumentInvalid(
        f"no run can be predicted: {said}",
        where="profile calibrate",
        hint="state what is missing: columns of the CSV; for logs --strategy, --global-batch-size, --sequence-length",
    )


def user_words(
    model: str | None,
    cluster: str | None,
    strategy: list[str] | None,
    global_batch_size: int | None,
    sequence_length: int | None,
    software_version: str,
) -> Said:
    """What the user says about the logs.  Raises DocumentInvalid, NotFound."""
    from planner.evidence.calibration.log_runs import Said
    from planner.model.load import load_model
    from planner.strategy.text import parse_assignments
    from profiles.catalogue import load_cluster

    if model is None or cluster is None:
        raise DocumentInvalid(
            "logs say neither their model nor their cluster in full",
            where="--cluster" if cluster is None else "--model",
            hint="give both --model M and --cluster C",
        )
    whole_number(global_batch_size, "--global-batch-size")
    whole_number(sequence_length, "--sequence-length")
    return Said(
        model=load_model(model),
        cluster=load_cluster(cluster, None),
        strategy=parse_assignments(strategy or [], "--strategy"),
        global_batch_size=global_batch_size,
        sequence_length=sequence_length,
        software_version=software_version,
    )
