"""``profile measure``: flags become plans, the answer says what was measured, missing torch is one clear error."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from planner.cli.commands.profile.measure import register
from planner.cli.commands.profile.measure_plans import MeasureFlags, collective_plan, device_plan, wanted_kinds
from planner.errors import Conflict, DocumentInvalid, MeshwrightError, NotFound
from planner.model.load import load_model
from planner.predict.cost.shard_shapes import shard_shapes
from profiles.importers.meshwright_measure import FORMAT
from profiles.importing.source_file import SourceFile
from profiles.measure.ranks import launched_by_torchrun, quiet_rank
from profiles.observation_store.store import ObservationStore
from tests.importing import read

SMALL = ("--only", "embedding", "--grid", "small", "--backend", "cpu", "-q", "-o", "json")


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    made.callback()(lambda: None)
    register(made)
    return made


def run(app: typer.Typer, *words: str) -> Any:
    ran = CliRunner().invoke(app, ["measure", *words], catch_exceptions=True)
    if ran.exception is not None:
        raise ran.exception
    return json.loads(ran.stdout)


def flags(**said: Any) -> MeasureFlags:
    usual: dict[str, Any] = {"only": (), "dtype": "bf16", "time_budget_s": 60.0, "backend": "cpu"}
    return MeasureFlags(**(usual | said))


def test_torch_missing_is_one_error_with_the_install_command(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MeshwrightError) as missing:
        run(app, *SMALL)
    assert missing.value.exit_code == 2
    assert missing.value.hint == "pip install 'meshwright[torch]'"


def test_the_result_is_stored(app: typer.Typer, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="measuring needs the extra meshwright[torch]")
    answer = run(app, *SMALL, "--profiles", str(tmp_path / "store"))
    assert answer["measured"] == {
        "embedding forward bf16": {"measured": 1, "failed": 0},
        "embedding backward bf16": {"measured": 1, "failed": 0},
    }
    (batch,) = ObservationStore.open(str(tmp_path / "store")).batches()
    assert [batch.batch_id] == answer["batches"]
    assert (batch.counts, batch.source.kind, batch.source.format) == (
        {"operators": 2},
        "measured",
        "meshwright-measure",
    )


def test_or_written_to_a_file_that_can_be_imported(app: typer.Typer, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="measuring needs the extra meshwright[torch]")
    answer = run(app, *SMALL, "--out", str(tmp_path / "p.json"), "--profiles", str(tmp_path / "store"))
    assert answer["file"] == str(tmp_path / "p.json")
    assert not (tmp_path / "store").exists()
    assert read(FORMAT, SourceFile(tmp_path / "p.json")).num_observations == 2


def test_the_table_for_people(app: typer.Typer, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="measuring needs the extra meshwright[torch]")
    words = ["measure", *SMALL[:-2], "--dtype", "fp8,bf16", "--profiles", str(tmp_path)]
    shown = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    assert "embedding forward bf16" in shown
    assert "cpu: " in shown


def test_a_models_shapes_are_split_over_tensor_parallel_ranks() -> None:
    spec = load_model("llama-3.1-8b")
    shapes = shard_shapes(spec, [1, 8], 2048)
    matmuls = {(shape.name, *shape.sizes.values()) for shape in shapes if shape.operator == "matmul"}
    assert matmuls == {
        ("qkv", 2048, 6144, 4096),
        ("qkv", 2048, 768, 4096),
        ("output_projection", 2048, 4096, 4096),
        ("output_projection", 2048, 4096, 512),
        ("up", 2048, 28672, 4096),
        ("up", 2048, 3584, 4096),
        ("down", 2048, 4096, 14336),
        ("down", 2048, 4096, 1792),
        ("lm_head", 2048, 128256, 4096),
        ("lm_head", 2048, 16032, 4096),
    }
    attention = [shape for shape in shapes if shape.operator == "attention"]
    assert [(shape.sizes["num_heads"], shape.sizes["num_kv_heads"], shape.causal) for shape in attention] == [
        (32, 8, True),
        (4, 1, True),
    ]
    norms = {(shape.name, shape.sizes["num_tokens"]) for shape in shapes if shape.operator == "norm"}
    assert norms == {("rms_norm", 2048), ("rms_norm", 256)}
    activations = {(shape.name, shape.sizes["ffn_hidden_size"]) for shape in shapes if shape.operator == "activation"}
    assert activations == {("silu_mul", 14336), ("silu_mul", 1792)}


def test_experts_latent_attention_and_layer_norm() -> None:
    mixtral = shard_shapes(load_model("mixtral-8x7b"), [1], 1024)
    grouped = {tuple(shape.sizes.values()) for shape in mixtral if shape.operator == "grouped_matmul"}
    # 1024 tokens, two experts each: 256 rows for each of 8 groups, or all 2048 for the one group of ep = 8.
    assert grouped == {(8, 256, 28672, 4096), (8, 256, 4096, 14336), (1, 2048, 28672, 4096), (1, 2048, 4096, 14336)}
    deepseek = shard_shapes(load_model("deepseek-v3"), [1], 1024)
    (attention,) = [shape for shape in deepseek if shape.operator == "attention"]
    assert (attention.sizes["head_dim"], attention.sizes["value_head_dim"]) == (192, 128)
    gpt = shard_shapes(load_model("gpt3-175b"), [1], 1024)
    assert {shape.name for shape in gpt if shape.operator in ("norm", "activation")} == {"layer_norm", "gelu"}


def test_a_degree_that_does_not_divide_is_left_out() -> None:
    shapes = shard_shapes(load_model("llama-3.1-8b"), [5], 2048)
    assert {shape.operator for shape in shapes} == {"norm"}
    assert all(shape.sizes["num_tokens"] == 2048 for shape in shapes if shape.operator == "norm")


def test_flags_become_plans() -> None:
    pytest.importorskip("torch", reason="measuring needs the extra meshwright[torch]")
    plan = device_plan(
        flags(dtype="bf16, fp8", only=("matmul",), model="llama-3.1-8b", degrees="8", sequence_length=64)
    )
    assert (plan.dtypes, plan.grid, plan.only) == (("bf16", "fp8"), "small", ("matmul",))
    assert {shape.sizes["m"] for shape in plan.shapes if shape.operator == "matmul"} == {64}
    together = collective_plan(flags(only=("collectives",), sizes="4KiB,1MiB,100", dtype="fp8,bf16"))
    assert (together.sizes, together.dtypes) == ((4096, 1 << 20, 100), ("bf16", "fp32"))
    assert (together.collectives, together.overlap, together.overlap_bytes) == (True, False, 1 << 20)


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ({"dtype": "int4"}, "--dtype"),
        ({"dtype": ""}, "--dtype"),
        ({"time_budget_s": -1.0}, "--time-budget"),
        ({"model": "llama-3.1-8b", "degrees": "1,zero"}, "--tp"),
        ({"model": "llama-3.1-8b", "degrees": "0"}, "--tp"),
        ({"model": "llama-3.1-8b", "sequence_length": -4}, "--sequence-length"),
    ],
)
def test_bad_flags_are_named(said: dict[str, Any], where: str) -> None:
    pytest.importorskip("torch", reason="measuring needs the extra meshwright[torch]")
    with pytest.raises(DocumentInvalid) as refused:
        device_plan(flags(**said))
    assert refused.value.where == where


@pytest.mark.parametrize("sizes", ["4x", "-1", "1.5MiB", "0", "1GiBGiB", "KiB", "100000GiB"])
def test_bad_sizes_are_named(sizes: str) -> None:
    with pytest.raises(DocumentInvalid) as refused:
        collective_plan(flags(only=("collectives",), sizes=sizes))
    assert refused.value.where == "--sizes"


def test_operators_and_collectives_are_two_runs() -> None:
    assert wanted_kinds(None, several=True) == ("collectives", "overlap")
    assert wanted_kinds(None, several=False) == ()
    assert wanted_kinds("norm, matmul", several=False) == ("norm", "matmul")
    with pytest.raises(Conflict):
        wanted_kinds("matmul", several=True)
    with pytest.raises(Conflict):
        wanted_kinds("matmul,overlap", several=False)
    with pytest.raises(NotFound):
        wanted_kinds("matmull", several=False)


def test_collectives_without_torchrun_say_how(app: typer.Typer) -> None:
    pytest.importorskip("torch", reason="measuring needs the extra meshwright[torch]")
    with pytest.raises(DocumentInvalid) as alone:
        run(app, "--only", "collectives", "-q")
    assert "torchrun" in str(alone.value.hint)


def test_ranks_are_told_from_the_environment() -> None:
    assert not launched_by_torchrun({})
    assert not launched_by_torchrun({"WORLD_SIZE": "1", "RANK": "0"})
    assert launched_by_torchrun({"WORLD_SIZE": "4", "RANK": "0"})
    assert not quiet_rank({"WORLD_SIZE": "4", "RANK": "0"})
    assert quiet_rank({"WORLD_SIZE": "4", "RANK": "3"})
