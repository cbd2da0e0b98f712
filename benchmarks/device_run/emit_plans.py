"""Writes the native back-end's plans that ``native`` runs: ``python -m benchmarks.device_run.emit_plans --out DIR``.

Runs where Meshwright is installed whole, needs no device; the folder then travels to the device.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.single_device import Case, predicted

CASES: tuple[tuple[str, Case], ...] = (
    ("01-2048x16-b1-s2048", Case(2048, 16, 2048, 1, "none")),
    ("02-2048x16-b4-s2048", Case(2048, 16, 2048, 4, "none")),
    ("03-2048x16-b4-s2048-full", Case(2048, 16, 2048, 4, "full")),
    ("04-2048x16-b1-s64", Case(2048, 16, 64, 1, "none")),
    ("05-4096x8-b1-s4096", Case(4096, 8, 4096, 1, "none")),
    ("06-2048x16-b4-s2048-selective", Case(2048, 16, 2048, 4, "selective")),
    ("07-4096x8-b2-s4096-full", Case(4096, 8, 4096, 2, "full")),
    ("08-8192x4-b1-s4096", Case(8192, 4, 4096, 1, "none")),
)
TINY: tuple[tuple[str, Case], ...] = (("00-tiny", Case(64, 2, 32, 1, "none", vocab_size=256)),)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write one ``NAME.json`` a case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device_run.emit_plans")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cluster", default="dgx-h100")
    parser.add_argument("--tiny", action="store_true", help="one model that a CPU trains in a second")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, case in TINY if options.tiny else CASES:
        plan = predicted(case, options.cluster, "native")
        (options.out / f"{name}.json").write_text(plan.model_dump_json(indent=1), encoding="utf-8")
        print(name, f"{plan.step_time_s * 1e3:.1f} ms", f"{plan.peak_memory_bytes / 2**30:.1f} GiB")


if __name__ == "__main__":
    main()
