"""Does the real Megatron-LM agree with our rules?  Its own parser and validators, in one warm process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from planner.emit.emission import Finding
from planner.emit.layout import chunks_in_model_order, layout_of
from planner.emit.megatron import project, rule_input, violations
from planner.emit.megatron.arguments import argument_vector, write_arguments
from planner.emit.megatron.emit import data_arguments, offloads_modules
from planner.emit.megatron.environment import environment, is_blackwell_or_later
from planner.emit.megatron.flags import sections
from planner.model.builtin import builtin_model, builtin_models
from planner.model.spec import ModelSpec
from planner.plan import Plan
from planner.problem import Workload
from planner.strategy import Strategy
from tests.megatron_models import REFUSED_MODELS
from tests.plan_factory import make_cluster, make_mla_model, make_model, make_moe_model, make_plan
from tests.plan_strategies import plans

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).parents[2]
DIRECTORY = Path(os.environ.get("MESHWRIGHT_MEGATRON_DIR", REPOSITORY / ".cache" / "megatron-core-0.19.2"))

# Where Megatron itself stops a plan that breaks a rule of this letter; other letters are ours alone (see rules.py).
REFUSING_STAGES = {"A": {"validate"}, "B": {"validate", "config"}, "C": {"groups"}, "O": {"optimizer"}}


class Megatron:
    """The worker process and its protocol."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(REPOSITORY / "tests" / "megatron_worker.py"), str(DIRECTORY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, plan: Plan, environ: dict[str, str] | None = None, extra: tuple[str, ...] = ()) -> dict[str, Any]:
        """Megatron's verdict on the arguments of a plan, whatever our rules say about it."""
        architecture = plan.problem.cluster.pools[0].device.architecture
        text = write_arguments(sections(plan))
        wanted = environment(plan.chosen(), architecture, fine_grained_offload=offloads_modules(plan))
        request = {
            "world_size": plan.chosen().world_size,
            "arguments": [*argument_vector(text), *argument_vector(data_arguments(plan)), *extra],
            "environment": wanted if environ is None else environ,
            "major": 10 if is_blackwell_or_later(architecture) else 9,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            pytest.fail(f"the Megatron worker died, exit status {self.process.wait()}")
        return dict(json.loads(answer))

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def megatron() -> Iterator[Megatron]:
    if not (DIRECTORY / "megatron" / "training" / "arguments.py").is_file():
        pytest.skip(f"megatron-core is not in {DIRECTORY}: run tests/install_megatron.sh")
    pytest.importorskip("torch", reason="torch is not installed, Megatron's parser needs it")
    worker = Megatron()
    yield worker
    worker.close()


def assert_accepted(answer: dict[str, Any], plan: Plan) -> None:
    """Megatron accepts and derives the same numbers."""
    assert answer["stage"] == "ok", answer
    strategy, facts = plan.chosen(), answer["facts"]
    wanted = {
        name: getattr(strategy, name) for name in ("dp", "num_microbatches", "vpp", "tp", "ep", "etp", "cp", "sp")
    }
    assert {name: facts[name] for name in wanted} == wanted
    chunks = chunks_in_model_order(layout_of(plan))
    assert facts["layers_per_chunk"] == [chunk.num_layers for chunk in chunks]
    if strategy.zero_stage:
        assert facts["optimizer_shards"] == strategy.dp_shard * strategy.cp
    assert facts["recompute_granularity"] == (None if strategy.recompute == "none" else strategy.recompute)


def assert_same_verdict(answer: dict[str, Any], plan: Plan, findings: list[Finding]) -> None:
    """Megatron stops where our rules say that it stops, and nowhere else."""
    letters = {finding.rule.removeprefix("megatron.")[0] for finding in findings}
    if not letters & set(REFUSING_STAGES):
        assert_accepted(answer, plan)
        return
    allowed = set().union(*(REFUSING_STAGES[letter] for letter in letters & set(REFUSING_STAGES)))
    assert answer["stage"] in allowed, (answer, findings)


DENSE, GQA = make_model(8), make_model(24, num_kv_heads=4)
MOE = make_moe_model(8, num_dense=1, shared=512)
MLA = make_mla_model(12, num_mtp_layers=1)
INTERLEAVED = Strategy(pp=4, vpp=2, schedule="interleaved", microbatch_group_size=4, num_microbatches=8)

ACCEPTED: dict[str, tuple[Strategy, ModelSpec]] = {
    "one device": (Strategy(), DENSE),
    "tied embeddings": (Strategy(dp_shard=2), make_model(8, tie_embeddings=True)),
    "tp": (Strategy(tp=4, dp_shard=2), DENSE),
    "tp sp": (Strategy(tp=4, sp=True, dp_shard=2), DENSE),
    "tp overlap": (Strategy(tp=4, sp=True, overlap_tp=True), DENSE),
    "gqa, tp above kv heads": (Strategy(tp=8, sp=True), GQA),
    "pp": (Strategy(pp=4, num_microbatches=8), DENSE),
    "pp, fewer micro-batches than stages": (Strategy(pp=4, num_microbatches=2), DENSE),
    "interleaved": (INTERLEAVED, DENSE),
    "interleaved, larger groups": (replace(INTERLEAVED, num_microbatches=12, microbatch_group_size=6), DENSE),
    "interleaved, three chunks": (replace(INTERLEAVED, vpp=3), GQA),
    "ring": (Strategy(cp=4, cp_kind="ring", dp_shard=2), DENSE),
    "all to all": (Strategy(cp=4, cp_kind="all_to_all", dp_shard=2), make_model(8, num_kv_heads=16)),
    "tp cp pp dp": (Strategy(tp=2, sp=True, cp=2, cp_kind="ring", pp=2, dp_shard=2, num_microbatches=4), GQA),
    "ddp": (Strategy(dp_shard=8, zero_stage=0, overlap_param_gather=False), DENSE),
    "zero 1 replicated": (Strategy(dp_replicate=2, dp_shard=4), DENSE),
    "zero 2": (Strategy(dp_shard=8, zero_stage=2), DENSE),
    "zero 3": (Strategy(dp_shard=8, zero_stage=3), DENSE),
    "zero 3 replicated": (Strategy(dp_replicate=2, dp_shard=4, zero_stage=3), DENSE),
    "zero 3 tp": (Strategy(tp=2, sp=True, dp_shard=4, zero_stage=3), GQA),
    "zero 3 pp": (Strategy(pp=2, dp_shard=4, zero_stage=3, num_microbatches=4), GQA),
    "no overlap": (Strategy(dp_shard=8, overlap_grad_reduce=False, overlap_param_gather=False), DENSE),
    "full recompute": (Strategy(recompute="full", dp_shard=2), DENSE),
    "core attention recompute": (Strategy(recompute="selective", recompute_modules=("attention_core", "mlp")), DENSE),
    "expert recompute": (Strategy(ep=4, dp_shard=8, recompute="selective", recompute_modules=("moe", "norm")), MOE),
    "expert activation": (Strategy(ep=4, dp_shard=8, recompute="selective", recompute_modules=("activation",)), MOE),
    "optimizer offload": (Strategy(dp_shard=4, optimizer_offload=True), DENSE),
    "activation offload": (Strategy(tp=2, pp=2, num_microbatches=4, activation_offload=True), DENSE),
    "expert offload": (Strategy(ep=2, pp=2, dp_shard=2, num_microbatches=4, activation_offload=True), MOE),
    "ep": (Strategy(ep=8, dp_shard=8), MOE),
    "ep tp, experts whole": (Strategy(tp=2, sp=True, ep=4, dp_shard=4), MOE),
    "ep etp": (Strategy(tp=2, sp=True, ep=4, etp=2, dp_shard=4), MOE),
    "ep pp": (Strategy(pp=2, ep=4, dp_shard=4, num_microbatches=4), MOE),
    "ep overlap": (replace(INTERLEAVED, ep=2, dp_shard=2, overlap_ep=True), MOE),
    "mla mtp": (Strategy(tp=2, sp=True, ep=8, dp_shard=8), MLA),
    "mla mtp pp": (replace(INTERLEAVED, vpp=3, tp=2, sp=True, ep=8, dp_shard=8), MLA),
    "other axis order": (
        Strategy(pp=2, dp_shard=4, num_microbatches=4, axis_order="tp-cp-ep-pp-dp"),
        DENSE,
    ),
}

REFUSED: dict[str, tuple[str, Strategy, ModelSpec]] = {
    "interleaved without pipeline": ("A8", Strategy(vpp=2, schedule="interleaved", microbatch_group_size=1), DENSE),
    "gather without reduce": ("A9", Strategy(dp_shard=2, overlap_grad_reduce=False), DENSE),
    "tp overlap without sp": ("A18", Strategy(tp=2, overlap_tp=True), DENSE),
    "experts over ranks": ("A21", Strategy(dp_shard=3, ep=3), MOE),
    "ep of a dense model": ("A21", Strategy(dp_shard=2, ep=2), DENSE),
    "heads": ("B2", Strategy(tp=3), DENSE),
    "kv heads": ("B2b", Strategy(tp=6), make_model(8, num_heads=12, num_kv_heads=4)),
    "ep overlap without interleaving": (
        "B13",
        Strategy(pp=2, ep=2, dp_shard=2, num_microbatches=4, overlap_ep=True),
        MOE,
    ),
    "ep overlap with full recompute": (
        "B13",
        replace(INTERLEAVED, ep=2, dp_shard=2, overlap_ep=True, recompute="full"),
        MOE,
    ),
    "expert grid": ("C1", Strategy(tp=2, sp=True, pp=2, ep=8, etp=2, dp_shard=2, num_microbatches=4), MOE),
    "axis order": (
        "C2",
        Strategy(cp=2, cp_kind="ring", pp=2, dp_shard=2, num_microbatches=4, axis_order="tp-cp-ep-pp-dp"),
        DENSE,
    ),
    "expert optimizer instances": ("C4", Strategy(ep=8, dp_replicate=2, dp_shard=4), MOE),
    "offload without sharding": (
        "O1",
        Strategy(optimizer_offload=True, zero_stage=0, overlap_param_gather=False),
        DENSE,
    ),
    "interleaved, too few micro-batches": ("D2", replace(INTERLEAVED, num_microbatches=2), DENSE),
    "interleaved, bad rest": ("D2", replace(INTERLEAVED, num_microbatches=6), DENSE),
    "experts without sp": ("D3", Strategy(tp=2, ep=2, dp_shard=2), MOE),
    "all-to-all heads": ("U2", Strategy(cp=8, cp_kind="all_to_all"), make_model(8, num_kv_heads=4)),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_megatron_accepts_what_we_emit(megatron: Megatron, name: str) -> None:
    strategy, model = ACCEPTED[name]
    plan, projections = project(make_plan(strategy, model))
    assert projections == ()
    assert violations(rule_input(plan)) == []
    assert_accepted(megatron.ask(plan), plan)


@pytest.mark.parametrize("name", REFUSED)
def test_our_rules_stop_at_the_same_place(megatron: Megatron, name: str) -> None:
    rule, strategy, model = REFUSED[name]
    plan = make_plan(strategy, model)
    findings = violations(rule_input(plan))
    assert f"megatron.{rule}" in {finding.rule for finding in findings}
    assert_same_verdict(megatron.ask(plan), plan, findings)


@pytest.mark.parametrize("name", sorted(set(builtin_models()) - set(REFUSED_MODELS)))
def test_models_that_ship(megatron: Megatron, name: str) -> None:
    model = builtin_model(name)
    experts = any(kind.moe for kind in model.layer_kinds)
    strategy = Strategy(pp=2, dp_shard=4, ep=4 if experts else 1, num_microbatches=4)
    workload = Workload(global_batch_size=16, sequence_length=min(model.max_sequence_length, 4096))
    plan = make_plan(strategy, model, workload=workload)
    assert violations(rule_input(plan)) == []
    assert_accepted(megatron.ask(plan), plan)


@pytest.mark.parametrize(
    ("layers", "strategy"),
    [
        ((1, 3, 3, 1), Strategy(pp=4, num_microbatches=8)),
        ((0, 4, 4, 0), Strategy(pp=4, num_microbatches=8)),
        ((2, 2, 2, 0, 0, 0, 1, 1), INTERLEAVED),
        ((3, 5), Strategy(pp=2, tp=2, sp=True, num_microbatches=4)),
    ],
)
def test_uneven_stages(megatron: Megatron, layers: tuple[int, ...], strategy: Strategy) -> None:
    plan = make_plan(strategy, DENSE, layers_per_chunk=layers)
    assert violations(rule_input(plan)) == []
    assert_accepted(megatron.ask(plan), plan)


def test_uneven_stages_with_mtp(megatron: Megatron) -> None:
    plan = make_plan(Strategy(pp=4, ep=2, dp_shard=2, num_microbatches=8), MLA, layers_per_chunk=(4, 3, 3, 2))
    assert_accepted(megatron.ask(plan), plan)


def test_layers_offloaded_whole(megatron: Megatron) -> None:
    plan = make_plan(Strategy(dp_shard=2, activation_offload=True), DENSE, activation_offload_layers=[3])
    assert project(plan) == (plan, ())
    assert_accepted(megatron.ask(plan), plan)


@pytest.mark.parametrize(
    ("rule", "workload"),
    [
        ("A14", Workload(global_batch_size=2, sequence_length=4094)),
        ("A3", Workload(global_batch_size=3, sequence_length=4096)),
        ("A13", Workload(global_batch_size=2, sequence_length=4096, optimizer="muon")),
    ],
)
def test_workloads(megatron: Megatron, rule: str, workload: Workload) -> None:
    zero_stage = 3 if rule == "A13" else 1
    plan = make_plan(Strategy(cp=2, cp_kind="ring", dp_shard=2, zero_stage=zero_stage), DENSE, workload=workload)
    findings = violations(rule_input(plan))
    assert f"megatron.{rule}" in {finding.rule for finding in findings}
    assert_same_verdict(megatron.ask(plan), plan, findings)


@pytest.mark.parametrize("precision", ["fp16", "fp8"])
@pytest.mark.parametrize("architecture", ["hopper", "blackwell"])
def test_precisions(megatron: Megatron, precision: Any, architecture: str) -> None:
    workload = Workload(global_batch_size=2, sequence_length=4096, precision=precision, gradient_dtype="bf16")
    plan = make_plan(Strategy(tp=2, sp=True, dp_shard=2), DENSE, make_cluster(4, architecture=architecture), workload)
    assert violations(rule_input(plan)) == []
    assert_accepted(megatron.ask(plan), plan)


def test_the_environment_is_needed(megatron: Megatron) -> None:
    tensor = make_plan(Strategy(tp=2))
    assert megatron.ask(tensor, environ={})["stage"] == "validate"
    assert (
        megatron.ask(make_plan(Strategy(tp=2), cluster=make_cluster(2, architecture="blackwell")), {})["stage"] == "ok"
    )
    sharded = make_plan(Strategy(dp_shard=2, zero_stage=3))
    assert megatron.ask(sharded, environ={"CUDA_DEVICE_MAX_CONNECTIONS": "1"})["stage"] == "validate"
    offloaded = make_plan(Strategy(pp=2, num_microbatches=4, activation_offload=True))
    assert megatron.ask(offloaded, environ={})["stage"] == "validate"


def test_an_unknown_flag_is_refused_by_the_parser(megatron: Megatron) -> None:
    answer = megatron.ask(make_plan(), extra=("--no-such-flag",))
    assert answer["stage"] == "parse"
    assert "--no-such-flag" in answer["message"]


def test_random_plans_get_the_same_verdict(megatron: Megatron) -> None:
    verdicts: list[bool] = []

    @given(plans())
    @settings(max_examples=60)
    def check(wanted: Plan) -> None:
        plan, _ = project(wanted)
        findings = violations(rule_input(plan))
        answer = megatron.ask(plan)
        assert_same_verdict(answer, plan, findings)
        verdicts.append(answer["stage"] == "ok")

    check()
    assert verdicts.count(True) >= 20
    assert verdicts.count(False) >= 5
