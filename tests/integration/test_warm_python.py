"""A forked interpreter is, to the command that it runs, the interpreter; nothing of it stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.rank_launch import cpu_environment
from tests.warm_python.client import SERVER_LOST
from tests.warm_python.imported import FREE
from tests.warm_python.interpreters import DEEPSPEED, NATIVE, WarmPython, WarmPythons

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forking a server needs Linux")

WAIT_S = 300.0
MODULE = "colorsys"
"""Nothing else imports it: a process that has it was forked."""
SAYS = """
import json, os, sys, threading
def annotated(word: str): pass
said = {
    "argv": sys.argv, "name": __name__, "file": globals().get("__file__"), "path": sys.path[:2], "here": os.getcwd(),
    "stdin": sys.stdin.read(), "word": os.environ.get("STEPS"), "same": sys.modules["__main__"].__dict__ is globals(),
    "annotations": str(annotated.__annotations__),
    "session": os.getsid(0) == os.getpid(), "threads": threading.active_count(),
}
print(json.dumps(said))
"""
ENDS = {
    "nothing": "pass",
    "code": "import sys; sys.exit(3)",
    "large code": "import sys; sys.exit(256 + 7)",
    "words": "import sys; sys.exit('the reason')",
    "error": "raise ValueError('the reason')",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "terminated": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "interrupted": "raise KeyboardInterrupt",
    "exit handlers": "import atexit, sys; atexit.register(print, 'last'); print('first'); sys.exit(4)",
    "threads": "import threading, time; threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()",
}
NEW_THREAD = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"


@pytest.fixture(scope="module")
def warm(warm_pythons: WarmPythons) -> WarmPython:
    return warm_pythons.python((MODULE,), os.environ)


def ran(python: str, *words: str, folder: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(
        [python, *words],
        cwd=folder,
        env=environment,
        input="to read",
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    "words", [("-c", SAYS, "a", "-b"), ("-u", "-m", "says", "a"), ("./says.py", "-a"), ("below/up.py",)]
)
def test_a_command_sees_what_it_sees_in_the_real_interpreter(
    words: tuple[str, ...], warm: WarmPython, tmp_path: Path
) -> None:
    (tmp_path / "says.py").write_text(SAYS, encoding="utf-8")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "up.py").symlink_to(tmp_path / "says.py")
    real = ran(sys.executable, *words, folder=tmp_path, STEPS="7")
    forked = ran(warm.executable, *words, folder=tmp_path, STEPS="7")
    assert json.loads(forked.stdout) == json.loads(real.stdout)
    assert (forked.returncode, forked.stderr) == (0, "")


@pytest.mark.parametrize("name", ENDS)
def test_a_command_ends_as_in_the_real_interpreter(name: str, warm: WarmPython) -> None:
    real, forked = (ran(python, "-c", ENDS[name]) for python in (sys.executable, warm.executable))
    assert (forked.returncode, forked.stdout) == (real.returncode, real.stdout)
    assert forked.stderr.splitlines()[-1:] == real.stderr.splitlines()[-1:]


HAS_MODULE = ("-c", f"import sys; print({MODULE!r} in sys.modules, sys.executable)")


def test_a_command_starts_warm_only_where_the_imports_would_have_gone_the_same_way(
    warm: WarmPython, tmp_path: Path
) -> None:
    real, forked = f"False {sys.executable}\n", f"True {warm.executable}\n"
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    assert ran(warm.executable, *HAS_MODULE).stdout == forked, (warm.folder / "log").read_text(encoding="utf-8")
    assert ran(warm.executable, *HAS_MODULE, RANK="3", PATH="/usr/bin").stdout == forked
    assert ran(warm.executable, *HAS_MODULE, DS_ACCELERATOR="other").stdout == real
    (tmp_path / "other_module.py").touch()
    assert ran(warm.executable, *HAS_MODULE, PYTHONPATH=path).stdout == forked
    assert (
        ran(warm.executable, "-c", "import other_module, sys; print(sys.path[1])", PYTHONPATH=path).stdout
        == f"{tmp_path}\n"
    )
    (tmp_path / f"{MODULE}.py").touch()
    assert ran(warm.executable, *HAS_MODULE, PYTHONPATH=path).stdout == real
    assert ran(warm.executable, "-X", "dev", *HAS_MODULE).stdout == real
    assert ran(warm.executable, "-I", *HAS_MODULE).stdout == real


def test_what_a_command_starts_is_warm_too(warm: WarmPython) -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HAS_MODULE[1]!r}])"
    assert ran(warm.executable, "-c", code).stdout == f"True {warm.executable}\n"


def test_numbers_are_drawn_anew_in_each_process(warm_pythons: WarmPythons) -> None:
    python = warm_pythons.python((MODULE, "numpy"), os.environ).executable
    code = "import random, numpy; print(random.random(), numpy.random.random())"
    first, second = (ran(python, "-c", code).stdout.split() for _ in range(2))
    assert len({*first, *second}) == 4


def until(condition: Callable[[], bool]) -> bool:
    """Whether it came true."""
    end = time.monotonic() + WAIT_S
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def alive(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False


WAITS = """
import os, pathlib, signal, subprocess, sys, time
below = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
signal.signal(signal.SIGTERM, lambda *_: (below.kill(), below.wait(), print("asked"), sys.exit(5)))
pathlib.Path("new").write_text(f"{os.getpid()} {below.pid}")
os.rename("new", "processes")
while True:
    time.sleep(0.05)
"""


def started(python: WarmPython, folder: Path) -> subprocess.Popen[str]:
    """A command that waits, as does a command below it."""
    process = subprocess.Popen(
        [python.executable, "-c", WAITS], cwd=folder, env=dict(os.environ), stdout=subprocess.PIPE, text=True
    )
    assert until((folder / "processes").exists)
    return process


@pytest.fixture
def waiting(warm: WarmPython, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = started(warm, tmp_path)
    yield process
    process.kill()
    process.communicate(timeout=WAIT_S)


def test_a_signal_reaches_the_command(waiting: subprocess.Popen[str], tmp_path: Path) -> None:
    command, below = map(int, (tmp_path / "processes").read_text().split())
    assert command != waiting.pid
    waiting.send_signal(signal.SIGTERM)
    assert waiting.communicate(timeout=WAIT_S)[0] == "asked\n"
    assert waiting.returncode == 5
    assert until(lambda: not alive(command) and not alive(below))


def test_a_command_does_not_outlive_its_client(waiting: subprocess.Popen[str], tmp_path: Path) -> None:
    processes = [*map(int, (tmp_path / "processes").read_text().split())]
    assert all(map(alive, processes))
    waiting.kill()
    assert until(lambda: not any(map(alive, processes)))


def test_the_end_of_the_server_ends_its_commands(tmp_path: Path) -> None:
    servers = WarmPythons()
    python = servers.python((MODULE,), os.environ)
    process = started(python, tmp_path)
    command = int((tmp_path / "processes").read_text().split()[0])
    servers.close()
    process.communicate(timeout=WAIT_S)
    assert process.returncode == SERVER_LOST
    assert not alive(command)
    assert not python.folder.exists()


def test_an_import_that_starts_a_thread_is_refused(tmp_path: Path) -> None:
    (tmp_path / "new_thread.py").write_text(NEW_THREAD, encoding="utf-8")
    servers = WarmPythons()
    with pytest.raises(RuntimeError, match="new_thread started threads"):
        servers.python(("new_thread",), {**os.environ, "PYTHONPATH": str(tmp_path)})
    servers.close()


READS = """
import importlib, os, sys
read, real = set(), os._Environ.__getitem__
def watched(self, key):
    # Passing over all of them is not reading one.
    if sys._getframe(1).f_code.co_name != "__iter__":
        read.add(key)
    return real(self, key)
os._Environ.__getitem__ = watched
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*read)
"""


@pytest.mark.slow
@pytest.mark.parametrize("modules", [NATIVE, DEEPSPEED], ids=["native", "deepspeed"])
def test_no_import_reads_a_variable_that_may_differ(modules: tuple[str, ...]) -> None:
    for name in {name.partition(".")[0] for name in modules}:
        pytest.importorskip(name, reason=f"{name} is not installed")
    done = subprocess.run(
        [sys.executable, "-c", READS, *modules],
        env=cpu_environment(DS_ACCELERATOR="cpu"),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    read = set(done.stdout.split())
    assert "OMP_NUM_THREADS" in read or "TORCH_DISTRIBUTED_DEBUG" in read or len(read) > 20, done.stderr
    assert not read & FREE
