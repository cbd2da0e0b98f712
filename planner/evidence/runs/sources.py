"""The publication of a row: a readable group name for each source string.

Reports group rows by publication, because each has its own conventions, noise and trust.  A source that
``sources.toml`` does not know is grouped by its repository, paper number or host name.
"""

from __future__ import annotations

import re

from profiles.shipped_tables import shipped_table

REPOSITORY = re.compile(r"^github:([^/\s]+/[^/:@\s]+)")
PAPER = re.compile(r"^(arXiv:\d+\.\d+)")
HOST = re.compile(r"^https?://([^/\s]+)")


def source_group(source: str) -> str:
    """Readable name of the publication that ``source`` points to."""
    for pattern, name in shipped_table("planner.evidence.runs", "sources.toml")["rules"]:
        if re.search(pattern, source):
            return str(name)
    for rule in (REPOSITORY, PAPER, HOST):
        match = rule.match(source)
        if match:
            return match[1]
    return source.split(maxsplit=1)[0][:60] if source.split() else "unnamed"
