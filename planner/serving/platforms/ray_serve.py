"""Ray Serve LLM: a config file of ``serve run`` whose application is built from ``LLMConfig``s, with vLLM.

``ray.serve.llm:build_openai_app`` takes ``llm_configs``; ``build_pd_openai_app`` takes ``prefill_config`` and
``decode_config`` (ray 2.60.0, ray/llm/_internal/serve).  Ray places the ranks of an instance itself, over nodes too.
"""

from __future__ import annotations

from typing import Any

from planner.errors import BackEndRefused, DocumentInvalid
from planner.serving.engines.engine import Engine
from planner.serving.engines.strict import differences
from planner.serving.layout import InstanceGroup
from planner.serving.platforms.platform import Files, Given, Platform, ReadGroup, Written
from planner.serving.platforms.pods import Json, documents, yaml_text

RELEASE = "2.60.0"
CONFIG = "serve.yaml"
TOGETHER, APART = "ray.serve.llm:build_openai_app", "ray.serve.llm:build_pd_openai_app"
_LLM: dict[str, Any] = {
    "model_loading_config": {"fields": {"model_id": "str", "model_source": "any", "tokenizer_source": "str?"}},
    "llm_engine": ["vLLM"],
    "engine_kwargs": "dict",
    "accelerator_type": "str?",
    "accelerator_config": "dict?",
    "placement_group_config": "dict?",
    "lora_config": "dict?",
    "deployment_config": "dict",
    "runtime_env": "dict?",
    "server_cls": "any",
    "experimental_configs": "dict",
    "log_engine_metrics": "bool",
    "callback_config": "dict",
}
SCHEMA: dict[str, Any] = {
    "proxy_location": ["Disabled", "HeadOnly", "EveryNode"],
    "http_options": "dict",
    "logging_config": "dict",
    "applications": {
        "items": {
            "name": "str",
            "route_prefix": "str?",
            "import_path": [TOGETHER, APART],
            "runtime_env": "dict",
            "args": {
                "fields": {
                    "llm_configs": {"items": _LLM},
                    "prefill_config": {"fields": _LLM},
                    "decode_config": {"fields": _LLM},
                }
            },
        }
    },
}
"""Keys of ``ServeDeploySchema`` and of ``LLMConfig`` (ray/llm/_internal/serve/core/configs/llm_config.py:152)."""


def _config(given: Given, group: InstanceGroup) -> Json:
    if group.layout.attention_dp > 1:
        raise BackEndRefused(
            "these Ray Serve applications start one rank an instance, not attention_dp of them",
            where="/groups/0/layout/attention_dp",
            hint="plan with attention_dp = 1, or deploy by dynamo or plain",
        )
    told = given.arguments(group)
    model = told.pop("model")
    return {
        "model_loading_config": {"model_id": given.name, "model_source": model},
        "llm_engine": "vLLM",
        "engine_kwargs": told,
        "deployment_config": {"num_replicas": group.num_instances},
    }


def write(given: Given) -> Written:
    """The config file of the application."""
    configs = [_config(given, group) for group in given.deployment.groups]
    apart = given.deployment.disaggregated
    told: Json = {"prefill_config": configs[0], "decode_config": configs[1]} if apart else {"llm_configs": configs}
    application = {"name": given.name, "route_prefix": "/", "import_path": APART if apart else TOGETHER, "args": told}
    return Written({CONFIG: yaml_text({"applications": [application]})}, f"serve run {CONFIG}")


def read(files: Files, engine: Engine) -> tuple[ReadGroup, ...]:
    """The configurations of the one application."""
    (found,) = documents(files.get(CONFIG, ""), CONFIG) or [{}]
    wrong = check(files)
    if wrong or len(found.get("applications", ())) != 1:
        raise DocumentInvalid(wrong[0] if wrong else f"{CONFIG} has no single application", where=CONFIG)
    told = found["applications"][0]["args"]
    configs = told.get("llm_configs") or [told["prefill_config"], told["decode_config"]]
    return tuple(
        ReadGroup(
            each["deployment_config"]["num_replicas"],
            {"model": each["model_loading_config"]["model_source"], **each["engine_kwargs"]},
        )
        for each in configs
    )


def check(files: Files) -> list[str]:
    """Keys and types of the file."""
    return [line for each in documents(files.get(CONFIG, ""), CONFIG) for line in differences(each, SCHEMA)]


PLATFORM = Platform("ray-serve", "Ray Serve LLM", RELEASE, ("vllm",), write, read, check)
