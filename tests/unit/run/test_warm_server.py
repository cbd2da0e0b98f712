"""Forked ranks: what ``python`` and ``torchrun`` do from a server is what they do by themselves."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.backends.ranks.launch_ranks import CLIENT_VARIABLE, rank_environment
from planner.errors import BackEndRefused
from tests.warm_ranks.python import warm_python


@pytest.fixture(scope="module")
def clients() -> Iterator[Path]:
    with warm_python(("json.tool",), {}) as folder:
        yield folder


def asked(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [folder / "python", *words],
        env=rank_environment(more),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def script(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_script_sees_its_words_folder_variables_and_the_imports(clients: Path, tmp_path: Path) -> None:
    text = (
        "import os, sys\nprint(sys.argv[1:], os.getcwd(), os.environ['NUMBER'], 'json.tool' in sys.modules, __name__)"
    )
    done = asked(clients, "-u", script(tmp_path / "said.py", text), "--a", "b c", NUMBER="7")
    assert done.stdout == f"['--a', 'b c'] {clients} 7 True __main__\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_modules_lie_beside_the_script_and_in_the_search_path(clients: Path, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    script(tmp_path / "near.py", "VALUE = 1")
    script(tmp_path / "far" / "distant.py", "print('distant', __name__)")
    main = script(tmp_path / "main.py", "import distant, near, runpy\nprint(near.VALUE)")
    assert asked(clients, main, PYTHONPATH=str(tmp_path / "far")).stdout == "distant distant\n1\n"
    assert asked(clients, "-m", "distant", PYTHONPATH=str(tmp_path / "far")).stdout == "distant __main__\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [("raise SystemExit(3)", 3), ("1 / 0", 1), ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", -9)],
)
def test_it_ends_as_the_script_does(clients: Path, tmp_path: Path, text: str, code: int) -> None:
    done = asked(clients, script(tmp_path / "ends.py", text))
    assert done.returncode == code
    assert ("ZeroDivisionError" in done.stderr) is (code == 1)


def test_what_is_neither_script_nor_module_the_real_interpreter_does(clients: Path) -> None:
    done = asked(clients, "-c", "import sys; print(sys.executable, 'json.tool' in sys.modules)")
    assert str(clients) not in done.stdout
    assert done.stdout.endswith(" False\n")


def test_a_fork_ends_with_its_client(clients: Path, tmp_path: Path) -> None:
    record = tmp_path / "pid"
    text = f"import os, time\nopen({str(record)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    client = subprocess.Popen([clients / "python", script(tmp_path / "sleeps.py", text)], env=rank_environment({}))
    end = time.monotonic() + 60
    while not (record.exists() and record.read_text(encoding="utf-8")) and time.monotonic() < end:
        time.sleep(0.05)
    pid = int(record.read_text(encoding="utf-8"))
    client.kill()
    client.wait()
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()


def test_imports_that_fail_are_told_and_nothing_stays(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CLIENT_VARIABLE, raising=False)
    with pytest.raises(BackEndRefused, match="did not start"), warm_python(("no_such_module",), {}):
        pass
    assert "no_such_module" in capfd.readouterr().err
    assert CLIENT_VARIABLE not in os.environ
