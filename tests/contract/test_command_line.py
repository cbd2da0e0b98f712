"""The contract of DESIGN.md, section 5: scripts outside the repository rely on these words."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import typer

from planner.cli.main import build_app
from tests.command_line import REPOSITORY, command, run_here, run_process, shell_environment

LEAVES: dict[str, set[str]] = {
    "plan": {
        *("--model", "--cluster", "--devices", "--workload", "--global-batch-size", "--sequence-length", "--precision"),
        *("--objective", "--pin", "--forbid", "--profile", "--top", "--time-limit", "--emit", "--launcher", "--out"),
        "--backend",
    },
    "estimate": {
        *("--model", "--cluster", "--devices", "--workload", "--global-batch-size", "--sequence-length", "--precision"),
        *("--strategy", "--backend"),
    },
    "explain": {"--why-not", "--server"},
    "throughput": {"--model", "--cluster", "--devices", "--backend", "--server"},
    "towers": {"--model", "--cluster", "--devices", "--images", "--tower-devices", "--pin", "--server"},
    "serving plan": {
        *(
            "--model",
            "--cluster",
            "--devices",
            "--input-tokens",
            "--output-tokens",
            "--concurrency",
            "--requests-per-s",
        ),
        *("--ttft-ms", "--tpot-ms", "--percentile", "--objective", "--engine", "--disaggregation", "--pin", "--server"),
    },
    "serving estimate": {"--layout", "--model", "--cluster", "--server"},
    "serving explain": {"--why-not"},
    "serving emit": {"--platform", "--engine", "--out"},
    "serving check": {"--with-engine"},
    "fleet": {"--former", "--lost-nodes", "--objective", "--out", "--server"},
    "replan": {"--devices", "--lost-nodes", "--server"},
    "diff": {"--server"},
    "sensitivity": set(),
    "diagnose": {"--calibration-out", "--server"},
    "place": {"--topology", "--nodes", "--hosts-out", "--server"},
    "goodput": {"--storage-bandwidth", "--repair-hours", "--tokens", "--server"},
    "emit": {"--backend", "--launcher", "--out"},
    "shard": {"--instance", "--module", "--mesh", "--time-limit"},
    "check": set(),
    "run": {"--tiny", "--backend"},
    "backends list": set(),
    "backends show": set(),
    "models list": set(),
    "models show": set(),
    "clusters list": set(),
    "clusters show": set(),
    "devices list": set(),
    "devices show": set(),
    "plans list": set(),
    "plans show": set(),
    "plans export": set(),
    "profile import": {"--format", "--dry-run", "--keep-going", "--set", "--device", "--cluster-out", "--profiles"},
    "profile list": set(),
    "profile show": set(),
    "profile conflicts": set(),
    "profile drop": set(),
    "profile formats": set(),
    "db upgrade": set(),
    "jobs list": {"--server", "--status"},
    "jobs show": {"--server"},
    "jobs watch": {"--server"},
    "jobs cancel": {"--server"},
}
HEAVY = {
    "numpy",
    "sqlalchemy",
    "alembic",
    "ortools",
    "highspy",
    "torch",
    "rich",
    "ruamel",
    "pyarrow",
    "planner.question.problem",
    "planner.backends.registry",
}
"""Not pydantic: Typer itself loads it to read the value of a flag."""


def leaf(path: str) -> Any:
    found: Any = typer.main.get_command(build_app())
    for name in path.split():
        found = found.commands[name]
    return found


def flags(path: str) -> dict[str, Any]:
    return {name: parameter for parameter in leaf(path).params for name in parameter.opts}


@pytest.mark.parametrize("path", LEAVES)
def test_the_flags_of_the_contract_are_there(path: str) -> None:
    assert LEAVES[path] <= set(flags(path))


@pytest.mark.parametrize("path", LEAVES)
def test_every_command_prints_table_json_and_yaml(path: str) -> None:
    assert flags(path)["-o"].opts == ["--output", "-o"]
    assert "-o, --output <table|json|yaml>" in run_here(*path.split(), "--help").stdout


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["plan", "--help"],
        ["emit", "--help"],
        ["plans", "--help"],
        ["profile", "import", "--help"],
    ],
)
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    code = f"import sys; from planner.cli.main import main; main({words}); print(sorted({HEAVY} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=shell_environment(),
        cwd=REPOSITORY,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("path", ["plan", "estimate", "throughput", "sweep", "emit", "run", "profile calibrate"])
@pytest.mark.parametrize("flag", ["--target", "--framework"])
def test_flags_of_earlier_versions_name_the_one_of_today(path: str, flag: str) -> None:
    assert flag not in flags(path), "no --help shows it"
    for words in ((flag, "megatron"), (f"{flag}=megatron",)):
        ran = run_here(*path.split(), *words, "-o", "json")
        assert (ran.exit_code, ran.stdout) == (2, "")
        error = ran.error()
        assert error["slug"] == "usage"
        assert error["where"] == f"meshwright {path} {flag}"
        assert "--backend" in error["what"]
        assert "--backend" in error["hint"]


def test_the_version_of_a_measured_run_has_one_name_too() -> None:
    error = run_here("profile", "calibrate", "--framework-version", "0.16.0", "-o", "json").error()
    assert error["what"] == "--framework-version is --software-version now"
    assert error["hint"] == "write --software-version V"


def test_help_is_quick() -> None:
    """The target is 0.3 s on a quiet machine (benchmarks); processor time, which neighbours do not stretch, thrice."""
    took_s = []
    for _ in range(3):
        before = os.times()
        assert run_process("--help").exit_code == 0
        after = os.times()
        took_s.append(sum(after[2:4]) - sum(before[2:4]))  # user and system seconds of children
    assert min(took_s) < 0.9


def test_a_reader_that_leaves_is_no_error() -> None:
    process = subprocess.Popen(
        command("devices", "list", "-o", "json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=shell_environment(),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    stderr = process.stderr.read()
    process.stderr.close()
    assert process.wait(300) == 141
    assert stderr == b""


def test_words_that_are_not_utf8_are_an_input_error() -> None:
    done = subprocess.run(
        [*(os.fsencode(word) for word in command("models", "show")), b"\xff\xfe"],
        capture_output=True,
        env=shell_environment(),
        cwd=REPOSITORY,
        check=False,
    )
    assert done.returncode == 3
    assert b"error[not-found]" in done.stderr
    assert b"Traceback" not in done.stderr


def test_json_in_an_ascii_locale_is_still_json() -> None:
    ran = run_process("devices", "list", "-o", "json", environment={"LC_ALL": "C", "PYTHONIOENCODING": "ascii"})
    assert ran.exit_code == 0
    assert ran.stdout.isascii()
    assert {"name", "memory_bytes", "peak_flops_per_s"} <= set(ran.json()[0])
    table = run_process("devices", "list", environment={"LC_ALL": "C", "PYTHONIOENCODING": "ascii"})
    assert table.exit_code == 0
    assert table.stdout.isascii()


def test_json_and_yaml_say_the_same() -> None:
    from profiles.safe_yaml import load_yaml_text

    json_answer = run_process("clusters", "show", "dgx-h100", "-n", "16", "-o", "json").json()
    yaml_answer = load_yaml_text(run_process("clusters", "show", "dgx-h100", "-n", "16", "-o", "yaml").stdout, "yaml")
    assert json_answer == yaml_answer
    assert json_answer["num_devices"] == 16


def test_the_version_is_the_packages() -> None:
    from planner.version import __version__

    assert run_process("--version").stdout == f"meshwright {__version__}\n"
