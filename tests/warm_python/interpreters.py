"""Warm interpreters for the environment of a test, from the session's ``warm_pythons`` (conftest.py)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.warm_python.imported import FREE, SEARCHED, folders

REPOSITORY = Path(__file__).parents[2]
END_TIMEOUT_S = 60.0
# Commands need not see this repository: it is in the search path for these two lines only.
SERVER = """import sys; sys.path.insert(0, sys.argv[1])
from tests.warm_python.server import main; del sys.path[0]
main(sys.argv[2], sys.argv[3:])"""

_TORCH = (
    "torch.distributed.run",
    "torch.distributed.elastic.agent.server.local_elastic_agent",
    "torch.distributed.elastic.rendezvous.c10d_rendezvous_backend",
    "torch.distributed.elastic.rendezvous.static_tcp_rendezvous",
    "torch.distributed.tensor.parallel",
    "torch.distributed.pipelining",
    "torch.distributed.fsdp",
    "torch._dynamo",
    "torch._inductor",
    "torch.utils.cpp_extension",
)
NATIVE = (*_TORCH, "planner.backends.native.trainer.train", "planner.backends.native.trainer.operator_sharding.train")
DEEPSPEED = (
    *_TORCH,
    "deepspeed",
    "deepspeed.pipe",
    "deepspeed.module_inject.auto_ep_config",
    "deepspeed.runtime.pipe.engine",
    # Imported with the first ZeRO optimizer, and with it the compiler.
    "deepspeed.runtime.zero.muon.original_muon",
    "transformers",
    "transformers.modeling_utils",
    "transformers.models.llama.modeling_llama",
    "transformers.models.mixtral.modeling_mixtral",
    "transformers.models.qwen3.modeling_qwen3",
)


@dataclass(frozen=True, slots=True)
class WarmPython:
    """A folder with ``python`` and ``torchrun``."""

    folder: Path

    @property
    def executable(self) -> str:
        """What stands where ``sys.executable`` would."""
        return str(self.folder / "python")

    def found_by(self, environment: Mapping[str, str]) -> dict[str, str]:
        """``environment`` in which scripts find this interpreter, then what else is installed beside the real one."""
        path = (str(self.folder), str(Path(sys.executable).parent), environment.get("PATH", os.defpath))
        return {**environment, "PATH": os.pathsep.join(path), "PYTHON": self.executable}


@dataclass(slots=True)
class WarmPythons:
    """The servers of one test process, each started when it is first asked for."""

    _servers: dict[tuple[object, ...], tuple[Path, subprocess.Popen[bytes]]] = field(default_factory=dict)

    def python(self, modules: tuple[str, ...], environment: Mapping[str, str]) -> WarmPython:
        """An interpreter that has imported ``modules`` in ``environment``.

        It serves commands whose environment is the same, but for ``FREE``; what a launch script exports counts.
        """
        if sys.platform != "linux":
            return WarmPython(Path(sys.executable).parent)
        own = {name: value for name, value in environment.items() if name not in FREE | {SEARCHED}}
        key = (modules, folders(environment), tuple(sorted(own.items())))
        if key not in self._servers:
            self._servers[key] = _started(modules, environment)
        return WarmPython(self._servers[key][0])

    def close(self) -> None:
        """End all servers, and with them what they still run."""
        for _, server in self._servers.values():
            # The end of its stdin.
            server.communicate(timeout=END_TIMEOUT_S)
        self._servers.clear()


def _started(modules: tuple[str, ...], environment: Mapping[str, str]) -> tuple[Path, subprocess.Popen[bytes]]:
    # Not in pytest's folder: the path of a socket is short.
    folder = Path(tempfile.mkdtemp(prefix="warm-python-"))
    client = Path(__file__).with_name("client.py").read_text(encoding="utf-8")
    for name in ("python", "torchrun"):
        (folder / name).write_text(f"#!{sys.executable} -IS\n{client}", encoding="utf-8")
        (folder / name).chmod(0o755)
    with (folder / "log").open("wb") as log:
        # Unbuffered, as torchrun starts its ranks.
        server = subprocess.Popen(
            [sys.executable, "-u", "-c", SERVER, str(REPOSITORY), str(folder / "socket"), *modules],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    if server.stdout is None or server.stdout.readline() != b"ready\n":
        server.kill()
        server.communicate()
        said = (folder / "log").read_text(encoding="utf-8", errors="replace")
        shutil.rmtree(folder)
        raise RuntimeError(f"no warm interpreter: {said[-4000:]}")
    return folder, server
