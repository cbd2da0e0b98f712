"""One part of a device run in this process: ``python -m benchmarks.device_run.part NAME LINES --seconds S``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.device_run.records import Recorder


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the part; what it measured is in the lines."""
    began_s = time.monotonic()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device_run.part")
    parser.add_argument("name")
    parser.add_argument("lines", type=Path)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--plans", type=Path)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args(arguments)
    recorder = Recorder(options.lines, options.name, began_s + options.seconds)

    import torch

    device = torch.device("cpu") if options.tiny else torch.device("cuda", 0)
    if options.name in ("hugging_face", "expandable"):
        from benchmarks.device_run import hugging_face

        hugging_face.run(recorder, device, tiny=options.tiny, expandable=options.name == "expandable")
    elif options.name == "launches":
        from benchmarks.device_run import launches

        launches.run(recorder, device, tiny=options.tiny)
    elif options.name == "native":
        from benchmarks.device_run import native

        native.run(recorder, device, options.plans)
    elif options.name == "zero_steps":
        from benchmarks.device_run import zero_steps

        zero_steps.run(recorder, device, tiny=options.tiny)
    elif options.name == "megatron_core":
        from benchmarks.device_run import megatron_core

        megatron_core.run(recorder, device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
