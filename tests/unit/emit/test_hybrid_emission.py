"""Models with other token mixers than attention, from a plan to files and back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from planner.backends.deepspeed.hybrid_config import HYBRID_WRITERS
from planner.backends.deepspeed.model_config import model_config, why_not_buildable
from planner.backends.emission.layout import layout_of
from planner.backends.megatron.arguments import Words
from planner.backends.megatron.flags import sections
from planner.backends.megatron.read import read_back
from planner.backends.megatron.token_mixers import PATTERN, parse_pattern, pattern, way
from planner.backends.megatron.write import train_script
from planner.backends.megatron_bridge.overrides import OVERRIDES_FILE, parse_overrides
from planner.backends.megatron_bridge.read import read_back as read_bridge
from planner.backends.megatron_bridge.write import RECIPE_FILE
from planner.backends.registry import backend
from planner.backends.rules.rule import RuleInput, rule_input
from planner.backends.rules.token_mixers import beyond_attention, runs_along_sequence
from planner.errors import BackEndRefused
from planner.model.builtin import builtin_model
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.hybrid_models import CONFIGS, hybrid
from tests.plan_factory import make_model, make_plan

PIPELINE = Strategy(pp=2, dp_shard=2, num_microbatches=4)


def _plan(family: str, strategy: Strategy = PIPELINE, layers: tuple[int, ...] | None = None) -> Plan:
    model = hybrid(family).model_copy(update={"mtp": None})
    return make_plan(strategy, model=model, layers_per_chunk=layers)


def _flags(family: str) -> dict[str, Words]:
    return {flag: words for section in sections(_plan(family)) for flag, words in section.arguments.items()}


def test_gated_delta_net_is_said_layer_by_layer() -> None:
    flags = _flags("qwen3_next")
    assert flags["--experimental-attention-variant"] == ("gated_delta_net",)
    assert flags["--linear-attention-freq"] == ("[1,1,1,0,1,1,1,0]",)
    assert (flags["--linear-num-key-heads"], flags["--linear-num-value-heads"]) == (("4",), ("8",))
    assert {"--attention-output-gate", "--qk-layernorm"} <= set(flags)
    # The attention's own heads, not those of the first layer's mixer.
    assert (flags["--num-attention-heads"], flags["--kv-channels"]) == (("8",), ("64",))


def test_an_indexer_is_said_beside_latent_attention() -> None:
    flags = _flags("deepseek_v32")
    assert flags["--experimental-attention-variant"] == ("dsa",)
    assert flags["--dsa-indexer-topk"] == ("128",)
    assert {"--multi-latent-attention", "--no-rope-fusion"} <= set(flags)


@pytest.mark.parametrize(("layers", "text"), [((4, 4), "MEM*|-MEM"), ((3, 5), "MEM|*-MEM")])
def test_a_hybrid_pattern_holds_the_split(layers: tuple[int, ...], text: str) -> None:
    plan = _plan("nemotron_h", layers=layers)
    flags = {flag: words for section in sections(plan) for flag, words in section.arguments.items()}
    assert flags[PATTERN] == (text,)
    assert not {"--pipeline-model-parallel-layout", "--num-virtual-stages-per-pipeline-rank"} & set(flags)
    assert tuple(chunk.num_layers for chunk in parse_pattern(text)) == layers
    assert "pretrain_hybrid.py" in train_script(plan)
    assert "pretrain_gpt.py" not in train_script(plan)
    assert flags["--mamba-num-groups"] == ("4",)


@pytest.mark.parametrize("family", ["qwen3_next", "nemotron_h", "deepseek_v32"])
def test_what_megatron_is_told_reads_back_as_the_plan(family: str) -> None:
    plan = _plan(family, layers=(3, 5) if family != "deepseek_v32" else (1, 3))
    strategy, layout = read_back(emitter("megatron")(plan, "torchrun").files)
    assert strategy == plan.chosen()
    assert [stage.chunks for stage in layout] == [stage.chunks for stage in layout_of(plan)]


def test_a_pattern_of_more_chunks_than_ranks() -> None:
    model = hybrid("nemotron_h")
    strategy = replace(PIPELINE, vpp=2, schedule="interleaved")
    plan = make_plan(strategy, model=model, layers_per_chunk=(2, 2, 2, 2))
    chunks = sorted((chunk for stage in layout_of(plan) for chunk in stage.chunks), key=lambda chunk: chunk.chunk)
    assert pattern(model, chunks) == "ME|M*|-M|EM"


@pytest.mark.parametrize("family", sorted({*HYBRID_WRITERS} & {*CONFIGS}))
def test_a_written_config_builds_the_same_model(family: str) -> None:
    model = hybrid(family).model_copy(update={"mtp": None})
    assert why_not_buildable(model) is None
    assert json.loads(json.dumps(model_config(model)))["model_type"] == family


@pytest.mark.parametrize("name", ["qwen3-next-80b-a3b", "deepseek-v3.2", "nemotron-h-8b", "kimi-linear-48b-a3b"])
def test_built_in_hybrids_have_a_config(name: str) -> None:
    assert why_not_buildable(builtin_model(name).model_copy(update={"mtp": None})) is None


@pytest.mark.parametrize("family", CONFIGS)
@pytest.mark.parametrize("room", ["torchtitan", "native", "maxtext", "mindspeed"])
def test_back_ends_without_these_mixers_say_so(room: str, family: str) -> None:
    model = hybrid(family)
    given = RuleInput(Strategy(), model, Workload(global_batch_size=8, sequence_length=4096), architecture="hopper")
    table = backend(room).releases[-1].space.rules
    assert [rule for rule in table.model_rules if rule.check(given) is not None]


BRIDGE = {
    "qwen3_next": ("GPTModelProvider", {"model.linear_attention_freq": "[1,1,1,0,1,1,1,0]"}),
    "nemotron_h": ("HybridModelProvider", {"model.hybrid_layer_pattern": "MEM|*-MEM"}),
    "deepseek_v32": ("MLAModelProvider", {"model.dsa_indexer_topk": "128", "model.apply_rope_fusion": "false"}),
}


@pytest.mark.parametrize("family", CONFIGS)
def test_bridge_writes_what_it_has_a_provider_of(family: str) -> None:
    plan = _plan(family, layers=(3, 5) if family in ("qwen3_next", "nemotron_h") else None)
    if family not in BRIDGE:
        with pytest.raises(BackEndRefused, match=r"megatron-bridge\.M20|megatron-bridge\.M11"):
            emitter("megatron-bridge")(plan, "torchrun")
        return
    provider, said = BRIDGE[family]
    files = emitter("megatron-bridge")(plan, "torchrun").files
    compile(files[RECIPE_FILE], RECIPE_FILE, "exec")
    assert f"\nPROVIDER = {provider}\n" in files[RECIPE_FILE]
    assert ("LAYERS = " in files[RECIPE_FILE]) == (provider != "HybridModelProvider")
    overrides, _ = parse_overrides(files[OVERRIDES_FILE])
    assert {path: overrides[path] for path in said} == said
    strategy, layout = read_bridge(files)
    assert strategy == plan.chosen()
    assert [stage.chunks for stage in layout] == [stage.chunks for stage in layout_of(plan)]


def test_bridge_has_no_virtual_stages_of_a_pattern() -> None:
    strategy = replace(PIPELINE, vpp=2, schedule="interleaved")
    rules = backend("megatron-bridge").releases[-1].space.rules
    for family, broken in (("nemotron_h", True), ("qwen3_next", False)):
        found = rules.violations(rule_input(_plan(family, strategy)))
        assert ("megatron-bridge.X3" in {finding.rule for finding in found}) == broken


def test_plain_models_have_nothing_beyond_attention() -> None:
    assert beyond_attention(make_model()) is None
    assert runs_along_sequence(make_model()) is None
    assert way(make_model()) == "gpt"
    assert runs_along_sequence(hybrid("deepseek_v32")) is None
    assert runs_along_sequence(hybrid("falcon_h1")) == "Mamba-2"
