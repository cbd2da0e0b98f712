"""The ranking score: how well the planner picks among runs that differ only in their strategy.

In a group of runs of one model on the same devices with one batch::

    kendall_tau = (concordant - discordant) / sqrt((pairs - ties in one) (pairs - ties in the other))      (tau-b)
    regret      = 1 - best measured time / measured time of the run that we predict to be fastest
    top3_regret = the same for the best measured of our three fastest

Groups come from a ``ranking_groups*.csv`` beside the truth file (columns id, ranking_group) where there is one (rows
that it leaves out are then in no group), else from equal model, devices, sequence, batch, device type and precision
within one source.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from planner.errors import DocumentInvalid
from planner.evidence.runs.sources import source_group
from planner.evidence.runs.truth import TruthRow
from solver.arrays import Array

FEWEST_FOR_TAU = 3
GOOD_PICK = 0.05
"""A pick that loses at most this part of the best speed counts as good."""


@dataclass(frozen=True, slots=True)
class RankingScore:
    """Means over ranking groups; None where no group is large enough."""

    num_groups: int
    kendall_tau: float | None
    median_kendall_tau: float | None
    regret: float | None
    top3_regret: float | None
    good_picks: float | None


@dataclass(frozen=True, slots=True)
class RankedGroup:
    """Figures of one ranking group."""

    key: str
    num_runs: int
    kendall_tau: float | None
    regret: float
    top3_regret: float

    def figures(self) -> dict[str, Any]:
        """Without the name."""
        return {name: value for name, value in asdict(self).items() if name != "key"}


def read_groups(text: str, where: str) -> dict[str, str]:
    """Row id -> ranking group.  Raises DocumentInvalid when the columns are not there."""
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    if not {"id", "ranking_group"} <= set(reader.fieldnames or ()):
        raise DocumentInvalid(
            "missing columns: a groups file needs id and ranking_group",
            where=f"{where}:1",
            hint="correct its header, or move the file away",
        )
    return {row["id"]: row["ranking_group"] for row in reader if row["id"] and row["ranking_group"]}


def ranking_key(row: TruthRow, groups: Mapping[str, str]) -> str:
    """Group of a row: as the groups file says, else by what the runs of a sweep share."""
    if row.id in groups:
        return groups[row.id]
    parts = (source_group(row.source), row.model, row.layers, row.num_devices, row.seq_len, row.gbs)
    return "|".join(str(part) for part in (*parts, row.device, row.precision))


def ranking_groups(keys: Sequence[str], predicted: Sequence[float], measured: Sequence[float]) -> list[RankedGroup]:
    """Every group of two runs or more, in the order of its first run."""
    members: dict[str, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        members[key].append(index)
    guess, truth = np.array(predicted, dtype=np.float64), np.array(measured, dtype=np.float64)
    return [
        RankedGroup(
            key,
            len(indices),
            kendall_tau(guess[indices], truth[indices]) if len(indices) >= FEWEST_FOR_TAU else None,
            regret(guess[indices], truth[indices], 1),
            regret(guess[indices], truth[indices], 3),
        )
        for key, indices in members.items()
        if len(indices) > 1
    ]


def ranking_score(keys: Sequence[str], predicted: Array, measured: Array) -> RankingScore:
    """Score all groups of two runs or more."""
    groups = ranking_groups(keys, predicted.tolist(), measured.tolist())
    if not groups:
        return RankingScore(0, None, None, None, None, None)
    taus = [group.kendall_tau for group in groups if group.kendall_tau is not None]
    regrets = np.array([group.regret for group in groups])
    return RankingScore(
        num_groups=len(groups),
        kendall_tau=float(np.mean(taus)) if taus else None,
        median_kendall_tau=float(np.median(taus)) if taus else None,
        regret=float(regrets.mean()),
        top3_regret=float(np.mean([group.top3_regret for group in groups])),
        good_picks=float(np.mean(regrets <= GOOD_PICK)),
    )


def kendall_tau(first: Array, second: Array) -> float | None:
    """Tau-b of two rankings; None when one of them is constant."""
    upper = np.triu_indices(len(first), 1)
    left = np.sign(first[:, None] - first[None, :])[upper]
    right = np.sign(second[:, None] - second[None, :])[upper]
    scale = np.sqrt(np.count_nonzero(left) * np.count_nonzero(right))
    return float((left * right).sum() / scale) if scale > 0 else None


def regret(predicted: Array, measured: Array, picks: int) -> float:
    """Part of the best measured speed lost by the best measured of our ``picks`` fastest."""
    chosen = np.argsort(predicted, kind="stable")[:picks]
    return float(1.0 - measured.min() / measured[chosen].min())
