"""The cost model does all of the model's work, once: FLOPs, parameters, overlap, optimizer, all by hand."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from planner.model.flops import forward_flops, forward_flops_per_token, model_flops_per_token
from planner.model.hf_config import model_from_hf_config
from planner.model.operator import Operator
from planner.model.operators import (
    embedding_operators,
    head_operators,
    layer_operators,
    mtp_operators,
)
from planner.model.parameters import mtp_parameters, total_parameters
from planner.model.spec import ModelSpec
from planner.predict.cost import operator_time
from planner.predict.cost.attention_time import BACKWARD_FLOPS, attention_seconds
from planner.predict.cost.data_parallel import HOST_OPTIMIZER_BYTES_PER_S
from planner.predict.cost.efficiency import DeviceRates
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.layer import layer_kind
from planner.predict.cost.model_cost import model_cost
from planner.predict.cost.overlap import exposed_s
from planner.predict.cost.ring_attention import steps_s
from planner.predict.cost.row_cost import CostModel
from planner.predict.cost.two_sequences import own_keys
from planner.predict.layer_keys import KEY_COLUMNS, LayerKeys
from planner.predict.physics.kernels import AttentionChoice
from planner.question.problem import Problem, Workload
from planner.question.routing import EVEN
from planner.search.evaluate import evaluate_split
from planner.search.reliefs import relief_choices
from planner.search.row_context import strategy_context
from planner.search.split import best_split
from planner.search.split_terms import SplitRules
from planner.strategy.schedules import V_SCHEDULES
from planner.strategy.strategy import Relief, Strategy
from tests.declared_space import all_rows
from tests.encoder_decoders import t5
from tests.plan_factory import make_cluster, make_mla_model, make_model, make_moe_model
from tests.reliefs import RELIEFS
from tests.sampling import drawn
from tests.search_problems import random_model, random_problem

Array = NDArray[np.float64]
SEQUENCE = 1024
SPLIT_OVER_TP = ("column", "row", "heads", "features", "vocabulary")


@dataclass(frozen=True, slots=True)
class _Counting(DeviceRates):
    """Rates under which a second is a FLOP, and moving bytes is free."""

    def matmul_s(self, m: Array, n: Array, k: Array, weights: Array | float = 1.0, phase: str = "forward") -> Array:
        return np.asarray(2.0 * m * n * k * weights)

    def wide_matmul_s(
        self, m: Array, n: Array, k: Array, products: Array | float = 1.0, phase: str = "forward"
    ) -> Array:
        return np.asarray(2.0 * m * n * k * products)

    def memory_s(self, moved_bytes: Array, operator: str = "") -> Array:
        return 0.0 * moved_bytes


@pytest.fixture(autouse=True)
def _attention_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds(choice: AttentionChoice, architecture: str, rates: DeviceRates, **sizes: Any) -> tuple[Array, Array]:
        if isinstance(rates, _Counting):
            return sizes["flops"], BACKWARD_FLOPS * sizes["flops"]
        return attention_seconds(choice, architecture, rates, **sizes)

    monkeypatch.setattr(operator_time, "attention_seconds", seconds)


def _counting_hardware() -> Hardware:
    hardware = hardware_of(make_cluster(8), "bf16")
    return replace(hardware, rates=_Counting(1.0, 1.0, 1.0, 1.0, 2.0))


def _keys(**columns: int) -> LayerKeys:
    values = dict.fromkeys(KEY_COLUMNS, 1) | {"sp": 0, "ring": 0, "overlap_tp": 0, "overlap_ep": 0} | columns
    arrays = {name: np.array([float(value)]) for name, value in values.items()}
    return LayerKeys(**arrays, sequence_length=SEQUENCE, routing=EVEN)


def _read(family: str, **keys: Any) -> ModelSpec:
    small = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "head_dim": 64, "vocab_size": 1024}
    return model_from_hf_config({"model_type": family, **small, **keys}, family, "config.json")


_ENTRIES = ["heavily_compressed_attention", "sliding_attention"] * 2
MODELS = {
    "dense": make_model(),
    "streams": _read("deepseek_v4", layer_types=_ENTRIES, num_nextn_predict_layers=0, moe_intermediate_size=128),
    "parts": _read("afmoe", num_key_value_heads=2, intermediate_size=512, moe_intermediate_size=128),
    "shared keys": _read("gemma3n_text", num_key_value_heads=2, intermediate_size=512, num_kv_shared_layers=2),
    "moe": make_moe_model(8, num_dense=2, shared=512),
    "moe with mtp": make_moe_model(6, num_mtp_layers=2),
    "mla": make_mla_model(5, num_dense=1, num_mtp_layers=1),
    "encoder and decoder": t5(),
    **{f"random {seed}": random_model(random.Random(seed)) for seed in range(8)},
}


@pytest.mark.parametrize("source", [SEQUENCE // 2, 3 * SEQUENCE])
def test_an_encoder_runs_over_its_own_sequence(source: int) -> None:
    model, workload = t5(), Workload(global_batch_size=2, sequence_length=SEQUENCE, source_length=source)
    keys = own_keys(model, workload, _keys(micro_batch_size=2))
    cost = model_cost(model, workload, _counting_hardware(), keys, RELIEFS)
    layers = np.bincount(model.layer_kind_sequence(), minlength=len(model.layer_kinds)) @ cost.layers.forward_s[0]
    total = layers + cost.embedding.forward_s[0] + cost.head.forward_s[0]
    expected = 2 * SEQUENCE * forward_flops_per_token(model, SEQUENCE, source_length=source)
    assert total == pytest.approx(expected, rel=1e-12)
    even = model_cost(model, workload, _counting_hardware(), _keys(micro_batch_size=2), RELIEFS)
    kept = cost.layers.saved_bytes[0, 0] / even.layers.saved_bytes[0, 0]
    # All that an encoder layer keeps grows with its sequence, a first decoder layer's keys and values alone.
    assert kept[0] == pytest.approx(source / SEQUENCE)
    assert min(1.0, source / SEQUENCE) < kept[2] < max(1.0, source / SEQUENCE)
    assert cost.embedding.saved_bytes[0] != even.embedding.saved_bytes[0]


def test_rows_of_the_source_cost_what_as_many_own_rows_do() -> None:
    model, hardware = t5(), hardware_of(make_cluster(8), "fp8")
    keys = _keys(micro_batch_size=2)
    longer = own_keys(model, Workload(global_batch_size=2, sequence_length=SEQUENCE, source_length=4 * SEQUENCE), keys)
    operators = [each for each in layer_operators(model, 3) if each.name == "cross_key_values"]
    own = layer_kind(operators, replace(keys, sequence_length=4 * SEQUENCE), hardware).sums
    source, short = layer_kind(operators, longer, hardware).sums, layer_kind(operators, keys, hardware).sums
    # In 8 bit the backward pass casts gradients, row by row.
    assert source.backward_s[0] == own.backward_s[0] > short.backward_s[0]
    assert source.forward_s[0] == own.forward_s[0] > short.forward_s[0]


@pytest.mark.parametrize("name", MODELS)
def test_forward_flops_are_those_of_the_model(name: str) -> None:
    model = MODELS[name]
    workload = Workload(global_batch_size=2, sequence_length=SEQUENCE)
    cost = model_cost(model, workload, _counting_hardware(), _keys(micro_batch_size=2), RELIEFS)
    layers = np.bincount(model.layer_kind_sequence(), minlength=len(model.layer_kinds)) @ cost.layers.forward_s[0]
    total = layers + cost.embedding.forward_s[0] + cost.head.forward_s[0]
    assert total == pytest.approx(2 * SEQUENCE * forward_flops_per_token(model, SEQUENCE), rel=1e-12)


def test_residual_streams_widen_what_is_kept_and_sent_between_layers() -> None:
    model = MODELS["streams"]
    plain = model.model_copy(update={"residual": None, "exit_parts": ()})
    workload = Workload(global_batch_size=1, sequence_length=SEQUENCE)
    reliefs = (Relief(recompute="full"),)
    wide, narrow = (model_cost(each, workload, _counting_hardware(), _keys(), reliefs) for each in (model, plain))
    assert wide.entry_bytes[0] == 4 * narrow.entry_bytes[0] == 4 * 256 * SEQUENCE * 2
    assert np.all(wide.layers.saved_bytes[0] == 4 * narrow.layers.saved_bytes[0])


@pytest.mark.parametrize("name", MODELS)
def test_backward_is_twice_forward_and_half_a_forward_of_attention_more(name: str) -> None:
    """Flash attention runs its scores once more in the backward pass: 2.5 times the forward instead of 2."""
    model = MODELS[name]
    workload = Workload(global_batch_size=1, sequence_length=SEQUENCE)
    cost = model_cost(model, workload, _counting_hardware(), _keys(), RELIEFS)
    counts = np.bincount(model.layer_kind_sequence(), minlength=len(model.layer_kinds))
    total = counts @ cost.layers.total_s[0] + cost.embedding.total_s[0] + cost.head.total_s[0]
    modules = [*model.layer_kind_sequence(), *([model.mtp.kind] * model.mtp.num_layers if model.mtp else [])]
    attention = sum(
        forward_flops(operator, SEQUENCE)
        for kind in modules
        for operator in layer_operators(model, kind)
        if operator.op_class == "attention"
    )
    useful = model_flops_per_token(model, SEQUENCE)
    assert total == pytest.approx(SEQUENCE * (useful + 0.5 * attention), rel=1e-12)


@pytest.mark.parametrize("columns", [{"tp": 4}, {"tp": 4, "sp": 1}, {"cp": 2, "ring": 1}, {"tp": 2, "cp": 2}])
def test_dense_work_is_shared_and_not_multiplied(columns: dict[str, int]) -> None:
    """What the devices of a group compute together is what one device computes alone, and a ring's own steps."""
    model, hardware = make_model(), _counting_hardware()
    operators = layer_operators(model, 0)
    alone = layer_kind(operators, _keys(), hardware).sums
    shared = layer_kind(operators, _keys(**columns), hardware).sums
    ways = columns.get("tp", 1) * columns.get("cp", 1)
    attention = next(operator for operator in operators if operator.op_class == "attention")
    steps = [float(passed[0]) for passed in steps_s(attention, _keys(**columns), hardware.rates)]
    assert (min(steps) > 0) == ("ring" in columns)
    assert ways * (shared.forward_s[0] - steps[0]) == pytest.approx(alone.forward_s[0], rel=1e-12)
    assert ways * (shared.backward_s[0] - steps[1]) == pytest.approx(alone.backward_s[0], rel=1e-12)


@pytest.mark.parametrize("columns", [{"ep": 4}, {"tp": 2, "sp": 1, "ep": 2}, {"tp": 4, "sp": 1, "ep": 2, "etp": 2}])
def test_expert_work_is_shared_and_not_multiplied(columns: dict[str, int]) -> None:
    """With tokens spread evenly, each device computes its tokens' share, wherever the experts are."""
    model, hardware = make_moe_model(shared=512), _counting_hardware()
    operators = layer_operators(model, 0)
    alone = layer_kind(operators, _keys(), hardware).sums
    shared = layer_kind(operators, _keys(**columns), hardware).sums
    assert columns.get("tp", 1) * shared.forward_s[0] == pytest.approx(alone.forward_s[0], rel=1e-12)


def test_the_router_is_repeated_without_sequence_parallelism() -> None:
    model, hardware = make_moe_model(), _counting_hardware()
    router = next(op for op in layer_operators(model, 0) if op.name == "router")
    alone, split = (layer_kind([router], _keys(**columns), hardware).sums for columns in ({}, {"tp": 4}))
    assert split.forward_s[0] == alone.forward_s[0]


def _replicated(operators: tuple[Operator, ...]) -> tuple[int, int]:
    """Dense scalars that every tp rank holds, expert scalars that every etp rank holds."""
    dense = expert = 0
    for operator in operators:
        if operator.shard.startswith("expert"):
            expert += operator.replicated_parameters
        elif operator.shard in SPLIT_OVER_TP:
            dense += operator.replicated_parameters
        else:
            dense += operator.parameters
    return dense, expert


def _all_operators(model: ModelSpec) -> tuple[Operator, ...]:
    operators = [*embedding_operators(model), *head_operators(model)]
    for kind in model.layer_kind_sequence():
        operators += layer_operators(model, kind)
    for _ in range(model.mtp.num_layers if model.mtp else 0):
        operators += [*mtp_operators(model), *layer_operators(model, model.mtp.kind if model.mtp else 0)]
    return tuple(operators)


def _parameters_of_one_replica(problem: Problem, strategy: Strategy) -> float:
    """Scalars on the devices of one model replica, each counted once, however often it is repeated."""
    hardware = hardware_of(problem.cluster, problem.workload.precision)
    context = strategy_context(problem, hardware, strategy)
    candidate = best_split(context, SplitRules(limit_bytes=1e18, empty_ends=True))
    assert candidate is not None
    dense = sum(bill.dense_parameters for bill in candidate.stages) * strategy.tp
    expert = sum(bill.expert_parameters for bill in candidate.stages) * strategy.ep * strategy.etp
    same, same_expert = _replicated(_all_operators(problem.model))
    return dense - (strategy.tp - 1) * same + expert - (strategy.etp - 1) * same_expert


@pytest.mark.parametrize("seed", drawn(range(30), 10))
def test_the_devices_hold_the_model_once(seed: int) -> None:
    problem = random_problem(seed, backend="unrestricted")
    rows = all_rows(problem, problem.cluster.num_devices)
    model = problem.model
    whole = total_parameters(model) + mtp_parameters(model)
    assert model.mtp is None or not model.mtp.count_in_parameters
    draw = random.Random(seed)
    for index in draw.sample(range(len(rows)), min(8, len(rows))):
        strategy = rows.strategy(index, relief_choices(problem))
        # A tied head is a second copy of the table once the two ends are on different stages; in a V they are on one.
        apart = strategy.pp > 1 and strategy.schedule not in V_SCHEDULES
        copy = model.hidden_size * model.vocab_size if model.tie_embeddings and apart else 0
        assert _parameters_of_one_replica(problem, strategy) == pytest.approx(whole + copy, rel=1e-12), strategy


def test_zero_shards_the_states_and_nothing_else() -> None:
    """The bill of each ZeRO stage on 4 devices, with 18 bytes a parameter: 2 weights, 4 gradients, 12 optimizer."""
    problem = Problem(
        model=make_model(4), cluster=make_cluster(4), workload=Workload(global_batch_size=4, sequence_length=SEQUENCE)
    )
    parameters = total_parameters(problem.model)
    expected = {0: (2.0, 4.0, 12.0), 1: (2.0, 4.0, 3.0), 2: (2.0, 1.0, 3.0), 3: (0.5, 1.0, 3.0)}
    for zero, bytes_each in expected.items():
        strategy = Strategy(dp_shard=4, zero_stage=zero)
        context = strategy_context(problem, hardware_of(problem.cluster, "bf16"), strategy)
        candidate = best_split(context, SplitRules(limit_bytes=1e18, empty_ends=True))
        assert candidate is not None
        bill = candidate.stages[0]
        found = (bill.weights_bytes, bill.gradients_bytes, bill.optimizer_bytes)
        assert found == pytest.approx([parameters * each for each in bytes_each], rel=1e-12)
        again = evaluate_split(context, candidate.split)
        assert again.step_time_s == candidate.step_time_s


def test_an_offloaded_optimizer_is_on_the_host_and_crosses_the_link() -> None:
    problem = Problem(
        model=make_model(4), cluster=make_cluster(4), workload=Workload(global_batch_size=4, sequence_length=SEQUENCE)
    )
    hardware = hardware_of(problem.cluster, "bf16")
    strategy = Strategy(dp_shard=4, zero_stage=1, optimizer_offload=True)
    candidate = best_split(strategy_context(problem, hardware, strategy), SplitRules(limit_bytes=1e18))
    assert candidate is not None
    local = total_parameters(problem.model) / 4
    assert candidate.stages[0].optimizer_bytes == 0
    assert candidate.stages[0].host_bytes == pytest.approx(12 * local)
    # fp32 gradients down, 16-bit weights up at the same time; 12 bytes of states read and written on the host.
    by_hand = local * 4 / hardware.host_link_bytes_per_s + local * 2 * 12 / HOST_OPTIMIZER_BYTES_PER_S
    assert candidate.breakdown_s["optimizer"] == pytest.approx(by_hand, rel=1e-12)


@given(
    communication=st.floats(0, 10), more=st.floats(0, 10), window=st.floats(0, 10), tail=st.sampled_from([0, 0.05, 0.5])
)
def test_overlap_hides_some_and_never_costs_more_than_none(
    communication: float, more: float, window: float, tail: float
) -> None:
    shown = float(exposed_s(np.array(communication), np.array(window), tail))
    assert 0 <= shown <= communication
    assert float(exposed_s(np.array(communication + more), np.array(window), tail)) >= shown
    assert float(exposed_s(np.array(communication), np.array(window + more), tail)) <= shown
    assert float(exposed_s(np.array(communication), np.array(0.0), tail)) == communication
    if communication:
        assert shown > 0, "hiding is never free"


@pytest.mark.parametrize("seed", range(6))
def test_a_row_costs_the_same_alone_and_in_a_batch(seed: int) -> None:
    problem = random_problem(seed, backend="unrestricted")
    hardware = hardware_of(problem.cluster, problem.workload.precision)
    costs = CostModel(problem.model, problem.workload, hardware, relief_choices(problem))
    rows = all_rows(problem, problem.cluster.num_devices)
    together = costs.rows(rows)
    for index in random.Random(seed).sample(range(len(rows)), min(20, len(rows))):
        alone = costs.rows(rows.take(np.array([index])))
        for name in ("layer_forward_s", "layer_backward_s", "relief_s", "saved_bytes", "hop_s", "fixed_bytes"):
            assert getattr(alone, name)[0] == pytest.approx(getattr(together, name)[index], rel=1e-12), name


def test_a_window_longer_than_the_sequence_is_no_window() -> None:
    model, hardware = make_model(), hardware_of(make_cluster(8), "bf16")
    core = next(op for op in layer_operators(model, 0) if op.op_class == "attention")
    wide, none = (
        layer_kind([replace(core, window=window)], _keys(), hardware).sums.forward_s[0]
        for window in (8 * SEQUENCE, None)
    )
    assert wide == none
