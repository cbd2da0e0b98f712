"""An engine: its releases, what each can express, how it schedules and reserves memory, and its files.

A room ``planner/serving/engines/<name>/`` holds one engine, and its ``ENGINE`` is what a reader sees first:

    space.py       what it can express: small rules over a group's layout, formats and settings
    behaviour.py   how its scheduler fills an iteration, what it reserves, what it costs beside kernels (``behaviours``)
    write.py       deployment -> its arguments and launch words      read.py    arguments and words -> deployment
    validator.py   its own parser, asked in a process of its own     flags_*.json   the flags that this parser has
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.serving.engines.facts import ModelFacts
from planner.serving.layout import Deployment, Formats, InstanceGroup
from planner.serving.words import EngineName, WeightFormat
from profiles.device import Device

HEAD, RANK, PORT, OWN, SIDE = "$HEAD_ADDRESS", "$NODE_RANK", "$PORT", "$OWN_ADDRESS", "$SIDE_PORT"
"""What stands in launch words for what only the start of an instance knows: the address of its first node, the number
of the node in the instance, the port that answers requests, the node's own address, the first of the ports by which
prefill and decode instances find each other."""
DRAFTED = ("eagle", "eagle3", "draft_model")
"""Methods of speculation whose draft has weights of its own."""
Arguments = dict[str, Any]
"""An engine's arguments by the names that its own configuration class has; values as JSON has them."""


@dataclass(frozen=True, slots=True)
class Served:
    """What is served, and what an engine is told besides the deployment."""

    model: str
    """Hugging Face name or a path that every node has."""
    weights: WeightFormat = "bf16"
    """How the checkpoint stores dense weights."""
    experts: WeightFormat | None = None
    """... and experts; none = the same."""
    longest_tokens: int | None = None
    """Input and output of the longest request; none = what the model can."""
    draft_model: str | None = None
    draft_parameters: int | None = None
    num_experts: int = 0
    """Routed experts of a layer: TensorRT-LLM is told places for experts, not how many of them are copies."""

    @property
    def of_experts(self) -> WeightFormat:
        """How the checkpoint stores experts."""
        return self.experts or self.weights


@dataclass(frozen=True, slots=True)
class Asked:
    """What a rule reads: one group of a deployment on one kind of device.

    ``served`` and ``devices_per_node`` are none and 0 while they are not known; rules about them are then silent.
    """

    facts: ModelFacts
    device: Device
    release: str
    formats: Formats
    group: InstanceGroup
    served: Served | None = None
    devices_per_node: int = 0


@dataclass(frozen=True, slots=True)
class EngineRule:
    """One rule: ``check`` says what is wrong and what repairs it, or None.  ``fields``: the first to blame first."""

    id: str
    fields: tuple[str, ...]
    source: str
    check: Callable[[Asked], str | None]


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that a group breaks."""

    id: str
    fields: tuple[str, ...]
    message: str
    source: str


@dataclass(frozen=True, slots=True)
class InstanceCommand:
    """How one instance is started: words for each of its nodes, with ``HEAD``, ``RANK``, ... in them.

    ``further_nodes``: more words for all nodes but the first.  ``tasks_per_node``: processes that the launcher starts
    on a node with the same words (1 = the engine starts its own ranks).  ``files``: what the words name, by file name.
    """

    words: tuple[str, ...]
    num_nodes: int = 1
    further_nodes: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    tasks_per_node: int = 1
    files: Mapping[str, str] = field(default_factory=dict)

    def of_node(self, rank: int, head: str = "127.0.0.1", port: int = 8000) -> tuple[str, ...]:
        """The words of node ``rank`` as a process gets them."""
        given = {HEAD: head, RANK: str(rank), PORT: str(port), OWN: head, SIDE: str(port + 1000)}
        words = self.words if rank == 0 else (*self.words, *self.further_nodes)
        return tuple(_filled(word, given) for word in words)


def _filled(word: str, given: Mapping[str, str]) -> str:
    for name, value in given.items():
        word = word.replace(name, value)
    return word


@dataclass(frozen=True, slots=True)
class ReadInstance:
    """One instance as its launch words, or arguments, say it.

    ``unread``: arguments that the engine has and that no part of a deployment stands for; they are kept by nobody.
    """

    group: InstanceGroup
    formats: Formats
    served: Served
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine."""

    name: EngineName
    title: str
    releases: tuple[str, ...]
    """The first is the pinned one."""
    rules: tuple[EngineRule, ...]
    arguments: Callable[[Deployment, InstanceGroup, Served], Arguments]
    """The arguments of one instance of the group, those of nodes and addresses left out.  Raises BackEndRefused."""
    command: Callable[[Deployment, InstanceGroup, Served, int], InstanceCommand]
    """The launch of one instance; the last argument is the number of devices of a node.  Raises BackEndRefused."""
    read_arguments: Callable[[Mapping[str, Any], Served], ReadInstance]
    """The inverse of ``arguments``; ``Served`` says how the checkpoint is stored.  Raises DocumentInvalid."""
    read_words: Callable[[Sequence[str], Mapping[str, str]], Arguments]
    """Launch words, and the files that they name, as arguments.  Raises DocumentInvalid."""

    def findings(self, asked: Asked) -> list[BrokenRule]:
        """Every rule that the group breaks."""
        said = ((rule, rule.check(asked)) for rule in self.rules)
        return [BrokenRule(rule.id, rule.fields, message, rule.source) for rule, message in said if message is not None]

    def refusal(
        self,
        facts: ModelFacts,
        device: Device,
        release: str,
        formats: Formats,
        group: InstanceGroup,
        *,
        served: Served | None = None,
        devices_per_node: int = 0,
    ) -> str | None:
        """What the first broken rule says, or None; made for being asked of thousands of groups."""
        asked = Asked(facts, device, release, formats, group, served, devices_per_node)
        for rule in self.rules:
            message = rule.check(asked)
            if message is not None:
                return message
        return None
