"""Asks Open MPI where it would start which rank; starts nothing, on hosts that need not exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner.backends.checking.answers import Refused, serve

TIMEOUT_S = 60
_NODE = re.compile(r"Data for node: (\S+)")
_RANK = re.compile(r"Process rank: (\d+)")


def places(folder: Path) -> dict[str, str]:
    """Variables under which an Open MPI of extracted Debian packages finds its parts."""
    libraries = next((folder / "usr/lib").glob("*-linux-gnu*"))
    plugins = libraries / "openmpi/lib"
    return {
        "LD_LIBRARY_PATH": f"{libraries}:{plugins}:{folder / 'lib' / libraries.name}",
        # Nothing is started on other hosts; without any agent Open MPI would not even map.
        "OMPI_MCA_plm_rsh_agent": "/bin/true",
        "OPAL_PREFIX": str(folder / "usr"),
        "OPAL_LIBDIR": str(libraries),
        "OPAL_PKGLIBDIR": str(plugins / "openmpi3"),
        "OPAL_PKGDATADIR": str(folder / "usr/share/openmpi"),
        "OPAL_SYSCONFDIR": str(folder / "etc/openmpi"),
        # The only thing that root does here is to print a map.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def job_map(text: str) -> dict[int, str]:
    """Rank -> host, from the output of ``--display-map``."""
    found: dict[int, str] = {}
    host = ""
    for line in text.splitlines():
        node, rank = _NODE.search(line), _RANK.search(line)
        if node:
            host = node[1]
        elif rank:
            found[int(rank[1])] = host
    return found


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """The map, compared with the plan's."""
    yield "mpirun"
    folder = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        hostfile = Path(scratch, "hostfile")
        hostfile.write_text(request["hostfile"], encoding="utf-8")
        words = [str(hostfile) if word == "HOSTFILE" else word for word in request["arguments"]]
        done = subprocess.run(
            [str(folder / "usr/bin/orterun"), "--do-not-launch", "--display-map", *words],
            env={**os.environ, **request["environment"], **places(folder)},
            cwd=scratch,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    found = job_map(done.stdout)
    expected = {int(rank): host for rank, host in request["expected"].items()}
    if not found:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines()]
        said = [line for line in lines if line and not set(line) <= set("-=") and "mca_base_component" not in line]
        raise Refused(" ".join(said)[:400])
    yield "map"
    if any(found.get(rank) != host for rank, host in expected.items() if host) or set(found) != set(expected):
        rank = next((rank for rank in sorted(expected) if found.get(rank) != expected[rank]), max(found))
        raise Refused(f"rank {rank} would run on {found.get(rank)}, the plan has it on {expected.get(rank)}")
    facts |= {"ranks": len(found), "hosts": len(set(found.values()))}


if __name__ == "__main__":
    serve(stages, refusals=Refused)
