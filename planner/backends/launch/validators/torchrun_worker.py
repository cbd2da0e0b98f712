"""Asks torchrun's own parser and ``config_from_args`` about a command line; starts nothing."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from typing import Any


def verdict(arguments: list[str]) -> dict[str, Any]:
    """Parse, then build the launch configuration."""
    from torch.distributed.run import config_from_args, get_args_parser

    noise = io.StringIO()
    stage = "parse"
    try:
        with contextlib.redirect_stderr(noise), contextlib.redirect_stdout(noise):
            parsed = get_args_parser().parse_args(arguments)
            stage = "config"
            config, _, words = config_from_args(parsed)
    except SystemExit:
        return {"accepted": False, "stage": stage, "message": noise.getvalue().strip().splitlines()[-1]}
    except (ValueError, RuntimeError) as error:
        return {"accepted": False, "stage": stage, "message": str(error)}
    facts = {
        "num_nodes": config.max_nodes,
        "ranks_per_node": config.nproc_per_node,
        "rendezvous": config.rdzv_backend,
        "command": list(words),
    }
    return {"accepted": True, "stage": "ok", "message": "", "facts": facts}


def main() -> None:
    """Serve requests until stdin ends."""
    for line in sys.stdin:
        print(json.dumps(verdict(json.loads(line)["arguments"])), flush=True)


if __name__ == "__main__":
    main()
