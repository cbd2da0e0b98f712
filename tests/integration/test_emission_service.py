"""Launch files over HTTP say where the job runs, as ``meshwright emit`` does with its flags."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.client import Client
from planner.backends.launch.settings import LaunchSettings
from tests.board_in_memory import MemoryBoard
from tests.command_line import run_here
from tests.listening_service import listening
from tests.running_service import question, service

PLACE: dict[str, Any] = {
    "hosts": ["rack1-n[01-02]", "rack2-n07"],
    "switches": 2,
    "topology_label": "example.com/rack",
    "image": "registry.example.com/team/train:1.2",
    "namespace": "research",
    "files_claim": "launch-files",
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('service') / 'plans.db'}"


@pytest.fixture(scope="module")
def address(database: str) -> Iterator[str]:
    with listening(database, MemoryBoard(database)) as found:
        yield found


@pytest.fixture(scope="module")
def plan(address: str) -> str:
    with Client(address) as client:
        return client.plan(question()).plan_id


@pytest.mark.parametrize(
    ("launcher", "left_out"), [("kubernetes", "switches"), ("volcano", "switches"), ("slurm", "hosts")]
)
def test_the_files_are_those_of_the_command(
    address: str, database: str, plan: str, launcher: str, left_out: str, tmp_path: Path
) -> None:
    place = {name: value for name, value in PLACE.items() if name != left_out}
    flags = [word for name in set(place) - {"hosts"} for word in (f"--{name.replace('_', '-')}", str(place[name]))]
    if "hosts" in place:
        hosts = tmp_path / "hosts"
        hosts.write_text("\n".join(place["hosts"]), encoding="utf-8")
        flags += ["--hosts", str(hosts)]
        place["hosts"] = ("rack1-n01", "rack1-n02", "rack2-n07")
    out = ("--out", str(tmp_path / "here"), "--database", database)
    ran = run_here("emit", plan, "--target", "megatron", "--launcher", launcher, *flags, *out)
    assert ran.exit_code == 0, ran.stderr
    with Client(address) as client:
        settings, folder = LaunchSettings(**place), tmp_path / "there"
        client.write_emission(plan, "megatron", folder, launcher=launcher, settings=settings)
    here, there = (
        {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / where).iterdir() if path.is_file()}
        for where in ("here", "there")
    )
    assert here == there
    assert any("registry.example.com" in text or "--switches" in text for text in there.values())


def test_hosts_may_be_lists_and_the_form_may_be_asked_for(tmp_path: Path) -> None:
    with service(f"sqlite:///{tmp_path / 'plans.db'}") as client:
        plan_id = client.post("/v1/plans", json=question()).json()["plan_id"]
        path = f"/v1/plans/{plan_id}/emissions/megatron"
        whole = client.get(path, params={"launcher": "kubernetes", **PLACE}).json()
        assert whole["manifest"]["launch"]["hosts"] == ["rack1-n01", "rack1-n02", "rack2-n07"]
        archive = client.get(path, params={"launcher": "kubernetes", "format": "zip", **PLACE})
        assert archive.headers["content-type"] == "application/zip"
        with zipfile.ZipFile(io.BytesIO(archive.content)) as opened:
            assert {name: opened.read(name).decode() for name in whole["files"]} == whole["files"]
        plain = client.get(path, params={"format": "json"}, headers={"accept": "application/zip"})
        assert plain.headers["content-type"] == "application/json"
        assert plain.json()["manifest"].get("launch") in (None, {}), "another answer than with settings"
        for name, value in (
            ("image", "UPPER"),
            ("namespace", "no_underscores"),
            ("hosts", "a b;c"),
            ("switches", "0"),
            ("topology_label", "-"),
            ("format", "tar"),
        ):
            refused = client.get(path, params={name: value})
            assert refused.status_code == 422, name
            assert [each["pointer"].split("/")[0] for each in refused.json()["errors"]] == [name]
