"""Recipes of CONTRIBUTING.md, done as written in a copy of the house: so many files, and everything knows the new."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import REPOSITORY

RECIPES = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
LAUNCHER = '''"""Starts torchrun on every node by ssh."""

from planner.backends.launch import torchrun
from planner.backends.launch.spec import LaunchFiles, LaunchSpec


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """One line a node, beside what torchrun needs."""
    started = torchrun.launch_files(spec)
    lines = [f"ssh node{node} NODE_RANK={node} bash launch.sh" for node in range(spec.num_nodes)]
    files = {**started.files, "ssh.sh": "\\n".join(lines) + "\\n"}
    return LaunchFiles(files, "bash ssh.sh", started.executables | {"ssh.sh"})
'''
FAMILY = '    "example": Decoder(gated=False, mlp_bias="mlp_bias"),\n'
DEFAULTS = {"defaults": {"num_key_value_heads": 8, "max_position_embeddings": 2048, "mlp_bias": False}, "aliases": {}}
CONFIG = {
    **{"model_type": "example", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8},
    **{"intermediate_size": 1024, "vocab_size": 32000, "mlp_bias": True},
}


OPERATION = '''"""Which stage fills its device most."""

from planner.operations.operation import Operation
from planner.operations.plan_reference import PlanRequest
from profiles.document import Document


class FullestStage(Document):
    """A stage and its peak memory."""

    stage: int
    peak_memory_bytes: int


def _work(session, asked: PlanRequest) -> FullestStage:
    fullest = max(session.plan(asked.plan).stages, key=lambda each: each.peak_memory_bytes.total)
    return FullestStage(stage=fullest.stage, peak_memory_bytes=fullest.peak_memory_bytes.total)


FULLEST = Operation(
    name="get_fullest",
    summary="Which stage fills its device most",
    description="Its number and its peak.",
    request=PlanRequest,
    answer=FullestStage,
    work=_work,
    path="/v1/plans/{plan}/fullest",
    served="view",
    command="fullest",
)
'''
COMMAND = '''"""``meshwright fullest``: which stage fills its device most."""

from __future__ import annotations

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.operations.service import opened_service


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fullest")(fullest)


def fullest(
    plan: flags.PlanReference,
    database: flags.Database = None,
    server: flags.Server = None,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Which stage fills its device most."""
    from planner.operations.fullest import FULLEST
    from planner.operations.plan_reference import PlanRequest

    with opened_service(server, database) as service:
        found = service.call(FULLEST, PlanRequest(plan=plan))
    write_answer(found.model_dump(), output, lambda: [f"stage {found.stage}: {found.peak_memory_bytes:,} bytes"])
'''
ASKED_THERE = """
import sys
from api.app import openapi_document
from planner.cli.main import main
from tests.listening_service import listening

plan, database = sys.argv[1:]
said = openapi_document()["paths"]["/v1/plans/{plan}/fullest"]["get"]
assert said["summary"] == "Which stage fills its device most"
assert said["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/FullestStage")
with listening(database) as address:
    sys.exit(main(["fullest", plan, "--server", address, "-o", "json"]))
"""


def files_of_recipe(what: str) -> int:
    """The number of files in the recipe's row."""
    (number,) = re.findall(rf"^\| {what} \| (\d) \|", RECIPES, re.MULTILINE)
    return int(number)


class House:
    """A copy of the packages, and which of its files were touched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.touched: set[str] = set()
        for package in ("api", "planner", "profiles", "solver"):
            shutil.copytree(REPOSITORY / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))

    def add(self, name: str, text: str) -> None:
        assert not (self.folder / name).exists()
        (self.folder / name).write_text(text, encoding="utf-8")
        self.touched.add(name)

    def edit(self, name: str, before: str, after: str) -> None:
        text = (self.folder / name).read_text(encoding="utf-8")
        assert text.count(before) == 1, before
        (self.folder / name).write_text(text.replace(before, after), encoding="utf-8")
        self.touched.add(name)

    def meshwright(self, *words: str) -> str:
        return self.python("-m", "planner.cli.main", *words)

    def python(self, *words: str) -> str:
        """What an interpreter prints that finds the house first, then the tests of the repository."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env={
                **{"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "COLUMNS": "200"},
                "PYTHONPATH": f"{self.folder}:{REPOSITORY}",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.mark.slow
def test_a_launcher(house: House) -> None:
    folder = "planner/backends/launch"
    house.add(f"{folder}/ssh.py", LAUNCHER)
    house.edit(f"{folder}/launchers.py", "    slurm,\n", "    slurm,\n    ssh,\n")
    house.edit(
        f"{folder}/launchers.py",
        '        "slurm": slurm.launch_files,\n',
        '        "slurm": slurm.launch_files,\n        "ssh": ssh.launch_files,\n',
    )
    house.edit(f"{folder}/__init__.py", '"torchrun", "slurm",', '"torchrun", "slurm", "ssh",')
    assert len(house.touched) == files_of_recipe("a launcher")
    question = ("--model", "llama-3.2-1b", "--cluster", "dgx-h100", "--devices", "16", "--global-batch-size", "64")
    out = house.folder / "out"
    words = (
        "--sequence-length",
        "4096",
        "--backend",
        "native",
        "--emit",
        "best",
        "--launcher",
        "ssh",
        "--out",
        str(out),
    )
    made = json.loads(house.meshwright("plan", *question, *words, "--no-store", "-o", "json"))
    assert made["emissions"][0]["launcher"] == "ssh"
    assert (out / "ssh.sh").read_text().splitlines()[1].startswith("ssh node1 ")
    assert "ssh" in house.meshwright("plan", "--help")
    assert "legal for native" in house.meshwright("check", str(out))


@pytest.mark.slow
def test_a_model_family(house: House) -> None:
    folder, first = "planner/model/hf_config", '    "arcee": Decoder('
    house.edit(f"{folder}/tables/dense.py", first, FAMILY + first)
    known = f"{folder}/class_defaults.json"
    house.edit(known, '"types": {\n', f'"types": {{\n  "example": {json.dumps(DEFAULTS)},\n')
    assert len(house.touched) == files_of_recipe("a model family")
    config = house.folder / "config.json"
    config.write_text(json.dumps(CONFIG), encoding="utf-8")
    shown = json.loads(house.meshwright("models", "show", str(config), "-o", "json"))
    assert shown["family"] == "example"
    layer = shown["spec"]["layer_kinds"][0]
    assert layer["mlp"] == {"intermediate_size": 1024, "gated": False, "bias": True}
    assert (layer["attention"]["num_kv_heads"], shown["spec"]["max_sequence_length"]) == (8, 2048)


@pytest.mark.slow
def test_an_operation(house: House) -> None:
    house.add("planner/operations/fullest.py", OPERATION)
    registry, main = "planner/operations/registry.py", "planner/cli/main.py"
    before = "from planner.operations.labels import"
    house.edit(registry, before, f"from planner.operations.fullest import FULLEST\n{before}")
    house.edit(registry, "    EXPLAIN,\n", "    EXPLAIN,\n    FULLEST,\n")
    house.add("planner/cli/commands/fullest.py", COMMAND)
    house.edit(main, "        explain,\n        models,\n", "        explain,\n        fullest,\n        models,\n")
    house.edit(main, "        explain,\n        diff,\n", "        explain,\n        fullest,\n        diff,\n")
    assert len(house.touched) == files_of_recipe("an operation")
    database = f"sqlite:///{house.folder / 'plans.db'}"
    question = ("--model", "llama-3.2-1b", "--cluster", "dgx-h100", "--devices", "8", "--global-batch-size", "64")
    made = json.loads(
        house.meshwright("plan", *question, "--sequence-length", "4096", "--database", database, "-o", "json")
    )
    identity = made["plan_id"]
    here = json.loads(house.meshwright("fullest", identity, "--database", database, "-o", "json"))
    assert here["peak_memory_bytes"] == max(each["peak_memory_bytes"]["total"] for each in made["stages"])
    assert house.meshwright("fullest", identity, "--database", database).startswith("stage ")
    assert json.loads(house.python("-c", ASKED_THERE, identity, database)) == here
