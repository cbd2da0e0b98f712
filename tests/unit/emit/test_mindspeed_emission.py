from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from planner.backends.emission.layout import layout_of
from planner.backends.emission.write import write_emission
from planner.backends.megatron.arguments import argument_vector, parse_arguments
from planner.backends.mindspeed.environment import environment
from planner.backends.mindspeed.flag_table import CORE_VERSION, known_flags, megatron_flags, mindspeed_flags
from planner.backends.mindspeed.read import read_back
from planner.backends.mindspeed.write import ARGUMENTS_FILE
from planner.errors import BackEndRefused, DocumentInvalid
from planner.model.builtin import builtin_model, builtin_models
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.mindspeed_plans import DUALPIPEV, INTERLEAVED, ascend_cluster, on_ascend
from tests.plan_factory import make_mla_model, make_model, make_moe_model, make_plan
from tests.round_trip import as_spelled

emit = emitter("mindspeed")

MOE = make_moe_model(8, num_dense=1, shared=512)


def arguments(strategy: Strategy, model: ModelSpec | None = None, **parts: object) -> dict[str, tuple[str, ...]]:
    plan = on_ascend(make_plan(strategy, model, **parts))  # type: ignore[arg-type]
    emission = emit(plan, "torchrun")
    assert read_back(emission.files) == (plan.chosen(), layout_of(plan))
    return parse_arguments(emission.files[ARGUMENTS_FILE])


FLAGS: dict[str, tuple[Strategy, ModelSpec | None, dict[str, tuple[str, ...]]]] = {
    "ring": (Strategy(cp=2, cp_kind="ring"), None, {"--context-parallel-algo": ("megatron_cp_algo",)}),
    "ulysses": (Strategy(cp=2, cp_kind="all_to_all"), None, {"--context-parallel-algo": ("ulysses_cp_algo",)}),
    "dualpipev": (DUALPIPEV, None, {"--schedules-method": ("dualpipev",)}),
    "interleaved": (
        INTERLEAVED,
        None,
        {
            "--num-layers-per-virtual-pipeline-stage": ("1",),
            "--microbatch-group-size-per-virtual-pipeline-stage": ("4",),
        },
    ),
    "zero 1": (Strategy(dp_replicate=2, dp_shard=2), None, {"--num-distributed-optimizer-instances": ("2",)}),
    "zero 3": (
        Strategy(dp_shard=4, zero_stage=3),
        None,
        {"--use-custom-fsdp": (), "--data-parallel-sharding-strategy": ("optim_grads_params",)},
    ),
    "tp overlap": (Strategy(tp=2, sp=True, overlap_tp=True), None, {"--use-ascend-mc2": ()}),
    "ep overlap": (
        Strategy(ep=2, dp_shard=2, overlap_ep=True, overlap_grad_reduce=False, overlap_param_gather=False),
        MOE,
        {"--moe-fb-overlap": ()},
    ),
    "swap": (
        Strategy(pp=2, num_microbatches=4, activation_offload=True, optimizer_offload=True),
        None,
        {"--swap-attention": (), "--swap-optimizer": ()},
    ),
    "full recompute": (
        Strategy(recompute="full"),
        None,
        {"--recompute-granularity": ("full",), "--recompute-method": ("block",), "--recompute-num-layers": ("8",)},
    ),
    "norms and activations": (
        Strategy(recompute="selective", recompute_modules=("norm", "activation")),
        None,
        {"--recompute-norm": (), "--recompute-activation-function": ()},
    ),
    "experts": (
        Strategy(ep=2, dp_shard=2, recompute="selective", recompute_modules=("attention_core", "activation")),
        MOE,
        {"--recompute-modules": ("core_attn", "moe_act"), "--recompute-activation-function": ()},
    ),
}


@pytest.mark.parametrize("name", FLAGS)
def test_each_part_of_a_plan_has_its_flag(name: str) -> None:
    strategy, model, wanted = FLAGS[name]
    given = arguments(strategy, model)
    assert {flag: given.get(flag) for flag in wanted} == wanted


def test_activation_of_routed_experts_alone_needs_no_switch() -> None:
    strategy = Strategy(ep=2, dp_shard=2, recompute="selective", recompute_modules=("activation",))
    given = arguments(strategy, make_moe_model())
    assert given["--recompute-modules"] == ("moe_act",)
    assert "--recompute-activation-function" not in given


def test_norms_alone_set_no_granularity() -> None:
    given = arguments(Strategy(recompute="selective", recompute_modules=("norm",)))
    assert "--recompute-granularity" not in given


@pytest.mark.parametrize(
    ("strategy", "layers", "layout"),
    [
        (Strategy(pp=2, num_microbatches=4), (3, 5), "Et*3|t*5L"),
        (Strategy(pp=4, num_microbatches=4), (0, 4, 4, 0), "E|(t*4|)*2L"),
        (INTERLEAVED, (2, 2, 2, 0, 0, 0, 1, 1), "Et*2|(t*2|)*2(|)*3t|tL"),
    ],
)
def test_uneven_stages_are_a_layout(strategy: Strategy, layers: tuple[int, ...], layout: str) -> None:
    given = arguments(strategy, layers_per_chunk=layers)
    assert given["--pipeline-model-parallel-layout"] == (layout,)
    assert "--num-layers-per-virtual-pipeline-stage" not in given


def test_every_flag_that_can_be_emitted_exists_in_the_release() -> None:
    known = known_flags(CORE_VERSION)
    for strategy, model, _ in FLAGS.values():
        assert set(arguments(strategy, model)) <= set(known)
    for name in builtin_models():
        model = builtin_model(name)
        length = min(model.max_sequence_length, 4096)
        workload = Workload(global_batch_size=8, sequence_length=length)
        experts = any(kind.moe for kind in model.layer_kinds)
        plan = make_plan(Strategy(dp_shard=8, ep=8 if experts else 1), model, ascend_cluster(8), workload)
        emission = _emitted(plan)
        if emission is not None:
            assert set(emission) <= set(known), name


def _emitted(plan: Plan) -> list[str] | None:
    try:
        files = emit(plan, "torchrun").files
    except BackEndRefused:
        return None
    words = argument_vector(files[ARGUMENTS_FILE]) + argument_vector(files["data.args"])
    return [word for word in words if word.startswith("--")]


def test_flags_of_later_releases_are_not_in_the_list() -> None:
    known = known_flags("core_v0.12.1")
    later = {
        "--use-megatron-fsdp",
        "--overlap-moe-expert-parallel-comm",
        "--fine-grained-activation-offloading",
        "--offload-modules",
        "--moe-shared-expert-gate",
        "--softmax-type",
        "--num-layer-list",
    }
    assert not later & set(known)
    assert not set(megatron_flags(CORE_VERSION)) & set(mindspeed_flags(CORE_VERSION))


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        (replace(DUALPIPEV, cp=2, cp_kind="ring"), r"mindspeed\.S1.*cp = 1"),
        (replace(DUALPIPEV, overlap_grad_reduce=True), r"mindspeed\.S1.*overlap_grad_reduce = False"),
        (Strategy(pp=2, vpp=2, schedule="zbv", num_microbatches=4), r"mindspeed\.S2.*zbv"),
    ],
)
def test_what_no_flag_says_is_refused(strategy: Strategy, words: str) -> None:
    with pytest.raises(BackEndRefused, match=words):
        emit(on_ascend(make_plan(strategy)), "torchrun")


def test_uneven_stages_do_not_swap_activations() -> None:
    plan = on_ascend(make_plan(Strategy(pp=2, num_microbatches=4, activation_offload=True), layers_per_chunk=(3, 5)))
    with pytest.raises(BackEndRefused, match=r"mindspeed\.K4.*equal chunks"):
        emit(plan, "torchrun")


def test_modules_have_one_order() -> None:
    strategy = Strategy(recompute="selective", recompute_modules=("mlp", "norm"))
    assert as_spelled(on_ascend(make_plan(strategy)), "mindspeed").chosen().recompute_modules == ("norm", "mlp")


def test_latent_attention_and_prediction_layers() -> None:
    given = arguments(Strategy(pp=2, ep=2, dp_shard=2, num_microbatches=4), make_mla_model(8, num_mtp_layers=1))
    assert given["--qk-pos-emb-head-dim"] == ("32",)
    assert given["--mtp-num-layers"] == ("1",)
    assert {"--no-rope-fusion", "--use-fused-rotary-pos-emb", "--use-fused-rmsnorm"} <= set(given)


@pytest.mark.parametrize(("zero_stage", "connections"), [(0, "1"), (1, "1"), (2, "2"), (3, "2")])
def test_device_connections(zero_stage: int, connections: str) -> None:
    variables = environment(Strategy(tp=2, dp_shard=2, zero_stage=zero_stage))
    assert variables["CUDA_DEVICE_MAX_CONNECTIONS"] == connections
    assert variables["HCCL_CONNECT_TIMEOUT"] == "3600"


def stand_ins(folder: Path) -> dict[str, str]:
    """Packages that only a machine with NPUs has: an adaptor that says so, and the script that it patches."""
    (folder / "mindspeed").mkdir(parents=True)
    (folder / "mindspeed" / "__init__.py").touch()
    (folder / "mindspeed" / "megatron_adaptor.py").write_text("print('patched')\n")
    (folder / "torch.py").touch()
    (folder / "pretrain_gpt.py").write_text(
        "import sys\nif __name__ == '__main__':\n    print('\\n'.join(sys.argv[1:]))\n"
    )
    return {**os.environ, "MEGATRON_PATH": str(folder), "PYTHONPATH": ""}


def test_the_script_patches_first_and_passes_every_argument(tmp_path: Path) -> None:
    plan = on_ascend(make_plan(Strategy(pp=2, num_microbatches=4), layers_per_chunk=(3, 5)))
    emission = emit(plan, "torchrun")
    out = write_emission(emission, tmp_path / "out")
    for script in ("train.sh", "launch.sh"):
        assert subprocess.run(["bash", "-n", str(out / script)], check=False).returncode == 0
    setup = tmp_path / "set_env.sh"
    setup.write_text("echo sourced $UNSET_VARIABLE\n")
    done = subprocess.run(
        [str(out / "train.sh"), "--seed", "7"],
        env={**stand_ins(tmp_path / "megatron"), "CANN_SETUP": str(setup)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    wanted = argument_vector(emission.files[ARGUMENTS_FILE]) + argument_vector(emission.files["data.args"])
    assert done.stdout.splitlines() == ["sourced", "patched", *wanted, "--seed", "7"]


def test_a_run_without_megatron_says_what_is_missing(tmp_path: Path) -> None:
    out = write_emission(emit(on_ascend(make_plan()), "torchrun"), tmp_path / "out")
    environ = {name: value for name, value in os.environ.items() if name != "MEGATRON_PATH"}
    done = subprocess.run([str(out / "train.sh")], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "core_v0.12.1" in done.stderr


@pytest.mark.parametrize(
    ("line", "broken", "where"),
    [
        ("--schedules-method dualpipev", "--schedules-method zerobubble", "--schedules-method"),
        ("--num-layers 8", "--num-layers 9", "--num-layers"),
        ("--micro-batch-size 1", "--micro-batch-size 3", "--global-batch-size"),
        ("--transformer-impl local", "--recompute-modules qkv", "--recompute-modules"),
        ("--transformer-impl local", "--recompute-granularity full\n--recompute-norm", "--recompute-granularity"),
        ("--use-distributed-optimizer", "--use-custom-fsdp", "--data-parallel-sharding-strategy"),
    ],
)
def test_files_that_do_not_hold_together_are_refused(line: str, broken: str, where: str) -> None:
    files = dict(emit(on_ascend(make_plan(DUALPIPEV)), "torchrun").files)
    assert line in files[ARGUMENTS_FILE]
    files[ARGUMENTS_FILE] = files[ARGUMENTS_FILE].replace(line, broken)
    with pytest.raises(DocumentInvalid) as caught:
        read_back(files)
    assert where in (caught.value.where or "")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(DocumentInvalid, match=r"launch\.sh is missing"):
        read_back({ARGUMENTS_FILE: ""})


@pytest.mark.parametrize(
    ("counts", "empty", "pattern"),
    [
        ((2, 2, 2, 1), ("7",), None),
        ((1, 2, 2, 2), ("1",), None),
        ((1, 2, 2, 2), ("1",), "([0]*1+[1]*1+[0]*1+[1]*5)"),
    ],
)
def test_dualpipev_fills_its_chunks_up_with_empty_layers(
    counts: tuple[int, ...], empty: tuple[str, ...], pattern: str | None
) -> None:
    model = make_model(sum(counts)) if pattern is None else make_moe_model(sum(counts), num_dense=2)
    plan = on_ascend(make_plan(DUALPIPEV, model, layers_per_chunk=counts))
    files = emit(plan, "torchrun").files
    given = parse_arguments(files[ARGUMENTS_FILE], ARGUMENTS_FILE)
    assert given["--num-layers"] == ("8",)
    assert given["--noop-layers"] == empty
    if pattern is not None:
        assert given["--moe-layer-freq"] == (pattern,)
    strategy, layout = read_back(files)
    assert (strategy, layout) == (plan.chosen(), layout_of(plan))


@pytest.mark.parametrize("empty", ["8", "a", "0", "6,7,6"])
def test_empty_layers_that_no_plan_has_are_refused(empty: str) -> None:
    files = dict(emit(on_ascend(make_plan(DUALPIPEV, make_model(7), layers_per_chunk=(2, 2, 2, 1))), "torchrun").files)
    files[ARGUMENTS_FILE] = files[ARGUMENTS_FILE].replace("--noop-layers 7", f"--noop-layers {empty}")
    with pytest.raises(DocumentInvalid):
        read_back(files)
