"""The how-to page of fleets: its commands run as they are written, and the launch files name the nodes."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from planner.backends.checking.emitted import read_folder
from planner.backends.folders.catalogue import validator
from tests.command_line import REPOSITORY, run_here
from tests.validators import SharedWorkers

PAGE = REPOSITORY / "docs" / "how-to" / "share-a-fleet.md"
EXAMPLE = REPOSITORY / "examples" / "fleet" / "fleet.yaml"


@pytest.mark.slow
@pytest.mark.usefixtures("no_validators")
def test_the_commands_run_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == 3
    printed = []
    for line in lines:
        command, _, target = line.replace("out/", f"{tmp_path}/").partition(" > ")
        program, *words = shlex.split(command)
        assert program == "meshwright"
        ran = run_here(*words)
        assert ran.exit_code == 0, ran.stderr
        printed.append(ran.stdout)
        if target:
            Path(target).write_text(ran.stdout, encoding="utf-8")
    answer = json.loads((tmp_path / "fleet.json").read_text(encoding="utf-8"))
    assert {job["change"] for job in answer["jobs"]} == {"starts"}
    for job in answer["jobs"]:
        manifest = json.loads((tmp_path / "fleet" / job["name"] / "manifest.json").read_text(encoding="utf-8"))
        assert manifest["plan_id"] == job["plan_id"]
        assert manifest["launch"]["hosts"] == job["nodes"]
    assert "How good it is" in printed[0]
    assert "Who moves" in printed[2]
    assert "h02" not in printed[2]


def test_one_clear_error_names_the_job_and_the_field(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    path = tmp_path / "fleet.yaml"
    path.write_text(text.replace("    tokens_to_go: 2.0e+10\n", ""), encoding="utf-8")
    ran = run_here("fleet", str(path))
    assert ran.exit_code == 2
    assert "job distill: a deadline of how many tokens?" in ran.stderr
    assert "/jobs/2/tokens_to_go" in ran.stderr


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Words that share the example's fleet again from the answer that it got once."""
    folder = tmp_path_factory.mktemp("fleet")
    words, former = ("fleet", str(EXAMPLE), "--database", f"sqlite:///{folder / 'plans.db'}"), folder / "fleet.json"
    former.write_text(run_here(*words, "-o", "json").stdout, encoding="utf-8")
    return *words, "--former", str(former)


@pytest.mark.thorough  # test_launcher_validators asks the same validators about folders of every launcher
@pytest.mark.parametrize(
    ("launcher", "asked"),
    [
        ("slurm", "sbatch"),
        ("volcano", "kubernetes-validate"),
        ("kubernetes", "kubeflow-trainer-api"),
        ("ray", "kubernetes-validate"),
    ],
)
def test_the_schedulers_own_validators_take_every_job_of_a_fleet(
    launcher: str,
    asked: str,
    shared: tuple[str, ...],
    tmp_path: Path,
    shared_workers: SharedWorkers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as away:
        # Those of the back-ends, which ask as files are written, look at no hosts.
        away.setenv("MESHWRIGHT_VALIDATORS", str(tmp_path / "none"))
        ran = run_here(*shared, "--out", str(tmp_path / "out"), "--launcher", launcher)
    assert ran.exit_code == 0, ran.stderr
    folders = [read_folder(path) for path in sorted((tmp_path / "out").iterdir())]
    assert len(folders) == 3
    for folder in folders:
        verdict = shared_workers.worker(asked).ask(validator(asked).request(folder))
        assert verdict.accepted, (folder, verdict)
