"""Triton Inference Server: a model repository whose backend is vLLM or TensorRT-LLM's LLM API.

vLLM's backend reads ``1/model.json``, fields of ``AsyncEngineArgs``; TensorRT-LLM's ``1/model.yaml``, fields of
``LlmArgs`` (triton_backend/all_models/llmapi of NVIDIA/TensorRT-LLM).  ``config.pbtxt`` is a ``ModelConfig`` of
Triton's protobuf.  A repository is one instance: each further one is a server of its own.
"""

from __future__ import annotations

import json
import re

from planner.errors import BackEndRefused, DocumentInvalid
from planner.serving.engines.engine import Engine
from planner.serving.engines.tensorrt_llm.schema import violations
from planner.serving.engines.tensorrt_llm.write import options_text
from planner.serving.layout import InstanceGroup
from planner.serving.platforms.platform import Files, Given, Platform, ReadGroup, Written
from profiles.safe_yaml import load_yaml_text

REPOSITORY = "model_repository"
SERVERS = "servers.txt"
_FILES = {"vllm": "model.json", "tensorrt-llm": "model.yaml"}
_BACKENDS = {"vllm": "vllm", "tensorrt-llm": "python"}


def _group(given: Given) -> InstanceGroup:
    group = given.deployment.groups[0]
    if given.deployment.disaggregated:
        raise BackEndRefused(
            "a Triton model repository has no prefill and decode instances",
            where="/groups",
            hint="deploy by dynamo, or plan with disaggregation never",
        )
    if group.layout.num_devices > given.devices_per_node:
        raise BackEndRefused(
            f"a Triton server has the {given.devices_per_node} devices of a node, not {group.layout.num_devices}",
            where="/groups/0/layout",
            hint="plan instances that fit into a node, or deploy by dynamo",
        )
    return group


def write(given: Given) -> Written:
    """The repository of one instance."""
    group, engine = _group(given), given.deployment.engine
    folder = f"{REPOSITORY}/{given.name}"
    told = given.arguments(group)
    text = options_text(told) if engine == "tensorrt-llm" else json.dumps(told, indent=2) + "\n"
    files = {
        f"{folder}/config.pbtxt": f'name: "{given.name}"\n{_config(engine)}',
        f"{folder}/1/{_FILES[engine]}": text,
        SERVERS: f"{group.num_instances}\n",
    }
    notes = [f"The devices of a server are those that it sees: start it with {group.layout.num_devices} visible."]
    if group.num_instances > 1:
        notes.append(f"Start {group.num_instances} servers with this repository, and a load balancer in front of them.")
    return Written(files, f"tritonserver --model-repository={REPOSITORY}", notes=tuple(notes))


def _config(engine: str) -> str:
    if engine == "vllm":
        return 'backend: "vllm"\ninstance_group [\n  {\n    count: 1\n    kind: KIND_MODEL\n  }\n]\n'
    return """backend: "python"
max_batch_size: 0
model_transaction_policy {
  decoupled: true
}
input [
  {
    name: "text_input"
    data_type: TYPE_STRING
    dims: [ 1 ]
  }
]
output [
  {
    name: "text_output"
    data_type: TYPE_STRING
    dims: [ 1 ]
  }
]
instance_group [
  {
    count: 1
    kind: KIND_CPU
  }
]
"""


def read(files: Files, engine: Engine) -> tuple[ReadGroup, ...]:
    """The one instance of the repository."""
    name = _FILES.get(engine.name, "")
    path = next((path for path in files if path.startswith(REPOSITORY) and path.endswith(f"/1/{name}")), None)
    if path is None or not name:
        raise DocumentInvalid(f"{REPOSITORY} has no {name} of {engine.title}", where=REPOSITORY)
    told = json.loads(files[path]) if engine.name == "vllm" else load_yaml_text(files[path], path)
    return (ReadGroup(int(files.get(SERVERS, "1")), told),)


def check(files: Files) -> list[str]:
    """The backend of ``config.pbtxt`` goes with the file beside it, whose keys are the engine's."""
    wrong = []
    for path, text in files.items():
        if path.endswith("/config.pbtxt"):
            backend = re.search(r'^backend: "(\w+)"$', text, re.MULTILINE)
            engine = next(
                (each for each, file in _FILES.items() if path.replace("config.pbtxt", f"1/{file}") in files), ""
            )
            if backend is None or backend.group(1) != _BACKENDS.get(engine):
                wrong.append(f"{path}: its backend does not read the file in 1/")
        if path.endswith("/1/model.yaml"):
            wrong += violations(load_yaml_text(text, path))
    return wrong


PLATFORM = Platform("triton", "Triton Inference Server", "2.73", ("vllm", "tensorrt-llm"), write, read, check)
