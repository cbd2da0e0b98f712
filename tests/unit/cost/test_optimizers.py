"""What each optimizer keeps and takes: bytes against the optimizers themselves, seconds by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from planner.backends.deepspeed.physics import DEEPSPEED
from planner.backends.megatron.physics import MEGATRON_CORE
from planner.model.load import load_model
from planner.model.parameters import parameters_by_module, total_parameters
from planner.model.spec import ModelSpec
from planner.predict.candidate import Candidate
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.newton_schulz import matrix_s
from planner.predict.memory.states import state_bytes
from planner.predict.physics.physics import TUNED, Physics
from planner.question.optimizers import OPTIMIZERS, OptimizerName
from planner.question.problem import Problem, Workload
from planner.search.row_context import strategy_context
from planner.search.split import best_split
from planner.search.split_terms import SplitRules
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster

LLAMA = load_model("llama-3.1-8b")
MOE = load_model("mixtral-8x7b")
SHARED = Strategy(dp_shard=8, zero_stage=1, num_microbatches=4)
CLUSTER = load_cluster("dgx-h100", 8)
NAMES: tuple[OptimizerName, ...] = tuple(each.name for each in OPTIMIZERS.values())


def candidate(
    optimizer: OptimizerName, strategy: Strategy = SHARED, model: ModelSpec = LLAMA, physics: Physics = TUNED
) -> Candidate:
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=4096, optimizer=optimizer)
    cluster = load_cluster("dgx-h100", strategy.world_size)
    hardware = replace(hardware_of(cluster, "bf16"), physics=physics)
    context = strategy_context(Problem(model=model, cluster=cluster, workload=workload), hardware, strategy)
    found = best_split(context, SplitRules(limit_bytes=1e18))
    assert found is not None
    return found


def kept_bytes(optimizer: OptimizerName, strategy: Strategy = SHARED, model: ModelSpec = LLAMA) -> float:
    return sum(stage.optimizer_bytes for stage in candidate(optimizer, strategy, model).stages)


def groups(model: ModelSpec) -> tuple[int, int, int]:
    """Parameters of matrices, tables and vectors."""
    modules = parameters_by_module(model)
    tables = modules["embedding"] + modules.get("head", 0)
    vectors = modules["norm"]
    return total_parameters(model) - tables - vectors, tables, vectors


@pytest.mark.parametrize("model", [LLAMA, MOE], ids=["dense", "experts"])
@pytest.mark.parametrize("optimizer", [name for name in NAMES if not OPTIMIZERS[name].factored])
def test_each_group_keeps_its_own_bytes(optimizer: OptimizerName, model: ModelSpec) -> None:
    """fp32 master weights of all, and moments by group; split over eight ranks."""
    kind, (matrices, tables, vectors) = OPTIMIZERS[optimizer], groups(model)
    by_hand = 4.0 * total_parameters(model)
    by_hand += kind.matrix_bytes * matrices + kind.table_bytes * tables + kind.vector_bytes * vectors
    assert kept_bytes(optimizer, model=model) == pytest.approx(by_hand / 8, rel=1e-12)


def test_the_ends_of_a_pipeline_keep_more_under_muon() -> None:
    """Token table and head are on different stages, and only there Adam's second moment is kept."""
    split = Strategy(pp=2, dp_shard=4, zero_stage=1, num_microbatches=4)
    muon, adam = candidate("muon", split), candidate("adam", split)
    table = LLAMA.vocab_size * LLAMA.hidden_size
    for stage, other in zip(muon.stages, adam.stages, strict=True):
        saved = other.optimizer_bytes - stage.optimizer_bytes
        assert saved == pytest.approx(4 * (stage.dense_parameters - table) / 4, rel=1e-3)


def test_adafactor_keeps_a_number_a_row_and_a_column() -> None:
    """Of the fused matrices qkv, output, gate and up, down: 4 bytes x (rows + columns)."""
    layer = (4096 + 6144) + (4096 + 4096) + (4096 + 28672) + (14336 + 4096)
    vectors = 4 * 65 * 4096
    by_hand = 4 * total_parameters(LLAMA) + 4 * 32 * layer + vectors
    found = kept_bytes("adafactor") * 8
    assert found == pytest.approx(by_hand, rel=1e-3)
    assert found > 4 * total_parameters(LLAMA) + 4 * 32 * layer


@pytest.mark.parametrize("optimizer", NAMES)
def test_an_offloaded_optimizer_leaves_nothing_on_the_device(optimizer: OptimizerName) -> None:
    stage = candidate(optimizer, replace(SHARED, optimizer_offload=True)).stages[0]
    assert stage.optimizer_bytes == 0
    least = (4 + OPTIMIZERS[optimizer].matrix_bytes) * total_parameters(LLAMA) / 8
    assert stage.host_bytes >= least


@pytest.mark.parametrize(
    ("said", "each"),
    [({}, 12.0), ({"first": "bf16", "second": "fp8"}, 7.0), ({"first": "fp8", "second": "fp8", "master": "fp16"}, 4.0)],
)
def test_states_in_formats_of_their_own(said: dict[str, str], each: float) -> None:
    workload = Workload.model_validate(
        {"global_batch_size": 1, "sequence_length": 1, "optimizer": "adam_precision_aware", "optimizer_states": said}
    )
    zero, shards, none = np.array([0, 1, 2]), np.full(3, 8.0), np.zeros(3, dtype=int)
    assert state_bytes(workload, zero, shards, none).optimizer == pytest.approx([each, each / 8, each / 8])
    # Megatron's distributed optimizer keeps of an fp32 master weight what its bf16 weight lacks.
    less = 0.0 if said.get("master") == "fp16" else 2.0
    found = state_bytes(workload, zero, shards, none, MEGATRON_CORE).optimizer
    assert found == pytest.approx([each, (each - less) / 8, each / 8])


def test_formats_belong_to_one_optimizer() -> None:
    with pytest.raises(ValidationError, match="use adam_precision_aware"):
        Workload.model_validate(
            {"global_batch_size": 1, "sequence_length": 1, "optimizer": "muon", "optimizer_states": {"first": "bf16"}}
        )


@pytest.mark.parametrize(("short", "long"), [(4096, 14336), (1024, 65536), (2048, 2048)])
def test_the_products_of_an_iteration(short: float, long: float) -> None:
    """Five times X X^T, A A and B X; or, on the Gram matrix, four wide and fourteen square ones."""
    plain = hardware_of(CLUSTER, "bf16")
    product = plain.rates.wide_matmul_s
    sides = np.array([short]), np.array([long])
    wide_s = product(sides[0], sides[0], sides[1]) + product(sides[0], sides[1], sides[0])
    square_s = product(sides[0], sides[0], sides[0])
    assert matrix_s(*sides, plain) == pytest.approx(5 * wide_s + 5 * square_s)
    gram = replace(plain, physics=DEEPSPEED)
    expected = 2 * wide_s + 14 * square_s if long > short else 5 * wide_s + 5 * square_s
    assert matrix_s(*sides, gram) == pytest.approx(expected)


def test_ranks_share_the_matrices_from_zero_1_on() -> None:
    """Eight ranks that share take an eighth of what each takes without sharding, beyond moving the states."""
    plain, adam = (
        {zero: candidate(name, replace(SHARED, zero_stage=zero)).breakdown_s["optimizer"] for zero in (0, 1)}
        for name in ("muon", "adam")
    )
    assert plain[1] < 0.2 * plain[0]
    assert plain[0] > 5 * adam[0]


def test_no_rank_takes_less_than_one_matrix() -> None:
    """With more ranks than the longest matrix has parts, the step stops shrinking."""
    few, many, most = (
        candidate("muon", replace(SHARED, dp_shard=ranks, num_microbatches=1)).breakdown_s["optimizer"]
        for ranks in (8, 512, 4096)
    )
    assert few > many >= most
    hardware = hardware_of(CLUSTER, "bf16")
    longest_s = float(matrix_s(np.array([4096.0]), np.array([28672.0]), hardware)[0])
    assert most > longest_s
    assert most < 1.2 * longest_s


def test_tensor_parallel_ranks_orthogonalize_their_own_blocks() -> None:
    whole = candidate("muon", SHARED).breakdown_s["optimizer"]
    split = candidate("muon", replace(SHARED, tp=8, sp=True)).breakdown_s["optimizer"]
    assert split < whole / 8
