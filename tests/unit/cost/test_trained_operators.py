"""What runs, learns and is kept where only adapters learn, or a reference model runs beside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.backends.asked import problem_hardware
from planner.model.builtin import builtin_model
from planner.model.flops import forward_flops, model_flops_per_token
from planner.model.load import model_from_data
from planner.model.operators import head_operators, layer_operators
from planner.model.parameters import total_parameters
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.trained_operators import paired_head, trained_operators
from planner.predict.training_flops import training_flops_per_token
from planner.question.problem import UNRESTRICTED, Constraints, Problem, Workload
from planner.question.training import Training
from planner.strategy.rows import StrategyRows
from planner.strategy.strategy import Relief, Strategy
from profiles.catalogue import load_cluster

MODEL = builtin_model("llama-3.1-8b")
LAYER = layer_operators(MODEL, 0)


def training(**said: Any) -> Training:
    return Training.model_validate(said)


def learned(**said: Any) -> int:
    return sum(op.parameters for op in trained_operators(LAYER, training(**said)) if not op.frozen)


def cost_of(said: dict[str, Any] | None, **strategy: Any) -> tuple[RowCost, np.ndarray]:
    workload = Workload(global_batch_size=64, sequence_length=4096, training=None if said is None else training(**said))
    problem = Problem(
        model=MODEL,
        cluster=load_cluster("dgx-h100", 8),
        workload=workload,
        constraints=Constraints(backends=(UNRESTRICTED,)),
    )
    costs = CostModel(MODEL, workload, problem_hardware(problem), (Relief(),))
    rows = StrategyRows.of([Strategy(dp_shard=8, **strategy)], (Relief(),))
    return costs.rows(rows), costs.kind_counts


def test_adapters_have_rank_times_both_widths() -> None:
    """Llama 3.1 8B: 4096 wide, 8 key-value heads of 128, 14336 inside."""
    q, k, gate, down = 16 * (4096 + 4096), 16 * (4096 + 1024), 16 * (4096 + 14336), 16 * (14336 + 4096)
    assert learned(kind="lora", targets="q") == q
    assert learned(kind="lora") == 2 * q + 2 * k + 2 * gate + down
    assert learned(kind="lora", targets="q", dora=True) == q + 4096
    assert learned(kind="qlora", rank=8, targets="q,v") == (q + k) // 2


def test_of_frozen_weights_only_what_an_adapter_reads_is_kept() -> None:
    of_queries = {op.name: op.saved_width for op in trained_operators(LAYER, training(kind="lora", targets="q"))}
    plain = {op.name: op.saved_width for op in LAYER}
    assert of_queries["qkv"] == plain["qkv"] > 0
    assert of_queries["up"] == of_queries["down"] == 0 < plain["up"]
    # The kernel of attention keeps its own output, and a norm its input, whoever learns.
    assert of_queries["output_projection"] == plain["output_projection"]
    assert of_queries["attention_norm"] == plain["attention_norm"]
    assert of_queries["qkv_q_adapter_b"] == 16


def test_a_quantised_matrix_is_widened_before_its_product() -> None:
    names = [op.name for op in trained_operators(LAYER, training(kind="qlora"))]
    assert names.index("qkv_dequantisation") == names.index("qkv") - 1
    passes = {op.name: op for op in trained_operators(LAYER, training(kind="qlora"))}
    nf4 = 0.5 + 1 / 64 + 4 / (64 * 256)
    assert passes["down_dequantisation"].passed_bytes == pytest.approx(nf4 + 2.0)
    assert not any("dequantisation" in op.name for op in trained_operators(LAYER, training(kind="lora")))


def test_the_frozen_base_of_qlora_takes_its_stored_bytes() -> None:
    cost, counts = cost_of({"kind": "qlora"}, zero_stage=0)
    ends = 2 * 128256 * 4096 * 2 + 4096 * 2
    norms = 32 * 2 * 4096 * 2
    matrices = (total_parameters(MODEL) - 128256 * 4096 * 2 - 4096 - 32 * 2 * 4096) * (0.5 + 1 / 64 + 4 / 16384)
    held = cost.frozen.layer[0] @ counts + cost.frozen.embedding[0] + cost.frozen.head[0]
    assert held == pytest.approx(ends + norms + matrices)
    sharded, _ = cost_of({"kind": "qlora"}, zero_stage=3)
    assert sharded.frozen.layer[0] == pytest.approx(cost.frozen.layer[0] / 8)
    assert sharded.frozen.layer[0] == pytest.approx(sharded.frozen.least_layer[0])


def test_only_what_learns_has_states_and_traffic() -> None:
    lora, counts = cost_of({"kind": "lora"}, zero_stage=1)
    full, _ = cost_of({"kind": "full"}, zero_stage=1)
    assert lora.layer_dense[0] @ counts == pytest.approx(32 * learned(kind="lora"))
    assert full.layer_dense[0, 0] > 50 * lora.layer_dense[0, 0]
    assert lora.embedding_dense[0] == lora.head_dense[0] == 0
    ends, _ = cost_of({"kind": "lora", "ends": True}, zero_stage=1)
    assert ends.embedding_dense[0] == full.embedding_dense[0]


def test_a_reference_adds_its_forward_pass_and_where_it_is_resident_its_weights() -> None:
    plain, counts = cost_of({"kind": "full", "task": "orpo"}, zero_stage=0)
    resident, _ = cost_of({"kind": "full", "task": "dpo"}, zero_stage=0)
    assert resident.layer_forward_s[0, 0] == pytest.approx(2 * plain.layer_forward_s[0, 0])
    assert resident.layer_backward_s[0, 0] == plain.layer_backward_s[0, 0]
    held = resident.frozen.layer[0] @ counts + resident.frozen.embedding[0] + resident.frozen.head[0]
    assert held == pytest.approx(2 * total_parameters(MODEL))
    precomputed, _ = cost_of({"kind": "full", "task": "dpo", "reference": "precomputed"}, zero_stage=0)
    assert precomputed.layer_forward_s[0, 0] == plain.layer_forward_s[0, 0]
    shared, _ = cost_of({"kind": "lora", "task": "dpo"}, zero_stage=0)
    alone, _ = cost_of({"kind": "lora", "task": "orpo"}, zero_stage=0)
    assert shared.frozen.layer[0, 0] == alone.frozen.layer[0, 0]
    assert shared.layer_forward_s[0, 0] > 1.5 * alone.layer_forward_s[0, 0]


def test_pairs_are_two_sequences() -> None:
    one, _ = cost_of(None, zero_stage=1)
    two, _ = cost_of({"kind": "full", "task": "orpo"}, zero_stage=1, micro_batch_size=1)
    both, _ = cost_of(None, zero_stage=1, micro_batch_size=2)
    assert two.saved_bytes[0, 0] == both.saved_bytes[0, 0] == 2 * one.saved_bytes[0, 0]


def test_a_reward_model_has_one_score_instead_of_the_vocabulary() -> None:
    head = paired_head(head_operators(MODEL), training(task="reward"))
    assert [op.name for op in head] == ["final_norm", "lm_head"]
    assert head[-1].parameters == 4096


def test_useful_flops_of_frozen_weights_are_two_thirds() -> None:
    def of(**said: Any) -> float:
        workload = Workload(global_batch_size=1, sequence_length=128, training=training(**said))
        return training_flops_per_token(MODEL, workload) / model_flops_per_token(MODEL, 128)

    assert of(kind="full") == 1.0
    assert of(kind="lora", rank=1, targets="q") == pytest.approx(2 / 3, rel=0.01)
    assert of(kind="full", task="dpo") == pytest.approx(4 / 3)


@pytest.mark.parametrize("tp", [1, 8])
def test_layers_that_attend_to_a_tower_are_passed_over_without_images(tp: int) -> None:
    """Llama 3.2 Vision on text: 8 of 40 layers hold their weights and run nothing."""
    config = {"model_type": "mllama", "text_config": {"model_type": "mllama_text_model"}}
    model = model_from_data({**config, "vision_config": {"model_type": "mllama_vision_model"}}, "m", "t")
    none = Relief("none", (), False)
    rows = StrategyRows.of([Strategy(tp=tp, sp=tp > 1, dp_shard=8 // tp, zero_stage=1)], (none,))
    text, seen = (Workload(global_batch_size=8, sequence_length=4096, images_per_sample=items) for items in (0, 1))
    hardware = hardware_of(load_cluster("dgx-h100", 8), "bf16")
    layers = [CostModel(model, each, hardware, (none,)).keyed(rows)[0].layers for each in (text, seen)]
    assert model.layer_kinds[1].attention.kind == "tower_cross"
    assert float(layers[0].total_s[0, 1]) == 0.0 < float(layers[1].total_s[0, 1])
    assert layers[0].dense_parameters.tolist() == layers[1].dense_parameters.tolist()
    plain = sum(forward_flops(each, 4096) for each in layer_operators(model, 0))
    ends = sum(forward_flops(each, 4096) for each in head_operators(model))
    assert training_flops_per_token(model, text) == pytest.approx(3.0 * (32 * plain + ends))
