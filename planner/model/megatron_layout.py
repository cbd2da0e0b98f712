"""The chunks of a ``--pipeline-model-parallel-layout`` of Megatron.

``E`` embedding, ``t`` transformer layer, ``m`` MTP layer, ``L`` head and loss, ``|`` between chunks, ``x*n`` and
``(..)*n`` repeat, commas mean nothing; a chunk may be empty (core/transformer/pipeline_parallel_layer_layout.py).
"""

from __future__ import annotations

import re

from profiles.errors import DocumentInvalid

_GROUP = re.compile(r"\(([^)]+)\)\*(\d+)")
_REPEAT = re.compile(r"(.)\*(\d+)")
MAX_LAYERS = 100_000
"""More than any model has; refuses ``t*999999999`` in an edited file."""


def expanded_layout(text: str, where: str) -> list[str]:
    """One word of signs for each chunk along the model.  Raises DocumentInvalid for anything that is not a layout."""
    for pattern in (_GROUP, _REPEAT):
        total = sum(len(match[1]) * min(int(match[2]), MAX_LAYERS + 1) for match in pattern.finditer(text))
        if total > MAX_LAYERS:
            raise DocumentInvalid(f"the layout repeats more than {MAX_LAYERS} times", where=where)
        text = pattern.sub(lambda match: match[1] * int(match[2]), text)
    unknown = sorted(set(text) - set("EtmL|,"))
    if unknown:
        raise DocumentInvalid(f"the layout has the unknown signs {unknown}", where=where, hint="E, t, m, L and | exist")
    return text.replace(",", "").split("|")
