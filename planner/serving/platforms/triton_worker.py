"""Parses ``config.pbtxt`` with Triton's own protobuf: unknown fields, wrong types and unknown words are refused.

Stages: ``parse`` (``text_format.Parse`` into ``ModelConfig`` of tritonclient).  Not proved: that the backend is there.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner.backends.checking.answers import serve

OVERLAY = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """The one stage."""
    from google.protobuf import text_format  # type: ignore[import-untyped]  # without types

    yield "parse"
    # The module alone: its package imports a whole client.
    path = OVERLAY / "tritonclient" / "grpc" / "model_config_pb2.py"
    spec = importlib.util.spec_from_file_location("model_config_pb2", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    config = text_format.Parse(request["config"], module.ModelConfig())
    facts |= {
        "name": config.name,
        "backend": config.backend,
        "instances": sum(each.count for each in config.instance_group),
    }


if __name__ == "__main__":
    serve(stages)
