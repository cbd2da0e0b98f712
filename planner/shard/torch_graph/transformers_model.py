"""A language model of the transformers library, from its config alone, with the loss of the next token."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from planner.errors import DocumentInvalid, NotFound


class LanguageModelLoss(nn.Module):
    """Tokens and the tokens that follow them in, mean cross-entropy out."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    @classmethod
    def from_config(cls, path: str) -> LanguageModelLoss:
        """Build the model of ``config.json`` on the meta device.  Raises NotFound or DocumentInvalid."""
        if find_spec("transformers") is None:
            raise NotFound("a transformers config needs transformers", where="--model", hint="pip install transformers")
        file = Path(path) / "config.json" if Path(path).is_dir() else Path(path)
        if not file.is_file():
            raise NotFound(f"no file {file}", where="--model", hint="give a transformers config.json")
        from transformers import AutoConfig, AutoModelForCausalLM

        try:
            data: dict[str, Any] = json.loads(file.read_text("utf-8"))
            config = AutoConfig.for_model(**data)
            with torch.device("meta"):
                made = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
                    config, attn_implementation="sdpa"
                )
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise DocumentInvalid(
                f"transformers cannot build a language model: {str(error).splitlines()[0]}",
                where=str(file),
                hint="give the config of a causal language model",
            ) from error
        made.config.use_cache = False
        return cls(made)

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
