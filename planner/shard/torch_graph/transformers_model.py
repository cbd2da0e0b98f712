"""A language model of the transformers library, from its config alone, with the loss of the next token."""

from __future__ import annotations

import json
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from planner.errors import DocumentInvalid, NotFound

REFERENCE = f"{__name__}:LanguageModelLoss"
"""What a plan calls the module; its one argument is the content of config.json, so that a plan needs no other file."""


class LanguageModelLoss(nn.Module):
    """Tokens and the tokens that follow them in, mean cross-entropy out.

    Weights are those that transformers initialises, on the device that is current: none on ``meta``.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        """Build the causal language model of a config.  Raises NotFound or DocumentInvalid."""
        super().__init__()
        if find_spec("transformers") is None:
            raise NotFound("a transformers config needs transformers", where="--model", hint="pip install transformers")
        from transformers import AutoConfig, AutoModelForCausalLM

        try:
            # transformers completes nested entries in place; what the plan keeps stays as it was given.
            known = AutoConfig.for_model(**deepcopy(config))
            made = AutoModelForCausalLM.from_config(known, attn_implementation="sdpa")
        except (ValueError, KeyError, TypeError, AttributeError, ImportError, OSError) as error:
            raise DocumentInvalid(
                f"transformers cannot build a language model: {(str(error).splitlines() or ['no reason given'])[0]}",
                where="config",
                hint="give the config of a causal language model",
            ) from error
        made.config.use_cache = False
        self.model = made

    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
        """The loss of one step."""
        logits = self.model(input_ids=tokens, use_cache=False).logits
        return functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten())

    @staticmethod
    def example_inputs(batch: int, sequence: int) -> tuple[Tensor, Tensor]:
        """Tokens and labels."""
        shape = (batch, sequence)
        return (
            torch.zeros(shape, dtype=torch.int64, device="meta"),
            torch.zeros(shape, dtype=torch.int64, device="meta"),
        )


def read_config(path: str) -> dict[str, Any]:
    """The content of ``config.json``, or of the one in a folder.  Raises NotFound or DocumentInvalid."""
    file = Path(path) / "config.json" if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise NotFound(f"no file {file}", where="--model", hint="give a transformers config.json")
    try:
        data = json.loads(file.read_text("utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise DocumentInvalid(
            f"no JSON: {str(error).splitlines()[0]}", where=str(file), hint="give a transformers config.json"
        ) from error
    if not isinstance(data, dict) or not isinstance(data.get("model_type"), str):
        raise DocumentInvalid(
            "no model_type, which says what to build", where=f"{file}#/model_type", hint="give a transformers config"
        )
    return data
