"""Ranks and nodes from launch lines, only where a switch has one meaning."""

from __future__ import annotations

import pytest

from profiles.importing.launch_command import Launched, launched


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("$ srun -N2 --ntasks-per-node=4 --mpi=pmix ./osu_alltoall", Launched(8, 2, 4)),
        ("$ srun --mpi=pmi2 -t00:05:00 -n2 -N1 /usr/local/osu_bw D D", Launched(2, 1, 2)),
        ("srun -N2 --mpi=pmix ./osu_bw", Launched(None, 2, None)),
        ("srun --nodes=4 --ntasks=8 x", Launched(8, 4, 2)),
        ("mpirun -np 16 -N 8 x", Launched(16, 2, 8)),
        ("mpirun -np 16 --map-by ppr:4:node x", Launched(16, 4, 4)),
        ("/opt/bin/mpiexec -n 4 -ppn 2 IMB-MPI1", Launched(4, 2, 2)),
        ("mpirun -n 5 -ppn 2 x", Launched(5, None, 2)),
        ("mpirun noticed that process rank 0 exited", Launched(None, None, None)),
        ("srun -N0 -n0 x", Launched(None, None, None)),
    ],
)
def test_launch_lines(line: str, expected: Launched) -> None:
    assert launched(line) == expected


@pytest.mark.parametrize("line", ["the srunner -N2", "mpirunx -np 4", "# OSU MPI Bandwidth Test v7.5", ""])
def test_other_lines(line: str) -> None:
    assert launched(line) is None
