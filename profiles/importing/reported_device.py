"""The accelerator that a text of a driver's tools mentions: the one model that all mentions share, or none.

Read: ``GPU 0: NVIDIA H100 80GB HBM3 (UUID: ...)`` (nvidia-smi -L, collect_env), ``|   0  NVIDIA A100-SXM4-80GB  On |``
(nvidia-smi), ``Card Series: AMD Instinct MI300X OAM`` and ``AMD Instinct MI300X`` (rocm-smi).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from profiles.importing.format import ReadOptions

_MENTIONS = (
    re.compile(r"\bGPU \d[\d,]*: ((?:NVIDIA|Tesla|Quadro|GeForce|AMD)[^(|]*)"),
    re.compile(r"^\|\s+\d+\s+((?:NVIDIA|Tesla|Quadro|GeForce) [^|]*?)\s{2,}(?:On|Off)\b"),
    re.compile(r"\bCard (?:Series|Model|series|model)\s*:\s*(AMD [^\t]*\S)"),
    re.compile(r"^\s*(AMD Instinct MI\w+)\s*$"),
)
_LONGEST = 80


def mentioned_device(texts: Iterable[str]) -> str:
    """The device model; empty if none is named or the text names several."""
    found: Counter[str] = Counter()
    for text in texts:
        for pattern in _MENTIONS:
            match = pattern.search(text[:300])
            if match and (name := " ".join(match.group(1).split())[:_LONGEST]):
                found[name] += 1
    return next(iter(found)) if len(found) == 1 else ""


def device_of(options: ReadOptions, texts: Iterable[str]) -> str:
    """What the user says the device is, else what the text mentions."""
    return options.given.get("device") or mentioned_device(texts)
