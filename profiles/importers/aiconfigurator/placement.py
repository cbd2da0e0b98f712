"""System and version of a table, from its folders or its name.

The package stores ``systems/data/<system>/<family>/<framework>/<version>/<operator>_perf.parquet``; copies of single
tables often carry the same in one name: ``<system>_<family>_<framework>_<version>_<operator>_perf.parquet``.  Any
other place says nothing: a folder that happens to be called ``h100`` is not evidence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FAMILIES = (
    "attention|encoder_attention|linear_attention|sparse_attention|comm|gemm|kda|mhc|mla|mla_bmm|mlp|moe|msa|quantize"
)
_FRAMEWORKS = "nccl|oneccl|trtllm|sglang|vllm"
_VERSION = r"\d[0-9A-Za-z.+-]{0,40}"
_FOLDERS = re.compile(rf"(?:^|/)data/([^/]{{1,60}})/(?:{_FAMILIES})/(?:{_FRAMEWORKS})/({_VERSION})/[^/]+$")
_NAME = re.compile(rf"^(\w{{1,40}}?)_(?:{_FAMILIES})_(?:{_FRAMEWORKS})_({_VERSION})_\w{{1,60}}_perf\.parquet$")


@dataclass(frozen=True, slots=True)
class Placement:
    """System (h100_sxm) and version (1.0.0) by the path; empty where it does not say."""

    system: str = ""
    version: str = ""


def placement_of(path: Path) -> Placement:
    """What the path of a table says."""
    found = _FOLDERS.search(path.absolute().as_posix()) or _NAME.match(path.name)
    return Placement(found[1], found[2]) if found else Placement()
