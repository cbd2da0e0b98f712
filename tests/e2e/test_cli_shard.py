"""``meshwright shard`` from the command line: edited folders, compared plans, families solved to a proof."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="tracing needs the extra meshwright[torch]")

from tests.command_line import Ran, run_here

SMALL = ("shard", "--module", "tests.sharding_modules:TwoLayers", "--mesh", "2x2", "--dtype", "float32")
INPUTS = ("--input", "x=float32[8,4,16]", "--input", "wanted=float32[8,4,16]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Emitted once; tests copy what they change."""
    out = tmp_path_factory.mktemp("shard") / "run"
    ran = run_here(*SMALL, *INPUTS, "--out", str(out), "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    emission = ran.json()["emission"]
    assert set(emission["files"]) == {"PLAN.md", "launch.sh", "parallelize.py", "sharding.json", "train.py"}
    assert emission["launch_command"] == "bash launch.sh"
    checked = run_here("check", str(out), "-o", "json")
    assert (checked.exit_code, checked.json()["findings"]) == (0, [])
    return out


def edited(folder: Path, name: str, was: str, now: str) -> Ran:
    """What ``check`` says of one change, which is then undone."""
    path = folder / name
    text = path.read_text("utf-8")
    assert was in text
    path.write_text(text.replace(was, now, 1), "utf-8")
    try:
        return run_here("check", str(folder), "-o", "json")
    finally:
        path.write_text(text, "utf-8")


def said(ran: Ran) -> list[str]:
    """Findings in words."""
    return [f"{row['rule']} {row['message']}" for row in ran.json()["findings"]]


@pytest.mark.parametrize(
    ("name", "was", "now", "keys"),
    [
        ("sharding.json", '"optimizer": "adamw"', '"optimizer": "sgd"', ['/optimizer: now "sgd"']),
        ("sharding.json", '"parameter": "up.bias"', '"parameter": "up.base"', ["/parameters/", "of up.base"]),
        ("launch.sh", "DEVICES_PER_NODE=4", "DEVICES_PER_NODE=8", ["line ", "emitted as DEVICES_PER_NODE=4"]),
        ("train.py", "import shlex", "import json", ["line ", "emitted as import shlex"]),
    ],
)
def test_an_edit_is_named_by_file_and_key(folder: Path, name: str, was: str, now: str, keys: list[str]) -> None:
    ran = edited(folder, name, was, now)
    assert ran.exit_code == 8, ran.stderr
    (finding,) = [text for text in said(ran) if text.startswith("emission.edited")]
    assert name in finding
    assert finding.count(";") == 1, "one key and no other"
    for key in keys:
        assert key in finding


def test_a_plan_that_is_none_any_more_is_named_by_its_key(folder: Path) -> None:
    ran = edited(folder, "sharding.json", '"status": "optimal"', '"status": "best"')
    assert ran.exit_code == 8
    rows = [row for row in ran.json()["findings"] if row["rule"] == "emission.read_back"]
    assert "sharding.json#/status" in json.dumps(rows)


def test_a_saved_plan_is_compared_by_term_module_and_operator(folder: Path) -> None:
    ran = run_here(*SMALL, *INPUTS, "--against", str(folder), "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    difference = ran.json()["difference"]
    assert difference["num_different"] == 0
    assert {row["term"]: row["delta"] for row in difference["terms"]}["step"] == 0

    other = run_here(*SMALL, *INPUTS, "--optimizer", "sgd", "--against", str(folder / "sharding.json"), "-o", "json")
    terms = {row["term"]: row["delta"] for row in other.json()["difference"]["terms"]}
    assert terms["states_bytes"] > 0, "the saved plan's AdamW keeps more than SGD does"


def test_what_cannot_be_compared_is_one_error(folder: Path, tmp_path: Path) -> None:
    absent = run_here(*SMALL, *INPUTS, "--against", str(tmp_path / "absent.json"), "-o", "json")
    assert absent.exit_code == 3
    assert "absent.json" in absent.stderr

    broken = tmp_path / "broken.json"
    data = json.loads((folder / "sharding.json").read_text("utf-8"))
    data["mesh"][0]["size"] = -2
    broken.write_text(json.dumps(data), "utf-8")
    refused = run_here(*SMALL, *INPUTS, "--against", str(broken), "-o", "json")
    assert refused.exit_code == 2
    assert "broken.json#/mesh/0/size" in refused.stderr

    wider = run_here(*SMALL, *("--input", "x=float32[16,4,16]", "--input", "wanted=float32[16,4,16]"),
                     "--against", str(folder), "-o", "json")  # fmt: skip
    assert wider.exit_code == 4
    assert "different steps" in wider.stderr


def test_a_config_that_is_none_is_one_error(tmp_path: Path) -> None:
    for name, text, code in (("a.json", "{", 2), ("b.json", "{}", 2), ("c.json", '{"model_type": "no-such"}', 2)):
        (tmp_path / name).write_text(text, "utf-8")
        ran = run_here("shard", "--model", str(tmp_path / name), "--mesh", "2x2", "-o", "json")
        assert (ran.exit_code, name in ran.stderr) == (code, True), ran.stderr
    assert run_here("shard", "--model", str(tmp_path / "absent.json"), "--mesh", "2", "-o", "json").exit_code == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "against"),
    [
        ("resnet:ResNet", {"width": 128, "batch": 64, "image": 64}, ()),
        ("encoder_decoder:EncoderDecoder", {"hidden_size": 2048, "layers": 1, "batch": 8, "length": 1024}, ()),
        ("diffusion_transformer:DiffusionTransformer", {"hidden_size": 1024, "blocks": 1, "size": 64}, ("megatron",)),
        ("mixture_of_experts:MixtureOfExperts", {"hidden_size": 2048, "ffn_size": 4096, "length": 2048}, ("fsdp",)),
    ],
)
def test_every_family_is_solved_to_a_proof_on_two_axes(
    name: str, arguments: dict[str, Any], against: tuple[str, ...]
) -> None:
    module = ("--module", f"tests.examples.{name}", "--module-args", json.dumps(arguments))
    ran = run_here("shard", *module, "--mesh", "2x4", *(("--against", *against) if against else ()), "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    data = ran.json()
    assert data["status"] == "optimal"
    assert data["bound_s"] == pytest.approx(data["costs"]["total_s"], rel=1e-12)
    assert any(word != "replicate" for row in data["parameters"] for word in row["state_placements"])
    if against:
        step = next(row for row in data["difference"]["terms"] if row["term"] == "step")
        assert step["delta"] >= 0, "what a person writes is never better under the same costs"
