"""Make an engine's table of flags from its own parser: ``python -m planner.serving.engines.snapshot vllm ...``.

The engine is installed as its validator is (``make serving-targets``).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from planner.backends.checking.validator import Validator
from planner.backends.checking.worker import Worker


def make(validator: Validator) -> Path:
    """Write ``flags_<release>.json`` beside the validator; returns its path.  Raises ValidatorUnavailable."""
    release = validator.default_version
    with Worker(validator, release, timeout_s=600) as worker:
        said = worker.ask({"flags": True})
    if not said.accepted:
        sys.exit(f"{validator.name}: {said.message}")
    path = validator.worker.with_name(f"flags_{release.replace('.', '_')}.json")
    lines = [
        f"  {json.dumps(name)}: {json.dumps(each, sort_keys=True)}"
        for name, each in sorted(said.facts["arguments"].items())
    ]
    head = f'"engine": {json.dumps(validator.name)}, "release": {json.dumps(release)}, "arguments": {{\n'
    path.write_text("{" + head + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    from planner.serving.engines.validators import VALIDATORS

    for each in sys.argv[1:] or VALIDATORS:
        print(make(VALIDATORS[each]))
