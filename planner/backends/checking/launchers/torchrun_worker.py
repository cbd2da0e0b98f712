"""Asks torchrun's own parser and ``config_from_args`` about a command line; starts nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.backends.checking.answers import serve


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """Parse, then build the launch configuration."""
    from torch.distributed.run import config_from_args, get_args_parser

    yield "parse"
    parsed = get_args_parser().parse_args(request["arguments"])
    yield "config"
    config, _, words = config_from_args(parsed)
    facts |= {
        "num_nodes": config.max_nodes,
        "ranks_per_node": config.nproc_per_node,
        "rendezvous": config.rdzv_backend,
        "command": list(words),
    }


if __name__ == "__main__":
    serve(stages, said=str, ended=lambda printed: printed.strip().splitlines()[-1])
