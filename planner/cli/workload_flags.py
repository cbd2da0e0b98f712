"""The flags of a workload, declared once: every command that asks about work takes all of them.

A flag is a field whose annotation holds its option; ``with_flags`` puts the fields of such a class in the place of one
parameter of a command.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, get_type_hints

from planner.cli import options
from planner.cli.items_flag import items_of
from planner.cli.routing_flag import routing_of
from planner.cli.sequences_flag import sequences_of
from planner.cli.states_flag import states_of
from planner.cli.training_flag import training_of


@dataclass(frozen=True, slots=True, kw_only=True)
class KindFlags:
    """What holds for every cell of a sweep, too; None = not said."""

    precision: options.Precision = None
    fp8_recipe: options.Fp8Recipe = None
    optimizer: options.Optimizer = None
    optimizer_states: options.OptimizerStates = None
    sample: options.Sample = None
    source_length: options.SourceLength = None
    images: options.Images = None
    audio_clips: options.AudioClips = None
    routing: options.Routing = None
    training: options.Training = None
    sequences: options.Sequences = None

    def said(self) -> dict[str, Any]:
        """Fields of a workload that the flags say.  Raises DocumentInvalid."""
        found: dict[str, Any] = {
            "precision": self.precision.value if self.precision else None,
            "fp8_recipe": self.fp8_recipe,
            "optimizer": self.optimizer,
            "optimizer_states": states_of(self.optimizer_states),
            "sample": self.sample,
            "source_length": self.source_length,
            **items_of(self.images, "--images", "images_per_sample", "image_counts"),
            **items_of(self.audio_clips, "--audio-clips", "audio_clips_per_sample", "audio_clip_counts"),
            "routing": routing_of(self.routing),
            "training": training_of(self.training),
            "sequences": sequences_of(self.sequences),
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFlags(KindFlags):
    """What the command line says about one workload; None = not said."""

    file: options.WorkloadFile = None
    global_batch_size: options.GlobalBatchSize = None
    sequence_length: options.SequenceLength = None


def with_flags(parameter: str, kind: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the flags of ``kind``, which it takes together as ``parameter``."""

    def around(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(kind, include_extras=True)
        flags = [
            inspect.Parameter(
                each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name]
            )
            for each in sorted(fields(kind), key=lambda each: each.name not in _SIZES)
        ]

        @wraps(command)
        def called(**given: Any) -> None:
            said = {each.name: given.pop(each.name) for each in flags}
            command(**given, **{parameter: kind(**said)})

        signature, own = inspect.signature(command, eval_str=True), list[inspect.Parameter]()
        for each in signature.parameters.values():
            own += flags if each.name == parameter else [each.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
        called.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
        return called

    return around


NOTHING_SAID: Any = WorkloadFlags()
"""What a command takes where no flag is given."""
_SIZES = ("file", "global_batch_size", "sequence_length", "sample")
"""They come first in a command's help."""
