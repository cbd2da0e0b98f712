"""Random deployments of an engine that break none of its rules, and what is asked about them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Literal

from planner.model.builtin import builtin_model
from planner.serving.engines.engine import Asked, Engine, Served
from planner.serving.engines.facts import model_facts
from planner.serving.engines.registry import ENGINES
from planner.serving.layout import (
    Deployment,
    Formats,
    InstanceGroup,
    InstanceLayout,
    InstanceSettings,
    Speculation,
)
from planner.serving.words import EngineName, Role
from profiles.catalogue.device_files import load_device

MODELS = ("llama-3.1-70b", "deepseek-v3", "qwen3-30b-a3b")
DEVICES = ("h100-sxm5-80gb", "b200-sxm-180gb", "l40s")
NODE = 8


def asked(deployment: Deployment, group: InstanceGroup, model: str, device: str, served: Served) -> Asked:
    """What the engine's rules read of one group."""
    facts = model_facts(builtin_model(model))
    release, formats = deployment.release, deployment.formats
    return Asked(facts, load_device(device), release, formats, group, served, NODE)


def drawn_deployment(engine: EngineName, seed: int) -> tuple[Deployment, Served, str, str]:
    """A deployment that the engine takes, what it serves, the model and the device."""
    draw = random.Random(f"{engine} {seed}")
    while True:
        model, device = draw.choice(MODELS), draw.choice(DEVICES)
        formats = Formats(
            weights=draw.choice(("bf16", "bf16", "fp8", "fp8_block", "int4", "nvfp4")),
            experts=draw.choice((None, None, "mxfp4")),
            kv_cache=draw.choice(("bf16", "fp8")),
        )
        stored = draw.choice((formats.weights, "bf16"))
        served = Served(
            model=f"someone/{model}",
            weights=stored,
            experts=formats.experts if stored == formats.weights else None,
            longest_tokens=draw.choice((None, 8192)),
            num_experts=model_facts(builtin_model(model)).num_experts,
        )
        roles: tuple[Role, ...] = draw.choice((("aggregated",), ("prefill", "decode")))
        groups = tuple(_group(draw, role) for role in roles)
        if any(each.settings.speculation and each.settings.speculation.method == "eagle3" for each in groups):
            served = replace(served, draft_model="someone/draft", draft_parameters=10**9)
        deployment = Deployment(engine=engine, release=ENGINES[engine].releases[0], formats=formats, groups=groups)
        if not any(ENGINES[engine].findings(asked(deployment, each, model, device, served)) for each in groups):
            return deployment, served, model, device


def _group(draw: random.Random, role: Role) -> InstanceGroup:
    tp, ranks, cp, pp = (draw.choice(sizes) for sizes in ((1, 2, 4, 8), (1, 1, 2, 8), (1, 1, 1, 2), (1, 1, 2)))
    layout = InstanceLayout(
        tp=tp, attention_dp=ranks, cp=cp, pp=pp, ep=draw.choice((1, tp * ranks * cp)), dcp=draw.choice((1, tp))
    )
    sequences = draw.choice((None, 64, 512))
    settings = InstanceSettings(
        max_num_sequences=sequences,
        max_num_batched_tokens=draw.choice((None, 8192, 65536)),
        chunked_prefill=draw.random() < 0.8,
        memory_fraction=draw.choice((None, 0.9, 0.85)),
        cache_block_tokens=draw.choice((None, 16, 32, 64)),
        prefix_caching=draw.random() < 0.5,
        cuda_graphs=draw.random() < 0.8,
        host_cache_bytes=draw.choice((0, 0, 64 * 10**9)),
        speculation=draw.choice((None, None, _speculation(draw))),
        redundant_experts=draw.choice((0, 0, 16)),
    )
    return InstanceGroup(role=role, num_instances=draw.choice((1, 3)), layout=layout, settings=settings)


def _speculation(draw: random.Random) -> Speculation:
    methods: tuple[Literal["mtp", "eagle3", "ngram"], ...] = ("mtp", "eagle3", "ngram")
    method = draw.choice(methods)
    return Speculation(
        method=method, num_tokens=draw.choice((1, 3)), draft_parameters=10**9 if method == "eagle3" else None
    )


def every_rule(engine: Engine) -> tuple[str, ...]:
    """The ids of an engine's rules."""
    return tuple(rule.id for rule in engine.rules)
