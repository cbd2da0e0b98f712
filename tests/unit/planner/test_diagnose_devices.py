"""Diagnoses of device traces, written event by event: a slow group of an axis, gaps, kernels that are not fused."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.answers.diagnose.diagnosis import diagnose
from planner.answers.diagnose.document import Diagnosis
from planner.plan.plan import Plan
from planner.strategy.strategy import Strategy
from profiles.importing.source_file import SourceFile
from tests.kineto_trace import KinetoTrace
from tests.plan_factory import make_cluster, make_plan

STEP_US = 100_000.0
MATMUL = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas"
SOFTMAX = "void (anonymous namespace)::cunn_SoftMaxForward<4, c10::BFloat16, float>"
TENSOR_PARALLEL = Strategy(tp=2, sp=True, dp_shard=2, overlap_grad_reduce=False, overlap_param_gather=False)


def traced(
    rank: int, world_size: int, *, collective_us: float = 10_000.0, gap_us: float = 0.0, softmax: bool = False
) -> KinetoTrace:
    """Three steps: products, a sum over the tp group that shows; of four ranks the rest is one over the dp group."""
    trace = KinetoTrace(rank=rank, world_size=world_size)
    group = [rank - rank % 2, rank - rank % 2 + 1]
    for number in range(3):
        start = number * STEP_US
        trace.call(f"ProfilerStep#{number}", start, STEP_US, cat="user_annotation")
        computing = 70_000.0 if world_size == 4 else STEP_US - collective_us - gap_us
        trace.kernel(SOFTMAX if softmax else MATMUL, start, computing / 4, None)
        trace.kernel(MATMUL, start + computing / 4, computing * 3 / 4, None)
        named = {"Process Group Ranks": str(group), "Group size": 2, "Seq": number}
        trace.collective("allreduce", start + computing, collective_us, (10**6, 10**6), named)
        if world_size == 4:
            named = {"Process Group Ranks": str([rank % 2, rank % 2 + 2]), "Group size": 2, "Seq": number}
            begun = start + computing + collective_us
            trace.collective("allreduce", begun, start + STEP_US - begun, (10**6, 10**6), named)
    return trace


def diagnosed(folder: Path, plan: Plan, traces: list[KinetoTrace]) -> Diagnosis:
    for trace in traces:
        (folder / f"rank{trace.rank}.json").write_text(trace.text(), encoding="utf-8")
    plan = plan.model_copy(update={"breakdown_s": {"compute": plan.step_time_s}})
    return diagnose(plan, [SourceFile(path) for path in sorted(folder.glob("rank*.json"))])


def kinds(found: Diagnosis) -> list[str]:
    return [each.kind for each in found.findings if each.kind != "another-device"]


def test_a_slow_group_is_named_by_its_ranks(tmp_path: Path) -> None:
    plan = make_plan(TENSOR_PARALLEL, cluster=make_cluster(4))
    found = diagnosed(
        tmp_path, plan, [traced(rank, 4, collective_us=20_000.0 if rank > 1 else 10_000.0) for rank in range(4)]
    )
    assert kinds(found) == ["slow-link"]
    finding = next(each for each in found.findings if each.kind == "slow-link")
    assert "tp group of ranks 2, 3 take 2.00 times" in finding.what
    assert finding.seconds == pytest.approx(0.01)
    assert finding.evidence == ("rank2.json: rank 2", "rank3.json: rank 3")
    tensor = next(each for each in found.terms if each.term == "tp")
    assert tensor.measured_s == pytest.approx(0.015)
    assert tensor.waiting_s == pytest.approx(0.0)


def test_equal_groups_have_no_finding(tmp_path: Path) -> None:
    plan = make_plan(TENSOR_PARALLEL, cluster=make_cluster(4))
    found = diagnosed(tmp_path, plan, [traced(rank, 4) for rank in range(4)])
    assert kinds(found) == []
    assert [each.step_s for each in found.ranks] == pytest.approx([0.1] * 4)


def test_gaps_and_attention_in_parts(tmp_path: Path) -> None:
    plan = make_plan(Strategy(tp=2, sp=True), cluster=make_cluster(2))
    found = diagnosed(tmp_path, plan, [traced(rank, 2, gap_us=30_000.0, softmax=True) for rank in range(2)])
    assert kinds(found) == ["host-gaps", "unfused-kernel"]
    gaps = next(each for each in found.findings if each.kind == "host-gaps")
    assert gaps.seconds == pytest.approx(0.03)
    assert any("softmax is a kernel of its own" in each.what for each in found.findings)


def test_the_steps_of_a_maxtext_log(tmp_path: Path) -> None:
    lines = ["Config param global_batch_size_to_train_on: 64", "Config param max_target_length: 4096"]
    lines += [
        f"completed step: {step}, seconds: {time_s:.3f}, TFLOP/s/device: 180.5, Tokens/s/device: 5012.3,"
        f" total_weights: 65536, loss: 7.1"
        for step, time_s in enumerate((40.0, 2.0, 2.1, 2.2))
    ]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    plan = make_plan(Strategy(dp_shard=8, num_microbatches=8), cluster=make_cluster(8))
    found = diagnose(plan, [SourceFile(tmp_path / "train.log")])
    assert found.step is not None
    assert found.step.num_steps == 3, "the first carries start-up"
    assert found.step.median_s == pytest.approx(2.1)
    assert found.same_run, "64 samples of 4,096 tokens, as planned"
