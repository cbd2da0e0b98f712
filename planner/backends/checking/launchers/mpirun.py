"""mpirun: checks that Open MPI would start every rank on the host where the plan has it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from planner.backends.checking.debian import unpack
from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.launch.mpirun import HOST_FILE
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_size
from planner.backends.rules.foreign_names import foreign_names
from planner.errors import DocumentInvalid

OPEN_MPI_VERSION = "4.1.4"
_PACKAGES = foreign_names("""
    openmpi-bin openmpi-common libopenmpi3 libevent-core-2.1-7 libevent-pthreads-2.1-7 libhwloc15 libnl-3-200
    libnl-route-3-200 libibverbs1 libmunge2 libfabric1 libpmix2 libpsm-infinipath1 libpsm2-2 librdmacm1 libucx0 zlib1g
""")
_COMMAND = 'exec "${MPIRUN:-mpirun}" '


def mpirun_words(text: str) -> list[str]:
    """The words that ``launch.sh`` gives to mpirun; HOSTFILE stands for the host file.  Raises DocumentInvalid."""
    _, found, command = text.partition(_COMMAND)
    if not found:
        raise DocumentInvalid(f"{LAUNCH_SCRIPT} starts no mpirun", where=LAUNCH_SCRIPT, hint="emit the plan again")
    line = command.replace("\\\n", " ").splitlines()[0]
    return shlex.split(re.sub(r'"?\$\{?HOSTFILE\}?"?', "HOSTFILE", line))


def request(folder: EmittedFolder) -> Request:
    """The words, a host file (fictional names where none is given), and where each rank must run."""
    text = folder.files[LAUNCH_SCRIPT]
    num_nodes, per_node = read_size(text, "NUM_NODES"), read_size(text, "DEVICES_PER_NODE")
    if folder.manifest.get("process_drives_node"):
        per_node = 1
    fictional = "".join(f"node{index} slots={per_node}\n" for index in range(num_nodes))
    hostfile = folder.files.get(HOST_FILE, fictional)
    words = mpirun_words(text)
    hosts = [line.split()[0] for line in hostfile.splitlines() if line.strip()]
    # mpirun prints its own name for this machine, so the rank's host is compared only where a host file names it.
    named = hosts if "HOSTFILE" in words else [""] * num_nodes
    ranks = range(num_nodes * per_node)
    expected = {str(rank): next(iter(named[rank // per_node :]), "") for rank in ranks}
    variables = {"MASTER_ADDR": "node0", "MASTER_PORT": "29500", **folder.environment}
    return {"arguments": words, "hostfile": hostfile, "expected": expected, "environment": variables}


def _install(folder: Path, version: str) -> None:
    unpack(folder, _PACKAGES, version, "mpirun")


VALIDATOR = Validator(
    name="mpirun",
    default_version=OPEN_MPI_VERSION,
    worker=Path(__file__).with_name("mpirun_worker.py"),
    applies=lambda folder: _COMMAND in folder.files.get(LAUNCH_SCRIPT, ""),
    request=request,
    install=_install,
)
