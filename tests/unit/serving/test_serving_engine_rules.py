"""Rules of serving engines: each has an id of its own and something that breaks it, and says what repairs it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from planner.serving.engines.engine import Asked, Served
from planner.serving.engines.registry import ENGINES
from planner.serving.layout import Deployment, Formats, InstanceGroup, InstanceLayout, InstanceSettings, Speculation
from planner.serving.words import EngineName, Role, WeightFormat
from tests.serving_deployments import asked

DENSE, MIXTURE, LATENT = "llama-3.1-70b", "qwen3-30b-a3b", "deepseek-v3"
RULES = {rule.id: (engine, rule) for engine in ENGINES.values() for rule in engine.rules}


@dataclass(frozen=True)
class Case:
    """What breaks a rule."""

    model: str = DENSE
    layout: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    formats: dict[str, Any] = field(default_factory=dict)
    device: str = "h100-sxm5-80gb"
    role: Role = "aggregated"
    stored: WeightFormat = "bf16"
    longest: int | None = None

    def asked(self, engine: EngineName) -> Asked:
        group = InstanceGroup(
            role=self.role, layout=InstanceLayout(**self.layout), settings=InstanceSettings(**self.settings)
        )
        groups = (
            (group,)
            if self.role == "aggregated"
            else (
                group.model_copy(update={"role": "prefill"}),
                group.model_copy(update={"role": "decode"}),
            )
        )
        release = ENGINES[engine].releases[0]
        deployment = Deployment(engine=engine, release=release, formats=Formats(**self.formats), groups=groups)
        served = Served("someone/model", weights=self.stored, longest_tokens=self.longest)
        return asked(deployment, group, self.model, self.device, served)


BROKEN: dict[str, Case] = {
    "VL1": Case(device="tpu-v5p"),
    "VL2": Case(layout={"tp": 7}),
    "VL3": Case(layout={"pp": 81}),
    "VL4": Case(MIXTURE, layout={"tp": 8, "ep": 4}),
    "VL5": Case(layout={"tp": 8, "ep": 8}),
    "VL6": Case(MIXTURE, layout={"tp": 4, "attention_dp": 12, "ep": 48}),
    "VL7": Case(layout={"attention_dp": 2}),
    "VL8": Case(MIXTURE, layout={"attention_dp": 5}),
    "VL9": Case(MIXTURE, layout={"tp": 8}, formats={"weights": "fp8_block"}, stored="fp8_block"),
    "VL10": Case(layout={"tp": 8, "dcp": 2}),
    "VL11": Case(LATENT, layout={"tp": 8, "dcp": 4}, role="decode"),
    "VL12": Case(settings={"host_cache_bytes": 1 << 30}, role="prefill"),
    "VL13": Case(MIXTURE, settings={"redundant_experts": 8}),
    "VL14": Case(MIXTURE, layout={"tp": 8, "ep": 8}, settings={"expert_exchange": "deepep"}),
    "VL15": Case(MIXTURE, layout={"attention_dp": 4}, settings={"max_num_sequences": 30}),
    "VL16": Case(settings={"max_num_sequences": 512, "max_num_batched_tokens": 256}),
    "VL17": Case(settings={"chunked_prefill": False, "max_num_batched_tokens": 8192}, longest=10_000),
    "VL18": Case(device="v100-sxm2-32gb", formats={"weights": "fp8"}),
    "VL19": Case(formats={"weights": "nvfp4"}, stored="fp8", device="b200-sxm-180gb"),
    "VL20": Case(formats={"kv_cache": "nvfp4"}),
    "VL21": Case(settings={"cache_block_tokens": 7}),
    "VL22": Case(settings={"speculation": Speculation(method="mtp", num_tokens=1)}),
    "VL23": Case(layout={"tp": 4, "pp": 3}),
    "SG1": Case(device="tpu-v5p"),
    "SG2": Case(layout={"tp": 7}),
    "SG3": Case(layout={"pp": 81}),
    "SG4": Case(layout={"tp": 8, "ep": 8}),
    "SG5": Case(MIXTURE, layout={"tp": 6, "ep": 6}),
    "SG6": Case(layout={"attention_dp": 2}),
    "SG7": Case(MIXTURE, layout={"attention_dp": 5}),
    "SG8": Case(MIXTURE, layout={"tp": 8}, formats={"weights": "fp8_block"}, stored="fp8_block"),
    "SG9": Case(LATENT, layout={"tp": 4, "dcp": 2, "cp": 2}),
    "SG10": Case(MIXTURE, layout={"tp": 8, "ep": 4}, settings={"expert_exchange": "deepep"}),
    "SG11": Case(MIXTURE, settings={"redundant_experts": 8}),
    "SG12": Case(MIXTURE, layout={"attention_dp": 4}, settings={"max_num_sequences": 30}),
    "SG13": Case(settings={"max_num_batched_tokens": 1000, "cache_block_tokens": 64}),
    "SG14": Case(settings={"chunked_prefill": False, "max_num_batched_tokens": 8192}, longest=10_000),
    "SG15": Case(device="v100-sxm2-32gb", formats={"weights": "fp8"}),
    "SG16": Case(formats={"weights": "int4"}),
    "SG17": Case(MIXTURE, formats={"weights": "fp8", "experts": "bf16"}),
    "SG18": Case(formats={"kv_cache": "nvfp4"}),
    "SG19": Case(settings={"host_cache_bytes": 10**9, "prefix_caching": False}),
    "SG20": Case(settings={"speculation": Speculation(method="eagle3", num_tokens=1)}),
    "SG21": Case(layout={"pp": 2}, settings={"speculation": Speculation(method="ngram", num_tokens=1)}),
    "SG22": Case(layout={"tp": 4, "pp": 3}),
    "TR1": Case(device="mi300x"),
    "TR2": Case(MIXTURE, layout={"tp": 2, "attention_dp": 4}),
    "TR3": Case(layout={"tp": 7}),
    "TR4": Case(layout={"pp": 81}),
    "TR5": Case(LATENT, layout={"tp": 8, "dcp": 8}),
    "TR6": Case(MIXTURE, layout={"cp": 2, "ep": 2}),
    "TR7": Case(layout={"tp": 8, "ep": 8}),
    "TR8": Case(MIXTURE, layout={"attention_dp": 6, "ep": 6}),
    "TR9": Case(layout={"attention_dp": 2}),
    "TR10": Case(MIXTURE, layout={"attention_dp": 5}),
    "TR11": Case(MIXTURE, layout={"tp": 8}, formats={"weights": "fp8_block"}, stored="fp8_block"),
    "TR12": Case(MIXTURE, settings={"expert_exchange": "TRTLLM"}),
    "TR13": Case(MIXTURE, settings={"redundant_experts": 8}),
    "TR14": Case(MIXTURE, layout={"attention_dp": 4}, settings={"max_num_sequences": 30}),
    "TR15": Case(settings={"max_num_sequences": 512, "max_num_batched_tokens": 256}),
    "TR16": Case(settings={"chunked_prefill": False, "max_num_batched_tokens": 8192}, longest=10_000),
    "TR17": Case(device="a100-sxm4-80gb", formats={"weights": "fp8"}, stored="fp8"),
    "TR18": Case(formats={"weights": "fp8"}),
    "TR19": Case(formats={"kv_cache": "nvfp4"}),
    "TR20": Case(settings={"cache_block_tokens": 48}),
    "TR21": Case(settings={"max_num_batched_tokens": 8200}, role="decode"),
    "TR22": Case(settings={"speculation": Speculation(method="eagle", num_tokens=1)}),
    "TR23": Case(layout={"tp": 4, "pp": 3}),
    "VL24": Case(LATENT, layout={"tp": 4, "pp": 3, "attention_dp": 2}),
}


def test_every_rule_of_every_engine_has_an_id_of_its_own_and_a_case_that_breaks_it() -> None:
    ids = Counter(rule.id for engine in ENGINES.values() for rule in engine.rules)
    assert max(ids.values()) == 1
    assert set(ids) == set(BROKEN)


@pytest.mark.parametrize("rule_id", BROKEN)
def test_what_breaks_a_rule_is_refused_in_words_that_name_a_value(rule_id: str) -> None:
    engine, _ = RULES[rule_id]
    given = BROKEN[rule_id].asked(engine.name)
    found = {broken.id: broken for broken in engine.findings(given)}
    assert rule_id in found
    message = found[rule_id].message
    assert "\n" not in message
    assert len(message) < 240
    first = next(broken for broken in engine.findings(given)).message
    about = given.facts, given.device, given.release, given.formats, given.group
    assert engine.refusal(*about, served=given.served, devices_per_node=8) == first


@pytest.mark.parametrize("engine", ENGINES)
def test_a_plain_instance_breaks_no_rule(engine: EngineName) -> None:
    for model in (DENSE, MIXTURE, LATENT):
        assert ENGINES[engine].findings(Case(model, layout={"tp": 8}).asked(engine)) == []
