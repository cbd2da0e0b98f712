"""A launch of verl: what of a deployment and its question verl's configuration says.

``launch_of`` refuses what it cannot say, with the reason.  verl's own checks miss some of this (a tensor parallelism of
the engines that does not divide their devices, Ulysses over more ranks than heads), so it is checked here.
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from planner.errors import DocumentInvalid
from planner.rl.deployment import RlDeployment
from planner.rl.predict.trainer import longest_sample
from planner.rl.problem import RlProblem
from planner.rl.words import ENGINE_MEMORY, Algorithm, Offload, Placement, Synchrony, Trainer
from planner.serving.engines.vllm.behaviour import BEHAVIOUR
from profiles.document import Document

RELEASE = "0.9.1"
Estimator = Literal["gae", "grpo", "rloo", "reinforce_plus_plus"]
ESTIMATORS: dict[Algorithm, Estimator] = {
    "ppo": "gae",
    "grpo": "grpo",
    "dapo": "grpo",
    "rloo": "rloo",
    "reinforce++": "reinforce_plus_plus",
}
"""``algorithm.adv_estimator`` (verl/trainer/ppo/core_algos.py: AdvantageEstimator)."""

_MOST_VERSIONS = 8
"""``trainer.v1.sampler.max_off_policy_threshold`` of verl (verl/trainer/config/ppo_trainer.yaml)."""


class VerlLaunch(Document):
    """One launch in verl's words."""

    estimator: Estimator
    dapo: bool = Field(description="clip higher, no reference, token mean: what DAPO adds to GRPO")
    model_path: str = Field(min_length=1)
    placement: Placement
    synchrony: Synchrony
    off_policy_versions: int = Field(
        ge=0,
        description="split: model versions that a trained sample may span, the trainer's own among them; 0 = colocated",
    )
    warm_up: float = Field(default=0.0, ge=0, description="split: steps of prompts that are started before the first")
    prompts: int
    samples_per_prompt: int
    mini_batch_prompts: int
    epochs: int
    longest_prompt: int
    longest_response: int
    reference: bool
    old_log_prob: bool
    turns: int = 1
    trainer: Trainer
    trainer_nodes: int
    trainer_devices_per_node: int
    offload: Offload
    tp: int = 1
    pp: int = 1
    vpp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    sp: bool = False
    first_layers: int = Field(default=0, description="layers of the first stage where they are others; 0 = as all")
    last_layers: int = 0
    shard: int = Field(description="FSDP: devices that share parameters; Megatron: 0")
    recompute: Literal["none", "selective", "full"]
    tokens_per_device: int = Field(description="of a micro-batch")
    engine: Literal["vllm", "sglang"]
    rollout_nodes: int = Field(description="split: nodes of the engines; 0 = the trainer's")
    rollout_devices_per_node: int
    rollout_tp: int
    rollout_ep: int
    memory_fraction: float
    max_num_sequences: int
    weights_by: Literal["naive", "nccl", "nixl"]


def launch_of(problem: RlProblem, deployment: RlDeployment, model_path: str) -> VerlLaunch:
    """The launch of a deployment.  Raises DocumentInvalid with what verl cannot say."""
    _check(problem, deployment)
    strategy, pool = deployment.trainer.strategy, problem.cluster.pools[0]
    group, split = deployment.rollout, deployment.placement == "split"
    node = pool.devices_per_node
    fsdp, ends = deployment.trainer.trainer == "fsdp2", _ends(deployment.trainer.stage_layers)
    trainer_nodes, trainer_each = _nodes(deployment.trainer.num_devices, node)
    rollout_nodes, rollout_each = _nodes(group.num_devices, node) if split else (0, trainer_each)
    lengths = problem.prompt_tokens.lengths(512)
    longest_prompt = math.ceil(max(lengths))
    longest = problem.longest_response or math.ceil(max(problem.response_tokens.lengths(4096)))
    tokens = longest_sample(problem) * strategy["micro_batch_size"]
    ahead = {"synchronous": 0.0, "one_step_off": 1.0, "asynchronous": problem.staleness}[deployment.synchrony]
    limits = BEHAVIOUR.limits(pool.device.memory_bytes)
    return VerlLaunch(
        estimator=ESTIMATORS[problem.algorithm],
        dapo=problem.algorithm == "dapo",
        model_path=model_path,
        placement=deployment.placement,
        synchrony=deployment.synchrony,
        off_policy_versions=_versions(deployment.synchrony, ahead),
        warm_up=ahead,
        prompts=problem.prompts,
        samples_per_prompt=problem.samples_per_prompt,
        mini_batch_prompts=problem.prompts // problem.mini_batches,
        epochs=problem.epochs,
        longest_prompt=longest_prompt,
        longest_response=longest,
        reference=problem.has_reference,
        old_log_prob=problem.old_log_prob,
        turns=1 if problem.turns is None else round(problem.turns.mean),
        trainer=deployment.trainer.trainer,
        trainer_nodes=trainer_nodes,
        trainer_devices_per_node=trainer_each,
        offload=deployment.offload,
        tp=strategy["tp"],
        pp=strategy["pp"],
        vpp=strategy["vpp"],
        cp=strategy["cp"],
        ep=strategy["ep"],
        etp=strategy["etp"] if strategy["ep"] > 1 else 1,
        sp=strategy["sp"],
        first_layers=ends[0],
        last_layers=ends[1],
        shard=strategy["dp_shard"] * strategy["cp"] if fsdp else 0,
        recompute=strategy["recompute"],
        tokens_per_device=math.ceil(max(longest_prompt + longest, tokens) / strategy["cp"]),
        engine="sglang" if deployment.engine == "sglang" else "vllm",
        rollout_nodes=rollout_nodes,
        rollout_devices_per_node=rollout_each,
        rollout_tp=group.layout.tp,
        rollout_ep=group.layout.ep,
        memory_fraction=group.settings.memory_fraction or ENGINE_MEMORY[deployment.placement],
        max_num_sequences=group.settings.max_num_sequences or limits.max_num_sequences,
        weights_by="naive" if not split else ("nixl" if deployment.weight_sync == "sharded" else "nccl"),
    )


def _versions(synchrony: Synchrony, ahead: float) -> int:
    """Versions of the model that a sample may span (verl/trainer/ppo/v1/replay_buffer.py: steps since its start + 1).

    One step off waits for samples of the step before, which span two.  Asynchronous samples go on under new weights for
    as long as they take: what bounds them is how many are started; verl's own limit drops those that span more.
    """
    if synchrony == "synchronous":
        return 0
    return 2 if synchrony == "one_step_off" else max(_MOST_VERSIONS, 1 + math.ceil(ahead))


def _nodes(devices: int, node: int) -> tuple[int, int]:
    """Nodes, and devices of each.  Raises DocumentInvalid for a part of a node behind whole ones."""
    if devices > node and devices % node:
        _refuse(f"a side has whole nodes: {devices} devices are not nodes of {node}", "devices")
    return (devices // node, node) if devices >= node else (1, devices)


def _check(problem: RlProblem, deployment: RlDeployment) -> None:
    """Raises DocumentInvalid for what verl cannot say or run."""
    strategy, layout = deployment.trainer.strategy, deployment.rollout.layout
    if problem.algorithm not in ESTIMATORS:
        _refuse(f"{problem.algorithm} needs a teacher, which has no place in a question", "algorithm")
    if problem.prompts % problem.mini_batches:
        _refuse(
            f"a mini-batch is whole prompts: {problem.mini_batches} mini-batches do not divide {problem.prompts}",
            "mini_batches",
        )
    _check_roles(problem, deployment)
    if layout.pp > 1:
        _refuse("verl's engines have no pipeline (rollout.pipeline_model_parallel_size > 1 is not implemented)", "pp")
    if layout.ep not in (1, layout.tp * layout.attention_dp):
        _refuse("expert parallelism of verl's engines is 1 or all devices of an instance", "ep")
    if strategy["recompute"] == "selective" and deployment.trainer.trainer == "fsdp2":
        _refuse("FSDP2 in verl checkpoints every layer or none", "recompute")
    if strategy.get("optimizer_offload") or strategy.get("activation_offload"):
        _refuse("a trainer that offloads within a step is not said in verl's words here", "strategy")
    if deployment.placement == "split" and deployment.synchrony == "synchronous":
        _refuse("verl splits devices for asynchronous steps only (trainer.v1.trainer_mode=separate_async)", "synchrony")
    if problem.over_sampling > 1:
        _refuse("over-sampling in verl 0.9.1 is SGLang's synchronous rollout's alone", "over_sampling")


def _check_roles(problem: RlProblem, deployment: RlDeployment) -> None:
    """Raises DocumentInvalid for roles beside the actor that a launch would leave out or run otherwise."""
    if problem.critic is not None and problem.critic != problem.actor:
        _refuse("a critic has the actor's weights and layout here, not another model's", "critic")
    if problem.reward.kind == "model":
        _refuse("a reward model is not said in verl's words here", "reward")
    if deployment.synchrony == "asynchronous" and not problem.constraints.partial_rollout:
        _refuse("separate_async lets running samples go on under new weights", "constraints/partial_rollout")


def _ends(layers: tuple[int, ...]) -> tuple[int, int]:
    """Layers of the first and the last stage where they differ from those between, which are all alike.

    Raises DocumentInvalid for any other dealing.
    """
    if len(set(layers)) <= 1:
        return 0, 0
    if len(layers) == 2:  # what the first one leaves
        return layers[0], 0
    between = layers[1:-1]
    if len(set(between)) > 1:
        _refuse(f"layers {'+'.join(map(str, layers))}: only the ends of a pipeline may have others", "stage_layers")
    first, last = layers[0], layers[-1]
    return (0 if first == between[0] else first), (0 if last == between[0] else last)


def _refuse(what: str, where: str) -> None:
    raise DocumentInvalid(f"verl: {what}", where=f"/{where}", hint="change it, or write no files for verl")
