"""What a pipeline hands over, shares between its ends, and keeps of experts' gates, counted by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.evidence.runs.prediction import predict_rows
from planner.evidence.runs.truth import read_truth
from planner.model.builtin import builtin_model
from planner.model.operators import layer_operators
from planner.predict.cost.fixed_bytes import FixedBytes
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.row_cost import CostModel, RowCost
from planner.predict.memory.framework_memory import with_framework_kept
from planner.predict.physics.physics import TUNED
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows, relief_of
from planner.strategy.schedules import SCHEDULE_NAMES
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster

MODEL = builtin_model("deepseek-v3")
V = Strategy(pp=16, ep=64, dp_shard=128, vpp=2, num_microbatches=32, schedule="dualpipev", zero_stage=1)


def handed_over(schedule: str, *, vpp: int, group: int, pp: int = 16) -> float:
    """Entry tensors held, beside the four of a layer that runs."""
    none, one = np.zeros(1), np.ones(1)
    fixed = FixedBytes(framework=none, entry=one, buffers=none, gathered=none, stored=none)
    columns = (np.array([each]) for each in (pp, vpp, SCHEDULE_NAMES.index(schedule), 64, group))
    return float(fixed.total(*columns)[0]) - 4.0


@pytest.mark.parametrize(("group", "held"), [(0, 4.0), (16, 4.0), (18, 8.0)])
def test_an_interleaved_pipeline_frees_what_it_sent_however_many_chunks(group: int, held: float) -> None:
    """One to send and ``g - p + 1`` received, each way."""
    assert handed_over("interleaved", vpp=2, group=group) == held
    assert handed_over("interleaved", vpp=8, group=group) == held


def test_other_schedules_hold_two_a_chunk_and_one_stage_none() -> None:
    assert handed_over("1f1b", vpp=1, group=0) == 2.0
    assert handed_over("dualpipev", vpp=2, group=0) == 4.0
    assert handed_over("interleaved", vpp=8, group=0, pp=1) == 0.0


def costed(strategy: Strategy) -> RowCost:
    workload = Workload(global_batch_size=4096, sequence_length=4096, precision="bf16")
    reliefs = (relief_of(strategy),)
    hardware = hardware_of(load_cluster("dgx-h800", strategy.world_size), "bf16", physics=TUNED)
    rows = StrategyRows.of([strategy], reliefs)
    return CostModel(MODEL, workload, hardware, reliefs).rows(rows)


def test_a_v_shares_the_token_table_between_embedding_and_prediction_layer() -> None:
    looped = replace(V, schedule="interleaved")
    more = costed(looped).head_dense - costed(V).head_dense
    assert more.tolist() == [MODEL.vocab_size * MODEL.hidden_size]


def test_deepseek_v3_as_it_ran_is_judged_to_fit() -> None:
    """2,048 H800 of 80 GB; with what its report replays, keeps in 8 bit and shares (sections 3.2.3 and 3.3.3)."""
    table = Path(__file__).parents[3] / "benchmarks" / "published" / "moe_runs.csv"
    rows = [row for row in read_truth(table.read_text(encoding="utf-8"), str(table)) if "2048-h800" in row.id]
    ((ran,), unmapped) = predict_rows(rows)
    assert not unmapped
    assert ran.fits


def test_inputs_of_experts_gates_in_8_bit() -> None:
    operators = layer_operators(MODEL, MODEL.layer_kind_sequence()[-1])
    narrow = with_framework_kept(operators, replace(TUNED, narrow_gate_inputs=True))
    changed = {
        own.name: own.saved_bytes_per_element
        for own, other in zip(narrow, operators, strict=True)
        if own.saved_bytes_per_element != other.saved_bytes_per_element
    }
    assert changed == {"experts_activation": 1.0}
