"""The refusal of a plan by a back-end: every rule that it breaks, with its source, and what to do instead."""

from __future__ import annotations

from collections.abc import Sequence

from planner.backends.emission.emission import Finding
from planner.errors import BackEndRefused


def refused(engine: str, backend: str, findings: Sequence[Finding]) -> BackEndRefused:
    """The refusal of a plan that breaks rules, one line each; ``backend`` as it was asked for (``NAME[==VERSION]``)."""
    lines = "\n".join(f"  {finding.rule}: {finding.message} ({finding.source})" for finding in findings)
    count = f"{len(findings)} rule{'s' if len(findings) > 1 else ''}"
    name = backend.partition("==")[0]
    return BackEndRefused(
        f"{engine} cannot run this plan; it breaks {count}:\n{lines}",
        where=f"--backend {backend}",
        hint=f"plan again with --backend {name}: the search proposes only what it can run",
    )
