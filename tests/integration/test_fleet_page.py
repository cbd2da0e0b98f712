"""The how-to page of fleets: its commands run as they are written, and the launch files name the nodes."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.command_line import REPOSITORY, run_here

PAGE = REPOSITORY / "docs" / "how-to" / "share-a-fleet.md"


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
    assert "Launch files" in printed[0]
    assert "Who moves" in printed[2]
    assert "h02" not in printed[2]


def test_one_clear_error_names_the_job_and_the_field(tmp_path: Path) -> None:
    text = (REPOSITORY / "examples" / "fleet" / "fleet.yaml").read_text(encoding="utf-8")
    path = tmp_path / "fleet.yaml"
    path.write_text(text.replace("    tokens_to_go: 2.0e+10\n", ""), encoding="utf-8")
    ran = run_here("fleet", str(path))
    assert ran.exit_code == 2
    assert "job distill: a deadline of how many tokens?" in ran.stderr
    assert "/jobs/2/tokens_to_go" in ran.stderr
