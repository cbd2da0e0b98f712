"""How routed tokens are sent: what the back-end takes where nobody says it, its flags, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.backends.asked import inside
from planner.backends.megatron.arguments import parse_arguments
from planner.backends.megatron.dispatcher import dispatcher_problem, usual_dispatcher
from planner.backends.megatron.read import read_back
from planner.backends.megatron.write import assumptions
from planner.backends.megatron_bridge.read import read_back as read_bridge
from planner.backends.registry import software
from planner.backends.rules.rule import RuleInput
from planner.errors import MeshwrightError
from planner.question.problem import Workload
from planner.search.backend_rules import BackEndRules
from planner.search.estimate import estimate
from planner.strategy.strategy import Dispatcher, Strategy
from tests.emitter import emitter
from tests.plan_factory import make_cluster, make_moe_model, make_plan
from tests.round_trip import as_spelled, question

EXPERTS = Strategy(ep=4, dp_shard=8, num_microbatches=2)
TYPE, BACKEND = "--moe-token-dispatcher-type", "--moe-flex-dispatcher-backend"


def given(
    ep: int = 8,
    etp: int = 1,
    architecture: str = "hopper",
    kind: str = "switch",
    domain: int = 8,
    precision: str = "bf16",
    nics: str = "",
) -> RuleInput:
    workload = Workload.model_validate({"global_batch_size": 64, "sequence_length": 4096, "precision": precision})
    strategy = Strategy(ep=ep, etp=etp, dp_shard=ep)
    return RuleInput(strategy, make_moe_model(), workload, architecture, None, None, domain, 0, kind, nics)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (given(), "deepep"),
        (given(ep=64), "deepep"),
        (given(ep=48), "alltoall"),
        (given(ep=64, nics="infiniband"), "deepep"),
        (given(ep=64, nics="roce"), "deepep"),
        (given(ep=64, nics="efa"), "alltoall"),
        (given(ep=16, nics="tcpx"), "alltoall"),
        (given(ep=8, nics="efa"), "deepep"),
        (given(etp=2), "alltoall"),
        (given(precision="fp16"), "alltoall"),
        (given(precision="fp8"), "deepep"),
        (given(architecture="ada"), "alltoall"),
        (given(architecture="volta"), "alltoall"),
        (given(kind="pcie"), "alltoall"),
        (given(ep=16, domain=4), "alltoall"),
        (given(ep=4, domain=4), "deepep"),
        (given(ep=64, domain=72, architecture="blackwell"), "hybridep"),
        (given(ep=128, domain=72, architecture="blackwell"), "alltoall"),
        (given(ep=8, architecture="blackwell"), "deepep"),
    ],
)
def test_flex_is_taken_where_it_runs(facts: RuleInput, expected: Dispatcher) -> None:
    assert usual_dispatcher(facts) == expected
    assert dispatcher_problem(replace(facts, strategy=replace(facts.strategy, dispatcher=expected))) is None


def test_deepep_has_eight_ranks_a_node_at_most() -> None:
    wide = given(ep=16, domain=72, architecture="blackwell")
    told = dispatcher_problem(replace(wide, strategy=replace(wide.strategy, dispatcher="deepep")))
    assert told == "DeepEP's ranks of a node are at most 8"


@pytest.mark.parametrize(("nics", "told"), [("", None), ("infiniband", None), ("efa", "HybridEP beyond a node needs")])
def test_hybridep_leaves_a_node_over_the_nics_that_deepep_needs(nics: str, told: str | None) -> None:
    facts = given(ep=16, nics=nics)
    answer = dispatcher_problem(replace(facts, strategy=replace(facts.strategy, dispatcher="hybridep")))
    assert answer is told if told is None else told in (answer or "")


def test_an_all_gather_is_not_overlapped() -> None:
    facts = given()
    gathered = replace(facts, strategy=replace(facts.strategy, dispatcher="allgather"))
    assert dispatcher_problem(gathered) is None
    overlapped = replace(gathered, strategy=replace(gathered.strategy, overlap_ep=True))
    assert "overlap_ep needs" in (dispatcher_problem(overlapped) or "")


@pytest.mark.parametrize(
    ("dispatcher", "type_words", "backend_words"),
    [
        ("alltoall", ("alltoall",), None),
        ("allgather", ("allgather",), None),
        ("deepep", ("flex",), ("deepep",)),
        ("hybridep", ("flex",), ("hybridep",)),
    ],
)
def test_the_flags_say_the_dispatcher_and_are_read_back(
    dispatcher: Dispatcher, type_words: tuple[str, ...], backend_words: tuple[str, ...] | None
) -> None:
    strategy = replace(EXPERTS, dispatcher=dispatcher)
    plan = as_spelled(make_plan(strategy, make_moe_model(), make_cluster(8)), "megatron")
    made = emitter("megatron")(plan, "torchrun")
    arguments = parse_arguments(made.files["megatron.args"])
    assert (arguments[TYPE], arguments.get(BACKEND)) == (type_words, backend_words)
    assert f"# {TYPE}: " in made.files["megatron.args"]
    assert read_back(made.files)[0].dispatcher == dispatcher
    bridge = as_spelled(make_plan(strategy, make_moe_model(), make_cluster(8)), "megatron-bridge")
    said = emitter("megatron-bridge")(bridge, "torchrun").files
    assert f"model.moe_token_dispatcher_type={type_words[0]}\n" in said["overrides.txt"]
    assert read_bridge(said)[0].dispatcher == dispatcher
    needs = [line for line in assumptions(plan) if "deep_ep" in line]
    assert len(needs) == (backend_words is not None)


def test_without_expert_parallelism_there_is_one_spelling() -> None:
    alone = Strategy(dp_shard=8, num_microbatches=2, dispatcher="deepep")
    plan = as_spelled(make_plan(alone, make_moe_model(), make_cluster(8)), "megatron")
    assert plan.chosen().dispatcher == "alltoall"


@pytest.mark.parametrize(
    ("backend", "own", "refused"),
    [("megatron", "deepep", ()), ("mindspeed", "alltoall", ("deepep", "hybridep")), ("nemo", "deepep", ("hybridep",))],
)
def test_each_back_end_has_a_way_of_its_own(backend: str, own: Dispatcher, refused: tuple[Dispatcher, ...]) -> None:
    rules = BackEndRules(inside(question("qwen3-30b-a3b", "dgx-h100", 8), software(backend)))
    assert rules.dispatcher(8, 1) == own
    assert rules.dispatcher(1, 1) == "alltoall"
    for word in refused:
        told = [
            found for found in rules.broken(Strategy(ep=8, dp_shard=8, dispatcher=word)) if "sent by" in found.message
        ]
        assert [found.fields for found in told] == [("dispatcher",)]
        assert rules.refuses(Strategy(ep=8, dp_shard=8, dispatcher=word))


def test_an_estimate_takes_the_way_of_its_back_end_unless_it_is_said() -> None:
    asked = inside(question("qwen3-30b-a3b", "dgx-h100", 16, global_batch_size=16), software("megatron"))
    strategy = Strategy(ep=8, dp_shard=16, micro_batch_size=1, num_microbatches=1)
    own = estimate(asked, strategy, given=("ep",))
    said = estimate(asked, strategy, given=("ep", "dispatcher"))
    assert (own.chosen().dispatcher, said.chosen().dispatcher) == ("deepep", "alltoall")
    assert own.step_time_s < said.step_time_s
    forty = replace(strategy, ep=40, dp_shard=40, dispatcher="deepep")
    more = inside(question("deepseek-v2", "dgx-h100", 40, global_batch_size=40), software("megatron"))
    with pytest.raises(MeshwrightError, match="no configuration for ep=40"):
        estimate(more, forty)
