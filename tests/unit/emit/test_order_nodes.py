"""``order_nodes.py``, run for real: one process a pod, all on this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from planner.backends.launch.torchrun import order_script


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def words(*given: str) -> list[str]:
    return [sys.executable, "order_nodes.py", "--hosts", "hosts.txt", "--meet", "127.0.0.1", *given]


def start(folder: Path, names: list[str], timeout: str = "60") -> list[subprocess.Popen[str]]:
    """One process for each pod; ``names[i]`` is the machine under pod i."""
    (folder / "order_nodes.py").write_text(order_script())
    port = str(free_port())
    return [
        subprocess.Popen(
            [*words("--name", name, "--index", str(index), "--port", port), "--timeout", timeout],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index, name in enumerate(names)
    ]


def test_every_pod_gets_the_line_of_its_machine(tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text("n2\nn10\nn1\n")
    said = [process.communicate(timeout=300) for process in start(tmp_path, ["n1", "n2", "n10"])]
    assert [out.split() for out, _ in said] == [["2", "127.0.0.1"], ["0", "127.0.0.1"], ["1", "127.0.0.1"]]


def test_a_pod_on_a_machine_that_is_not_listed_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text("n1\nn2\n")
    pods = start(tmp_path, ["n1", "n3"], timeout="3")
    said = [process.communicate(timeout=300)[1] for process in pods]
    assert "n3 is not in the list" in said[1]
    assert "no pod on n2" in said[0]
    assert all(process.returncode for process in pods)


def test_a_stranger_on_the_port_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text("n1\nn2\n")
    first = start(tmp_path, ["n1"])[0]
    port = int(str(first.args[first.args.index("--port") + 1]))  # type: ignore[union-attr, index, arg-type]
    for _ in range(200):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as stranger:
                stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            break
        except OSError:
            continue
    second = subprocess.run(
        words("--name", "n2", "--index", "1", "--port", str(port)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert second.stdout.split()[0] == "1"
    assert first.communicate(timeout=300)[0].split()[0] == "0"
