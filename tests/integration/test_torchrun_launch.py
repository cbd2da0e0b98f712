"""``launch.sh`` starts the ranks that it promises: with the real torchrun, on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from planner.backends.launch.launchers import launch_files
from planner.backends.launch.spec import LaunchSpec

pytestmark = pytest.mark.slow
RANK_SCRIPT = '#!/usr/bin/env bash\necho "$RANK $LOCAL_RANK $WORLD_SIZE $WORD $*" > "rank-$RANK"\n'


def start(directory: Path, node: int, port: int) -> subprocess.Popen[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.Popen(
        ["bash", str(directory / "launch.sh"), str(node)],
        env={**os.environ, "PATH": path, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_nodes_of_two_ranks(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed, torchrun comes with it")
    spec = LaunchSpec("job", 2, 2, "train.sh", ("--name", "two words"), {"WORD": "a b"})
    for name, text in {**launch_files(spec, "torchrun").files, "train.sh": RANK_SCRIPT}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "train.sh").chmod(0o755)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    nodes = [start(tmp_path, node, port) for node in (1, 0)]
    for node in nodes:
        _, errors = node.communicate(timeout=400)
        assert node.returncode == 0, errors
    said = {rank: (tmp_path / f"rank-{rank}").read_text() for rank in range(4)}
    assert said == {rank: f"{rank} {rank % 2} 4 a b --name two words\n" for rank in range(4)}
