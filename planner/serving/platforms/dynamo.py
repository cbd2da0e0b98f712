"""NVIDIA Dynamo: a ``DynamoGraphDeployment`` of ``nvidia.com/v1beta1`` with a frontend and a component a group.

Components carry a pod template each (deploy/operator/config/crd/bases of ai-dynamo/dynamo; templates in the wheel
ai-dynamo 1.6.1, dynamo/profiler/templates/dgd).  Over several nodes ``multinode.nodeCount`` is said and the operator
adds the engine's words for nodes.  Dynamo 1.6.1 brings vLLM 0.31.0, SGLang 0.5.21 and TensorRT-LLM 1.3.0rc29.
"""

from __future__ import annotations

from typing import Any

from planner.errors import DocumentInvalid
from planner.serving.engines.engine import SIDE, Engine
from planner.serving.engines.strict import differences
from planner.serving.layout import InstanceGroup
from planner.serving.platforms.platform import Files, Given, Platform, ReadGroup, Written
from planner.serving.platforms.pods import SIDE_PORT, Json, container, documents, yaml_text
from planner.serving.words import EngineName, Role

RELEASE = "1.6.1"
MANIFEST = "dynamo.yaml"
_MODULES: dict[EngineName, tuple[str, str]] = {
    "vllm": ("dynamo.vllm", "vllm-runtime"),
    "sglang": ("dynamo.sglang", "sglang-runtime"),
    "tensorrt-llm": ("dynamo.trtllm", "tensorrtllm-runtime"),
}
_TYPES: dict[Role, str] = {"aggregated": "worker", "prefill": "prefill", "decode": "decode"}
_PLACES = ("--nnodes", "--node-rank", "--master-addr", "--master-port", "--dist-init-addr", "--host", "--port")
_OPTIONS = "/options"
_CONTAINER = {
    "name": "str",
    "image": "str",
    "command": "list",
    "args": "list",
    "env": "list",
    "envFrom": "list",
    "resources": "dict",
    "workingDir": "str",
    "volumeMounts": "list",
    "ports": "list",
}
SCHEMA: dict[str, Any] = {
    "apiVersion": ["nvidia.com/v1beta1"],
    "kind": ["DynamoGraphDeployment"],
    "metadata": "dict",
    "spec": {
        "fields": {
            "annotations": "dict",
            "labels": "dict",
            "backendFramework": ["vllm", "sglang", "trtllm"],
            "env": "list",
            "experimental": "dict",
            "restart": "dict",
            "components": {
                "items": {
                    "name": "str",
                    "type": ["frontend", "worker", "prefill", "decode", "planner", "epp"],
                    "replicas": "int",
                    "multinode": {"fields": {"nodeCount": "int"}},
                    "sharedMemorySize": "str",
                    "podTemplate": {
                        "fields": {
                            "metadata": "dict",
                            "spec": {
                                "fields": {
                                    "containers": {"items": _CONTAINER},
                                    "volumes": "list",
                                    "tolerations": "list",
                                    "nodeSelector": "dict",
                                    "affinity": "dict",
                                }
                            },
                        }
                    },
                }
            },
        }
    },
}
"""What is written and read of the CRD; other keys of it are refused, as other keys are by the API server."""


def _component(given: Given, group: InstanceGroup) -> Json:
    module, image = _MODULES[given.deployment.engine]
    command = given.command(group)
    words = [str(SIDE_PORT) if word == SIDE else word for word in _told(given, group)]
    more: Json = {
        "command": ["python3", "-m", module],
        "args": words,
        "envFrom": [{"secretRef": {"name": "hf-token-secret"}}],
    }
    pod: Json = {}
    if command.files:
        more["volumeMounts"] = [{"name": "options", "mountPath": _OPTIONS}]
        pod["volumes"] = [{"name": "options", "configMap": {"name": f"{given.name}-options"}}]
    image = f"nvcr.io/nvidia/ai-dynamo/{image}:{RELEASE}"
    return {
        "name": group.role if group.role != "aggregated" else "worker",
        "type": _TYPES[group.role],
        "replicas": group.num_instances,
        **({"multinode": {"nodeCount": command.num_nodes}} if command.num_nodes > 1 else {}),
        "sharedMemorySize": "16Gi",
        "podTemplate": {
            "spec": {"containers": [container(image, given.devices_of_node(group), command.environment, **more)], **pod}
        },
    }


def _told(given: Given, group: InstanceGroup) -> list[str]:
    """The engine's words as Dynamo's worker takes them."""
    command = given.command(group)
    engine = given.deployment.engine
    mode = [] if group.role == "aggregated" else ["--disaggregation-mode", group.role]
    if engine == "tensorrt-llm":
        (file,) = command.files
        return ["--model-path", given.served.model, "--extra-engine-args", f"{_OPTIONS}/{file}", *mode]
    words = list(command.words[3:])
    for place in _PLACES:
        if place in words:
            at = words.index(place)
            del words[at : at + 2]
    return ["--model", given.served.model, *words, *mode] if engine == "vllm" else words


def write(given: Given) -> Written:
    """One manifest; with TensorRT-LLM its options stand in a ConfigMap before it."""
    engine = given.deployment.engine
    image = f"nvcr.io/nvidia/ai-dynamo/{_MODULES[engine][1]}:{RELEASE}"
    frontend = {"name": "main", "image": image, "command": ["python3"], "args": ["-m", "dynamo.frontend"]}
    graph: Json = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": given.name},
        "spec": {
            "backendFramework": "trtllm" if engine == "tensorrt-llm" else engine,
            "components": [
                {
                    "name": "Frontend",
                    "type": "frontend",
                    "replicas": 1,
                    "podTemplate": {"spec": {"containers": [frontend]}},
                },
                *(_component(given, group) for group in given.deployment.groups),
            ],
        },
    }
    options = {name: text for group in given.deployment.groups for name, text in given.command(group).files.items()}
    maps = []
    if options:
        maps = [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{given.name}-options"}, "data": options}
        ]
    notes: tuple[str, ...] = (
        "The manifest names the secret hf-token-secret for Hugging Face; make it, or take envFrom out.",
    )
    if engine != "tensorrt-llm":
        notes += (
            f"The image of Dynamo {RELEASE} has an older release of the engine than the flags were checked with.",
        )
    return Written({MANIFEST: yaml_text(*maps, graph)}, f"kubectl apply -f {MANIFEST}", notes=notes)


def read(files: Files, engine: Engine) -> tuple[ReadGroup, ...]:
    """Every component that is no frontend."""
    found = documents(files.get(MANIFEST, ""), MANIFEST)
    graphs = [each for each in found if each.get("kind") == "DynamoGraphDeployment"]
    if len(graphs) != 1:
        raise DocumentInvalid(f"{MANIFEST} has no DynamoGraphDeployment", where=MANIFEST)
    options = {name: text for each in found for name, text in (each.get("data") or {}).items()}
    groups = []
    for component in graphs[0]["spec"]["components"]:
        if component["type"] != "frontend":
            words = _words(engine.name, component["podTemplate"]["spec"]["containers"][0]["args"])
            groups.append(ReadGroup(component["replicas"], engine.read_words(words, options)))
    return tuple(groups)


def _words(engine: EngineName, given: list[str]) -> list[str]:
    words = [str(word) for word in given]
    if engine != "sglang" and "--disaggregation-mode" in words:
        at = words.index("--disaggregation-mode")
        del words[at : at + 2]
    if engine == "sglang":
        return ["python", "-m", "sglang.launch_server", *words]
    if engine == "vllm":
        return ["vllm", "serve", words[words.index("--model") + 1], *words[2:]]
    told = dict(zip(words[::2], words[1::2], strict=True))
    file = told["--extra-engine-args"].removeprefix(f"{_OPTIONS}/")
    return ["trtllm-serve", "serve", told["--model-path"], "--extra_llm_api_options", file]


def check(files: Files) -> list[str]:
    """Keys and types of the manifest, unique names, and node counts that mean something."""
    wrong: list[str] = []
    for each in documents(files.get(MANIFEST, ""), MANIFEST):
        if each.get("kind") != "DynamoGraphDeployment":
            continue
        wrong += differences(each, SCHEMA)
        components = (each.get("spec") or {}).get("components") or []
        names = [component.get("name") for component in components]
        wrong += [f"/spec/components: {name} is there twice" for name in set(names) if names.count(name) > 1]
        counts = [(component.get("multinode") or {}).get("nodeCount", 2) for component in components]
        wrong += ["/spec/components: multinode.nodeCount is at least 2" for count in counts if count < 2]
    return wrong


PLATFORM = Platform("dynamo", "NVIDIA Dynamo", RELEASE, ("vllm", "sglang", "tensorrt-llm"), write, read, check)
