"""The words of RL post-training: algorithms, placements, how far generation may run ahead, stages of a step."""

from __future__ import annotations

from typing import Literal, get_args

Algorithm = Literal["ppo", "grpo", "dapo", "rloo", "reinforce++", "distillation"]
Placement = Literal["colocated", "split"]
"""``colocated``: all devices generate, then all train.  ``split``: some generate while the others train."""
Synchrony = Literal["synchronous", "one_step_off", "asynchronous"]
"""``synchronous``: a step trains on samples of its own weights.  ``one_step_off``: on those of the step before, which
were generated meanwhile.  ``asynchronous``: samples are trained on as they end, up to a bound of staleness."""
Offload = Literal["nothing", "reference", "states"]
"""What a trainer keeps in host memory while it is not used: nothing, a reference's weights, or every role's state."""
Trainer = Literal["fsdp2", "megatron"]
"""Software that trains the actor: PyTorch's FSDP2 around the module of transformers, or Megatron-Core."""
Stage = Literal[
    "rollout",
    "reward",
    "old_log_prob",
    "reference_log_prob",
    "values",
    "critic_update",
    "actor_update",
    "weight_sync",
    "switch",
    "rollout_wait",
]
ENGINE_MEMORY: dict[Placement, float] = {"colocated": 0.6, "split": 0.85}
"""Part of device memory that an engine takes: beside a trainer whose context and buffers stay (NeMo-RL
``examples/configs/grpo_math_1B.yaml``: ``gpu_memory_utilization: 0.6``; verl: 0.5), and on devices of its own."""
TRAINERS: tuple[Trainer, ...] = get_args(Trainer)
STAGE_WORDS: dict[Stage, str] = {
    "rollout": "generation",
    "reward": "rewards",
    "old_log_prob": "log-probabilities of the actor",
    "reference_log_prob": "log-probabilities of the reference",
    "values": "values of the critic",
    "critic_update": "update of the critic",
    "actor_update": "update of the actor",
    "weight_sync": "new weights to the engines",
    "switch": "the trainer's state to the host and back",
    "rollout_wait": "the trainer waits for samples",
}
