"""The files of one plan: mesh split, batch, kept tensors, scripts; what reading them back refuses."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from planner.backends.emission.layout import layout_of
from planner.backends.emission.write import write_emission
from planner.backends.maxtext.config import batch_keys
from planner.backends.maxtext.mesh_axes import AXES, axis_sizes, mesh_split
from planner.backends.maxtext.read import parse_config, read_back
from planner.backends.maxtext.saved_tensors import canonical_modules, read_remat, remat_keys
from planner.backends.maxtext.version import CONFIG_FILE, TRAIN_SCRIPT
from planner.backends.maxtext.write import balancing_weight
from planner.errors import BackEndRefused, DocumentInvalid
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_cluster, make_model, make_moe_model, make_plan

emit = emitter("maxtext")

BASE = Strategy(
    tp=4, sp=True, dp_replicate=2, dp_shard=4, zero_stage=3, num_microbatches=4, micro_batch_size=1, recompute="full"
)
PLAN = make_plan(BASE, cluster=make_cluster(32))


def test_axes_fill_a_slice_from_the_inside() -> None:
    split = mesh_split(axis_sizes(BASE), 8)
    assert split is not None
    assert {axis: (split.ici[axis], split.dcn[axis]) for axis in AXES} == {
        "stage": (1, 1),
        "data": (1, 2),
        "fsdp": (2, 2),
        "expert": (1, 1),
        "context": (1, 1),
        "tensor": (4, 1),
    }
    assert split.num_slices == 4


@pytest.mark.parametrize("per_slice", [1, 2, 4, 8, 16, 32, 64, 8960])
def test_degrees_inside_and_across_make_the_mesh(per_slice: int) -> None:
    split = mesh_split(axis_sizes(BASE), per_slice)
    assert split is not None
    assert split.sizes == axis_sizes(BASE)
    assert math.prod(split.ici.values()) == min(per_slice, 32)


@pytest.mark.parametrize("per_slice", [3, 12, 24])
def test_slices_that_ranks_in_order_do_not_fill_are_no_mesh(per_slice: int) -> None:
    assert mesh_split(axis_sizes(BASE), per_slice) is None


@pytest.mark.parametrize("tp", [1, 2, 3, 5, 6, 7])
@pytest.mark.parametrize("micro_batch_size", [1, 2, 3, 5])
def test_the_batch_survives_maxtext_truncation(tp: int, micro_batch_size: int) -> None:
    for dp in (1, 3, 7, 10):
        s = Strategy(tp=tp, sp=tp > 1, dp_shard=dp, micro_batch_size=micro_batch_size, num_microbatches=3)
        keys = batch_keys(s)
        assert int(s.world_size * keys["per_device_batch_size"]) == dp * micro_batch_size
        assert keys["gradient_accumulation_steps"] == 3


def test_a_pipeline_takes_its_micro_batches_from_one_batch() -> None:
    plan = make_plan(replace(BASE, pp=2, dp_replicate=1, schedule="gpipe"), cluster=make_cluster(32))
    config = parse_config(emit(plan, "torchrun").files[CONFIG_FILE])
    assert config["gradient_accumulation_steps"] == 1
    assert config["num_pipeline_microbatches"] == 4
    assert config["per_device_batch_size"] * 32 == 16
    assert config["num_layers_per_pipeline_stage"] == 4
    assert config["num_pipeline_repeats"] == 1


@pytest.mark.parametrize(("vpp", "layers", "scanned"), [(1, 4, False), (2, 2, False), (4, 1, True)])
def test_a_stage_of_one_layer_is_scanned(vpp: int, layers: int, scanned: bool) -> None:
    """MaxText takes the output of such a stage out of its pair only then (layers/pipeline.py:793)."""
    s = replace(BASE, pp=2, vpp=vpp, dp_replicate=1, schedule="gpipe" if vpp == 1 else "looped_bfs")
    config = parse_config(emit(make_plan(s, cluster=make_cluster(32)), "torchrun").files[CONFIG_FILE])
    assert (config["num_layers_per_pipeline_stage"], config["scan_layers"]) == (layers, scanned)


def test_a_circular_pipeline_comes_back_with_its_chunks() -> None:
    """Chunk c is repeat c // pp of stage c % pp (pipeline.py:173-182 counts micro-batches inside repeats)."""
    s = replace(BASE, pp=2, vpp=2, dp_replicate=1, schedule="looped_bfs")
    emission = emit(make_plan(s, cluster=make_cluster(32)), "torchrun")
    config = parse_config(emission.files[CONFIG_FILE])
    assert (config["num_layers_per_pipeline_stage"], config["num_pipeline_repeats"]) == (2, 2)
    strategy, layout = read_back(emission.files)
    assert (strategy, layout) == (s, layout_of(emission.plan))
    assert [[chunk.first_layer for chunk in stage.chunks] for stage in layout] == [[0, 4], [2, 6]]


@pytest.mark.parametrize("offload", [False, True])
@pytest.mark.parametrize("modules", [("norm", "activation"), ("norm", "mlp"), ("attention_core", "norm", "moe")])
def test_kept_tensors_say_what_is_recomputed(modules: tuple[str, ...], offload: bool) -> None:
    keys = remat_keys("selective", modules, offload=offload)  # type: ignore[arg-type]
    assert read_remat(keys) == ("selective", modules, offload)
    assert read_remat(keys | {"out_proj": "remat"}) is None


def test_norms_and_activations_are_always_recomputed() -> None:
    assert canonical_modules((), dense_layers=True, expert_layers=False) == ("norm", "activation")
    assert canonical_modules(("moe", "mlp"), dense_layers=True, expert_layers=False) == ("norm", "mlp")
    assert canonical_modules(("moe",), dense_layers=False, expert_layers=True) == ("norm", "moe")


def test_what_maxtext_cannot_say_is_refused() -> None:
    wanted = replace(
        BASE, pp=2, dp_replicate=1, schedule="interleaved", vpp=2, microbatch_group_size=2, sp=False, zero_stage=2,
        recompute="none", overlap_tp=True,
    )  # fmt: skip
    with pytest.raises(BackEndRefused) as refusal:
        emit(make_plan(wanted, cluster=make_cluster(32)), "torchrun")
    for rule in ("P1", "T3", "Z1", "R1", "O2"):
        assert f"maxtext.{rule}:" in refusal.value.what


def test_refusals_list_every_rule() -> None:
    plan = make_plan(replace(BASE, tp=8, dp_shard=2), make_model(7, num_heads=12, num_kv_heads=6), make_cluster(32))
    broken = plan.model_copy(
        update={
            "problem": plan.problem.model_copy(
                update={"workload": plan.problem.workload.model_copy(update={"precision": "fp16"})}
            )
        }
    )
    with pytest.raises(BackEndRefused) as refusal:
        emit(broken, "torchrun")
    assert "maxtext.T1" in str(refusal.value)
    assert "maxtext.W1" in str(refusal.value)


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (lambda t: t.replace("num_slices: 4", "num_slices: 2"), "slices"),
        (lambda t: t.replace("ici_fsdp_parallelism: 2", "ici_fsdp_parallelism: 4"), "devices"),
        (lambda t: t.replace("ici_fsdp_parallelism: 2", "ici_fsdp_parallelism: -1"), "whole number"),
        (lambda t: t + "ici_tensor_sequence_parallelism: 2\n", "no key"),
        (lambda t: t.replace("remat_policy: ", "remat_policy: 3 #"), "remat_policy"),
        (lambda t: t.replace("base_config: base.yml\n", ""), "base_config is missing"),
        (lambda t: "- a list", "mapping"),
        (lambda t: "a: [", "YAML"),
    ],
)
def test_files_that_do_not_hold_together_are_refused(edit: Callable[[str], str], complaint: str) -> None:
    files = dict(emit(PLAN, "torchrun").files)
    files[CONFIG_FILE] = edit(files[CONFIG_FILE])
    with pytest.raises(DocumentInvalid, match=complaint):
        read_back(files)


def test_keys_of_the_user_do_not_change_the_plan() -> None:
    files = dict(emit(PLAN, "torchrun").files)
    before = read_back(files)
    files[CONFIG_FILE] = files[CONFIG_FILE].replace("steps: 100", "steps: 5000") + 'run_name: "mine"\n'
    assert read_back(files) == before


@pytest.mark.parametrize("launcher", ["torchrun", "slurm"])
def test_one_process_drives_a_node(tmp_path: Path, launcher: str) -> None:
    """The script really runs, with a stand-in for Python that tells its words and variables."""
    folder = write_emission(emit(PLAN, launcher), tmp_path / "out")  # type: ignore[arg-type]
    assert "torchrun" not in (folder / "launch.sh").read_text()
    teller = tmp_path / "python"
    teller.write_text('#!/bin/sh\necho "$@"\necho "$JAX_COORDINATOR_IP $JAX_COORDINATOR_PORT $NNODES $NODE_RANK"\n')
    teller.chmod(0o755)
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": str(teller), "MASTER_ADDR": "head", "TRAIN_ARGS": "steps=3"}
    done = subprocess.run(
        ["bash", str(folder / "launch.sh"), "2"], env=environment, capture_output=True, text=True, check=True
    )
    words, coordinator = done.stdout.splitlines()
    assert words == f"-u -m maxtext.trainers.pre_train.train {folder}/{CONFIG_FILE} steps=3"
    assert coordinator == "head 29501 4 2"


def test_tpu_and_gpu_differ_where_they_must() -> None:
    gpu = emit(PLAN, "torchrun")
    cluster = PLAN.problem.cluster
    device = cluster.pools[0].device.model_copy(update={"architecture": "tpu_v5p"})
    pools = (cluster.pools[0].model_copy(update={"device": device}),)
    problem = PLAN.problem.model_copy(update={"cluster": cluster.model_copy(update={"pools": pools})})
    tpu = emit(PLAN.model_copy(update={"problem": problem}), "torchrun")
    ours, theirs = parse_config(gpu.files[CONFIG_FILE]), parse_config(tpu.files[CONFIG_FILE])
    assert (ours["hardware"], theirs["hardware"]) == ("gpu", "tpu")
    assert (ours["attention"], theirs["attention"]) == ("cudnn_flash_te", "flash")
    assert "XLA_FLAGS" in gpu.written.environment
    assert "LIBTPU_INIT_ARGS" in tpu.written.environment
    assert "JAX_COORDINATOR_IP" not in tpu.files[TRAIN_SCRIPT]


def test_experts_are_an_axis_inside_data_parallelism() -> None:
    s = replace(BASE, tp=2, etp=2, ep=4, dp_shard=8, dp_replicate=1)
    emission = emit(make_plan(s, make_moe_model(), make_cluster(16)), "torchrun")
    config = parse_config(emission.files[CONFIG_FILE])
    assert config["ici_expert_parallelism"] * config["dcn_expert_parallelism"] == 4
    assert config["ici_fsdp_parallelism"] * config["dcn_fsdp_parallelism"] == 2
    assert read_back(emission.files)[0] == s


def test_a_pipeline_says_how_much_less_it_balances_experts() -> None:
    """Four micro-batches on two stages: 4 of 5 iterations of a stage are busy."""
    s = Strategy(pp=2, schedule="gpipe", num_microbatches=4, dp_shard=2, zero_stage=1, recompute="full")
    plan = make_plan(s, model=make_moe_model(), cluster=make_cluster(4))
    told = " ".join(emit(plan, "torchrun").files["PLAN.md"].split())
    assert "averages the balancing loss" in told
    assert "it weighs 0.8 of" in told
    assert "one shard's" in told
    assert balancing_weight(s, by_sequence=True) == 4
