"""llm-d by KServe: an ``LLMInferenceService`` of ``serving.kserve.io/v1alpha2``, with vLLM.

The decode (or only) workload stands in ``spec`` itself, the prefill workload in ``spec.prefill``; the container takes
vLLM's words in VLLM_ADDITIONAL_ARGS (docs/samples/llmisvc of kserve/kserve).  Keys are those of the CRD at commit
aaac4e294dae2c7b1aa1886447793f3aa1c30912, config/crd/full/llmisvc.  Over several nodes ``parallelism`` and ``worker``
say how data-parallel ranks are dealt; a rank that spans nodes is not said by it.
"""

from __future__ import annotations

import shlex
from typing import Any

from planner.errors import BackEndRefused, DocumentInvalid
from planner.serving.engines.engine import Engine
from planner.serving.engines.strict import differences
from planner.serving.engines.vllm.words import flags
from planner.serving.layout import InstanceGroup
from planner.serving.platforms.platform import Files, Given, Platform, ReadGroup, Written
from planner.serving.platforms.pods import Json, container, documents, yaml_text

RELEASE = "v1alpha2"
MANIFEST = "llm-inference-service.yaml"
_IMAGE = "ghcr.io/llm-d/llm-d-cuda:v0.9.0"
_VARIABLE = "VLLM_ADDITIONAL_ARGS"
_SPREAD = {"data_parallel_size": "data", "tensor_parallel_size": "tensor", "enable_expert_parallel": "expert"}
"""Arguments that ``parallelism`` says where an instance spans nodes."""
_POD = {
    "containers": {
        "items": {"name": "str", "image": "str", "env": "list", "resources": "dict", "command": "list", "args": "list"}
    },
    "volumes": "list",
    "tolerations": "list",
    "nodeSelector": "dict",
    "affinity": "dict",
    "serviceAccountName": "str",
}
_WORKLOAD: dict[str, Any] = {
    "annotations": "dict",
    "labels": "dict",
    "kvCacheOffloading": "dict",
    "replicas": "int",
    "rolloutStrategy": "dict",
    "scaling": "dict",
    "parallelism": {
        "fields": {
            "data": "int",
            "dataLocal": "int",
            "dataRPCPort": "int",
            "expert": "bool",
            "pipeline": "int",
            "tensor": "int",
        }
    },
    "template": {"fields": _POD},
    "worker": {"fields": _POD},
}
SCHEMA: dict[str, Any] = {
    "apiVersion": ["serving.kserve.io/v1alpha2"],
    "kind": ["LLMInferenceService"],
    "metadata": "dict",
    "spec": {
        "fields": {
            **_WORKLOAD,
            "baseRefs": "list",
            "storageInitializer": "dict",
            "tracing": "dict",
            "model": {"fields": {"uri": "str", "name": "str", "lora": "dict", "confidential": "dict"}},
            "router": {"fields": {"gateway": "dict", "ingress": "dict", "route": "dict", "scheduler": "dict"}},
            "prefill": {"fields": _WORKLOAD},
        }
    },
}


def _workload(given: Given, group: InstanceGroup) -> Json:
    command, layout = given.command(group), group.layout
    told = given.arguments(group)
    del told["model"]
    parallelism: Json = {}
    if command.num_nodes > 1:
        rank = layout.num_devices // layout.attention_dp
        if given.devices_per_node % rank:
            raise BackEndRefused(
                f"an LLMInferenceService deals whole ranks to nodes; a rank has {rank} devices, a node"
                f" {given.devices_per_node}",
                where="/groups/0/layout",
                hint="use more attention_dp and less tp and pp, or deploy by dynamo",
            )
        parallelism = {word: told.pop(name) for name, word in _SPREAD.items() if name in told}
        parallelism["dataLocal"] = given.devices_per_node // rank
    environment = {**command.environment, _VARIABLE: shlex.join(flags().to_words(told))}
    pod = {"containers": [container(_IMAGE, given.devices_of_node(group), environment)]}
    return {
        "replicas": group.num_instances,
        **({"parallelism": parallelism} if parallelism else {}),
        "template": pod,
        **({"worker": pod} if parallelism else {}),
    }


def write(given: Given) -> Written:
    """One manifest."""
    *prefill, main = given.deployment.groups
    model = given.served.model
    local = model.startswith("/")
    spec: Json = {
        "model": {"uri": f"file://{model}" if local else f"hf://{model}", "name": given.name if local else model},
        **_workload(given, main),
        **({"prefill": _workload(given, prefill[0])} if prefill else {}),
        "router": {"gateway": {}, "route": {}, "scheduler": {}},
    }
    manifest = {
        "apiVersion": f"serving.kserve.io/{RELEASE}",
        "kind": "LLMInferenceService",
        "metadata": {"name": given.name},
        "spec": spec,
    }
    return Written({MANIFEST: yaml_text(manifest)}, f"kubectl apply -f {MANIFEST}")


def read(files: Files, engine: Engine) -> tuple[ReadGroup, ...]:
    """The prefill workload, where there is one, and the main one."""
    (found,) = documents(files.get(MANIFEST, ""), MANIFEST) or [{}]
    wrong = check(files)
    if wrong or "spec" not in found:
        raise DocumentInvalid(wrong[0] if wrong else f"{MANIFEST} has no spec", where=MANIFEST)
    spec = found["spec"]
    model = str(spec["model"]["uri"]).removeprefix("hf://").removeprefix("file://")
    workloads = [spec["prefill"], spec] if "prefill" in spec else [spec]
    return tuple(ReadGroup(each["replicas"], _arguments(each, model, engine)) for each in workloads)


def _arguments(workload: Json, model: str, engine: Engine) -> Json:
    variables = {each["name"]: each.get("value") for each in workload["template"]["containers"][0].get("env", ())}
    words = shlex.split(variables.get(_VARIABLE) or "")
    told = dict(engine.read_words(("vllm", "serve", model, *words), {}))
    spread = workload.get("parallelism", {})
    return {**told, **{name: spread[word] for name, word in _SPREAD.items() if word in spread}}


def check(files: Files) -> list[str]:
    """Keys and types of the manifest."""
    return [line for each in documents(files.get(MANIFEST, ""), MANIFEST) for line in differences(each, SCHEMA)]


PLATFORM = Platform("llm-d", "llm-d, KServe LLMInferenceService", RELEASE, ("vllm",), write, read, check)
