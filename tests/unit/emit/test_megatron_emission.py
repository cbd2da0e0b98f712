from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from planner.backends.emission.write import write_emission
from planner.backends.megatron.arguments import argument_vector, parse_arguments
from planner.backends.megatron.model_flags import list_pattern, model_flags, moe_flags
from planner.backends.megatron.recompute import offload_modules
from planner.backends.megatron.space import TABLE
from planner.backends.rules.rule import rule_input
from planner.errors import BackEndRefused
from planner.model.builtin import builtin_model
from planner.model.spec import ModelSpec
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_cluster, make_mla_model, make_model, make_moe_model, make_plan

emit = emitter("megatron")

WORKLOAD = Workload(global_batch_size=8, sequence_length=4096)


def flags(model: ModelSpec) -> dict[str, tuple[str, ...]]:
    return {**model_flags(model, WORKLOAD), **moe_flags(model)}


def test_dense_flags() -> None:
    given = flags(make_model(12, num_kv_heads=4))
    assert given["--num-layers"] == ("12",)
    assert given["--ffn-hidden-size"] == ("4096",)
    assert given["--num-query-groups"] == ("4",)
    assert given["--kv-channels"] == ("64",)
    assert given["--normalization"] == ("RMSNorm",)
    assert given["--max-position-embeddings"] == ("8192",)
    assert {"--swiglu", "--disable-bias-linear", "--untie-embeddings-and-output-weights"} <= set(given)
    assert "--num-experts" not in given


def test_tied_embeddings_and_multi_head() -> None:
    given = flags(make_model(num_kv_heads=16, tie_embeddings=True))
    assert not {"--untie-embeddings-and-output-weights", "--group-query-attention"} & set(given)


def test_expert_flags() -> None:
    given = flags(make_moe_model(8, num_dense=2, shared=512))
    assert given["--num-experts"] == ("16",)
    assert given["--moe-ffn-hidden-size"] == ("512",)
    assert given["--ffn-hidden-size"] == ("4096",)
    assert given["--moe-layer-freq"] == ("([0]*2+[1]*6)",)
    assert given["--moe-shared-expert-intermediate-size"] == ("512",)
    assert "--moe-layer-freq" not in flags(make_moe_model(8))


def test_latent_attention_flags() -> None:
    given = flags(make_mla_model(8, num_mtp_layers=1))
    assert given["--qk-head-dim"] == ("64",)
    assert given["--qk-pos-emb-head-dim"] == ("32",)
    assert given["--q-lora-rank"] == ("256",)
    assert given["--mtp-num-layers"] == ("1",)
    assert given["--moe-router-score-function"] == ("sigmoid",)
    assert "--moe-router-enable-expert-bias" in given
    assert (given["--moe-router-num-groups"], given["--moe-router-group-topk"]) == (("4",), ("2",))
    assert "--num-query-groups" not in given


def test_numbers_that_only_the_model_knows() -> None:
    model = builtin_model("glm-4.5-air")
    given = flags(model)
    assert given["--rotary-base"] == ("1000000",)
    assert given["--rotary-percent"] == ("0.5",)
    assert flags(builtin_model("deepseek-v3"))["--norm-epsilon"] == ("1e-06",)


def test_alternating_windows() -> None:
    given = flags(builtin_model("gpt-oss-20b"))
    assert given["--window-size"] == ("127,0",)
    pattern = eval(given["--window-attn-skip-freq"][0])
    assert pattern == [1, 0] * 12
    assert "--disable-bias-linear" not in given


def test_the_gate_of_an_mlp_is_the_models() -> None:
    quick = make_model().model_copy(update={"activation_function": "quick_gelu"})
    assert "--quick-geglu" in flags(quick)
    assert "--swiglu" not in flags(quick)
    assert "--quick-geglu" not in flags(make_model())
    assert "--quick-geglu" in argument_vector(
        emitter("megatron")(make_plan(model=quick), "torchrun").files["megatron.args"]
    )


def test_layer_patterns_are_python_lists() -> None:
    values = [True, False, False, True]
    assert [bool(item) for item in eval(list_pattern(values))] == values


def test_the_emitted_plan_is_the_plan() -> None:
    plan = make_plan(Strategy(tp=2, sp=True, pp=2, dp_shard=2, num_microbatches=4, recompute="full"))
    assert emit(plan, "torchrun").plan == plan


@pytest.mark.parametrize(
    ("strategy", "rule"),
    [
        (Strategy(pp=2, vpp=2, schedule="zbv", num_microbatches=4), "P1"),
        (Strategy(recompute="selective", recompute_modules=("norm", "mlp")), "P2"),
        (Strategy(cp=2), "P7"),
    ],
)
def test_what_no_flag_says_is_refused(strategy: Strategy, rule: str) -> None:
    with pytest.raises(BackEndRefused, match=f"megatron.{rule}"):
        emit(make_plan(strategy), "torchrun")


def test_full_recompute_is_one_number_for_all_chunks() -> None:
    plan = make_plan(
        Strategy(pp=2, num_microbatches=4, recompute="full"),
        layers_per_chunk=(2, 6),
        recompute_layers_per_chunk=(2, 4),
    )
    arguments = parse_arguments(emit(plan, "torchrun").files["megatron.args"])
    assert arguments["--recompute-num-layers"] == ("4",)


def test_latent_up_projections_are_recomputed_and_read_back() -> None:
    relief = Strategy(ep=2, dp_shard=2, recompute="selective", recompute_modules=("mla_up_proj",))
    latent = make_plan(relief, make_mla_model())
    assert parse_arguments(emit(latent, "torchrun").files["megatron.args"])["--recompute-modules"] == ("mla_up_proj",)
    (broken,) = TABLE.violations(rule_input(make_plan(relief, make_moe_model())))
    assert (broken.rule, "no latent attention" in broken.message) == ("megatron.P2", True)


def test_what_up_projections_make_again_does_not_go_to_the_host() -> None:
    modules = offload_modules(make_mla_model(), ("mla_up_proj",))
    assert not {"core_attn", "attn_proj"} & set(modules)
    assert {"attn_norm", "qkv_linear", "mlp_norm"} <= set(modules)


def test_norms_in_front_of_experts_can_be_recomputed() -> None:
    moe = make_plan(Strategy(ep=2, dp_shard=2, recompute="selective", recompute_modules=("norm",)), make_moe_model())
    assert parse_arguments(emit(moe, "torchrun").files["megatron.args"])["--recompute-modules"] == ("layernorm",)


def test_activation_offload_covers_every_layer_of_a_pipeline() -> None:
    emission = emit(make_plan(Strategy(pp=2, num_microbatches=4, activation_offload=True)), "torchrun")
    given = parse_arguments(emission.files["megatron.args"])
    assert "core_attn" in given["--offload-modules"]
    assert emission.written.environment["NVTE_CPU_OFFLOAD_V1"] == "1"


@pytest.mark.parametrize(("architecture", "recipe"), [("hopper", "tensorwise"), ("blackwell", "mxfp8")])
def test_fp8_recipe_follows_the_device(architecture: str, recipe: str) -> None:
    workload = WORKLOAD.model_copy(update={"precision": "fp8", "global_batch_size": 1})
    plan = make_plan(cluster=make_cluster(1, architecture=architecture), workload=workload)
    assert parse_arguments(emit(plan, "torchrun").files["megatron.args"])["--fp8-recipe"] == (recipe,)


@pytest.mark.parametrize("launcher", ["torchrun", "slurm"])
def test_the_script_passes_every_argument_to_megatron(tmp_path: Path, launcher: str) -> None:
    plan = make_plan(Strategy(pp=2, num_microbatches=4), layers_per_chunk=(3, 5))
    emission = emit(plan, launcher)  # type: ignore[arg-type]
    out = write_emission(emission, tmp_path / "out")
    for script in ("train.sh", "launch.sh"):
        assert subprocess.run(["bash", "-n", str(out / script)], check=False).returncode == 0
    megatron = tmp_path / "Megatron-LM"
    megatron.mkdir()
    (megatron / "pretrain_gpt.py").write_text("import sys\nprint('\\n'.join(sys.argv[1:]))\n")
    done = subprocess.run(
        [str(out / "train.sh"), "--seed", "7"],
        env={**os.environ, "MEGATRON_PATH": str(megatron)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    wanted = argument_vector(emission.files["megatron.args"]) + argument_vector(emission.files["data.args"])
    assert done.stdout.split("\n")[:-1] == [*wanted, "--seed", "7"]
    assert "Et*3|t*5L" in wanted


def test_own_data_arguments_take_the_place_of_mock_data(tmp_path: Path) -> None:
    out = write_emission(emit(make_plan(), "torchrun"), tmp_path / "out")
    (tmp_path / "pretrain_gpt.py").write_text("import sys\nprint(' '.join(sys.argv[1:]))\n")
    mine = tmp_path / "mine.args"
    mine.write_text("# mine\n--data-path /data/x\n--lr 3e-4")
    done = subprocess.run(
        [str(out / "train.sh")],
        env={**os.environ, "MEGATRON_PATH": str(tmp_path), "DATA_ARGS": str(mine)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.endswith("--data-path /data/x --lr 3e-4\n")
    assert "--mock-data" not in done.stdout


def test_a_run_without_megatron_says_what_is_missing(tmp_path: Path) -> None:
    out = write_emission(emit(make_plan(), "torchrun"), tmp_path / "out")
    environ = {name: value for name, value in os.environ.items() if name != "MEGATRON_PATH"}
    done = subprocess.run([str(out / "train.sh")], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "MEGATRON_PATH" in done.stderr


def test_the_page_for_people_has_what_they_ask_for() -> None:
    plan = make_plan(Strategy(tp=2, sp=True, pp=2, dp_shard=2, num_microbatches=4))
    page = emit(plan, "slurm").files["PLAN.md"]
    for words in ("# small-llama on 8 devices", plan.plan_id, "tp=2+sp", plan.search.proof, "sbatch job.sbatch"):
        assert words in page
    for heading in ("## Why", "## Stages", "## Assumptions", "## Launch"):
        assert heading in page
    assert page.count("\n| 0 |") == 1
    assert page.count("\n| 1 |") == 1
