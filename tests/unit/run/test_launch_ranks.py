"""Launches end as a whole: real processes in real sessions, as torchrun makes them."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from planner.backends.ranks.extension_cache import (
    ENVIRONMENT_VARIABLE,
    LONGEST_BUILD_S,
    extension_folder,
    remove_stale_locks,
)
from planner.backends.ranks.launch_ranks import LOG_FILE, descendants, run_ranks
from planner.backends.ranks.stop_signals import exits_on_request, leave_if_asked
from planner.errors import BackEndRefused

TREE = "setsid sleep 300 & echo $! > rank.pid\nsetsid bash -c 'sleep 301 & echo $! > below.pid; wait' &\n"


def script(folder: Path, text: str) -> Path:
    """A launch script of our own."""
    folder.mkdir(exist_ok=True)
    (folder / "launch.sh").write_text(text, encoding="utf-8")
    return folder


def alive(path: Path) -> bool:
    """Whether the process whose id is in the file still runs."""
    try:
        stat = Path(f"/proc/{int(path.read_text())}/stat").read_text()
    except OSError:
        return False
    return ") Z " not in stat


def test_a_launch_that_ends_well_gives_what_it_printed(tmp_path: Path) -> None:
    folder = script(tmp_path, 'echo "$TRAIN_ARGS"; echo noise >&2')
    ran = run_ranks(folder, {"TRAIN_ARGS": "--steps 2"}, time.monotonic() + 300)
    assert ran.stdout == "--steps 2\n"
    assert ran.notes == ()
    assert (folder / LOG_FILE).read_text() == "noise\n"


def test_a_failure_says_what_the_ranks_said_and_where(tmp_path: Path) -> None:
    folder = script(tmp_path, "echo 'ValueError: no such layer' >&2; exit 3")
    with pytest.raises(BackEndRefused, match="exit code 3: ValueError: no such layer") as caught:
        run_ranks(folder, {}, time.monotonic() + 300)
    assert caught.value.where == str(folder / LOG_FILE)


def test_nothing_is_left_after_a_timeout(tmp_path: Path) -> None:
    folder = script(tmp_path, f"{TREE}wait\n")
    with pytest.raises(BackEndRefused, match="did not end in time"):
        run_ranks(folder, {}, time.monotonic() + 2)
    assert (folder / "below.pid").exists()
    assert not alive(folder / "rank.pid")
    assert not alive(folder / "below.pid")


@pytest.mark.usefixtures("heeded_signals")
def test_a_request_whose_exception_was_lost_still_ends_the_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class AskedWhileFinalised:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGHUP)

    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: lost.append(found.exc_type))
    folder = script(tmp_path, f"{TREE}wait\n")

    @exits_on_request()
    def launch() -> None:
        AskedWhileFinalised()
        assert lost == [SystemExit]
        run_ranks(folder, {}, time.monotonic() + 300)

    with pytest.raises(SystemExit) as caught:
        launch()
    assert caught.value.code == 129
    leave_if_asked()


@pytest.mark.parametrize(
    "said",
    [
        "terminate called without an active exception",
        "torch.distributed.DistNetworkError: The server socket has failed to listen (errno: EADDRINUSE)",
    ],
)
def test_what_another_launch_may_avoid_is_launched_once_more(said: str, tmp_path: Path) -> None:
    folder = script(tmp_path, f"if [ -e again ]; then exit 0; fi; touch again; echo '{said}' >&2; exit 1")
    (note,) = run_ranks(folder, {}, time.monotonic() + 300).notes
    assert note.endswith("; the ranks were started a second time")


def test_a_second_failure_is_the_answer(tmp_path: Path) -> None:
    folder = script(tmp_path, "echo EADDRINUSE >&2; exit 1")
    with pytest.raises(BackEndRefused):
        run_ranks(folder, {}, time.monotonic() + 300)


def test_descendants_of_this_process_do_not_hold_itself() -> None:
    assert os.getpid() not in descendants(os.getpid())


def test_only_locks_that_nobody_holds_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = extension_folder()
    for name in ("held", "stale"):
        (folder / name).mkdir()
        (folder / name / "lock").touch()
    with (folder / "held" / "lock").open():
        assert remove_stale_locks(folder) == (folder / "stale" / "lock",)
    assert (folder / "held" / "lock").exists()
    # Others may use a folder that the environment names: only what is older than any build.
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(folder))
    (folder / "stale" / "lock").touch()
    assert remove_stale_locks(folder) == ()
    before = time.time() - LONGEST_BUILD_S - 60
    os.utime(folder / "stale" / "lock", (before, before))
    assert remove_stale_locks(folder) == (folder / "stale" / "lock",)
