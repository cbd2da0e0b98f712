"""Asks a real Slurm controller whether it would start a batch script; its nodes are fictional and nothing is started.

The controller runs unprivileged, out of extracted packages, and stays up for some seconds for one cluster.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner.backends.checking.answers import Refused, serve

MOST_CONTROLLERS = 4
OLDEST_S = 10.0
"""After a while the controller notices that no node answers, and refuses every job; a new one is up in 0.2 s."""
START_TIMEOUT_S = 30.0
TIMEOUT_S = 60.0
PARTITION = "train"
_STARTED = re.compile(r"using (\d+) processors on nodes (\S+)")


class Controller:
    """One slurmctld for one fictional cluster."""

    def __init__(self, overlay: Path, cluster: dict[str, Any]) -> None:
        libraries = next((overlay / "usr/lib").glob("*-linux-gnu*"))
        self.programs = overlay / "usr"
        self.started = time.monotonic()
        self.folder = Path(tempfile.mkdtemp(prefix="slurmctld-"))
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))},
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "LD_LIBRARY_PATH": f"{libraries}:{libraries / 'slurm-wlm'}",
        }
        self.log = self.folder / "slurmctld.log"
        write_configuration(self.folder, libraries / "slurm-wlm", cluster)
        server = str(self.programs / "sbin/slurmctld-wlm")
        self.process = subprocess.Popen(
            [server, "-D", "-i"],
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.wait_until_up()
        for kind in cluster["kinds"] if cluster["gres"] else ():
            # Without it the counts stay unknown until a node registers, and every job that asks for devices is refused.
            devices = f"gres={cluster['gres']}:{kind['devices_per_node']}"
            self.run("scontrol", "update", f"nodename={kind['nodes']}", devices)

    def wait_until_up(self) -> None:
        """Raises RuntimeError with the log's last line when the controller does not come up."""
        end = time.monotonic() + START_TIMEOUT_S
        while "is UP" not in self.run("scontrol", "ping").stdout:
            if self.process.poll() is not None or time.monotonic() > end:
                lines = self.log.read_text(errors="replace").strip().splitlines() if self.log.exists() else []
                raise RuntimeError(f"slurmctld did not start: {lines[-1] if lines else 'no log'}")
            time.sleep(0.05)

    def run(self, program: str, *words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """One client program, to its end."""
        return subprocess.run(
            [str(self.programs / "bin" / program), *words],
            env=self.environment,
            cwd=self.folder,
            input=text,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def close(self) -> None:
        """End the controller and remove its state."""
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_configuration(folder: Path, plugins: Path, cluster: dict[str, Any]) -> None:
    """Write slurm.conf, gres.conf and topology.conf of the fictional cluster (slurm.conf(5), Slurm 22.05)."""
    gres, kinds = cluster["gres"], [(kind["nodes"], kind["devices_per_node"]) for kind in cluster["kinds"]]
    fixed = "NodeAddr=127.0.0.1 CPUs=192 RealMemory=2000000"
    nodes = "\n".join(
        f"NodeName={names} {fixed} {f'Gres={gres}:{count}' if gres else ''} State=IDLE" for names, count in kinds
    )
    devices = "".join(f"NodeName={names} Name={gres} Count={count}\n" for names, count in kinds)
    lines = f"""ClusterName=check
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
CommunicationParameters=NoCtldInAddrAny
AuthType=auth/none
CredType=cred/none
SlurmUser={getpass.getuser()}
StateSaveLocation={folder}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}
PluginDir={plugins}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
TopologyPlugin=topology/tree
GresTypes=gpu,npu,neuron
SlurmdTimeout=0
{nodes}
PartitionName={PARTITION} Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
    (folder / "slurm.conf").write_text(lines, encoding="utf-8")
    (folder / "gres.conf").write_text(devices if gres else "", encoding="utf-8")
    (folder / "topology.conf").write_text(cluster["topology"], encoding="utf-8")


CONTROLLERS: dict[str, Controller] = {}
"""By the description of the cluster."""


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """``sbatch --test-only`` on the cluster of the request."""
    yield "sbatch"
    key = json.dumps(request["cluster"], sort_keys=True)
    if key in CONTROLLERS and time.monotonic() - CONTROLLERS[key].started > OLDEST_S:
        CONTROLLERS.pop(key).close()
    if key not in CONTROLLERS:
        while len(CONTROLLERS) >= MOST_CONTROLLERS:
            CONTROLLERS.pop(next(iter(CONTROLLERS))).close()
        CONTROLLERS[key] = Controller(Path(sys.argv[1]), request["cluster"])
    done = CONTROLLERS[key].run("sbatch", "--test-only", text=request["script"])
    said = " ".join(done.stderr.split())
    found = _STARTED.search(said)
    if done.returncode or not found:
        message = said.removeprefix("sbatch: error: ").removeprefix("allocation failure: ") or "no answer"
        if "partition" in message:
            message += f" (the controller of this check has one partition, {PARTITION})"
        raise Refused(message[:400])
    facts |= {"nodes": found[2], "processors": int(found[1])}


if __name__ == "__main__":
    try:
        serve(stages, refusals=Refused)
    finally:
        for controller in CONTROLLERS.values():
            controller.close()
