"""The rows of published runs that may choose cost-model constants: ``python -m benchmarks.fitting_rows``.

    python -m benchmarks.fitting_rows TRUTH.csv... [--check]

writes ``planner/evidence/accuracy/rows_used_for_fitting.txt`` (``--check``: exit code 1 if it is not up to date).  The
rule is ``may_fit``: 40 % of the ranking groups, chosen by a hash of the group's name, except those of sources that only
judge. Whoever fits a constant takes rows of this list and no others; ``meshwright accuracy`` then judges by the rest.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from planner.evidence.accuracy.fitted_rows import COMMITTED, fitted_rows_text
from planner.evidence.accuracy.ranking import ranking_key
from planner.evidence.runs.sources import source_group
from planner.evidence.runs.truth import TruthRow

PERCENT = 40
ONLY_JUDGE = re.compile(
    r"Korthikanti|MT-NLG|Llama 3|BLOOM|InternEvo|^NeMo$|NeMo launcher|fms-fsdp|Narayanan|UCI|kwai|flash-attention"
    r"|SimuMax|Sailor|NeuSight|MegaScale|Zero-bubble|Primus|Parallel Folding"
    r"|litgpt|FlagPerf|QwenLM|prime-rl|DLPerf|vectorlm|pytorch/ao|torchtune|fsdp_qlora|MLPerf"
)
"""Sources of which no row ever chooses a constant."""
LOOKED_AT = re.compile(r"mistral-7b|llama3-8b")
"""Models of fms-acceleration on whose rows the memory of layers that run whole was found
(``planner.evidence.runs.whole_layer_memory``); its other models judge."""


def may_fit(row: TruthRow, groups: Mapping[str, str]) -> bool:
    """Whether a constant may be chosen with this row; rows of one ranking group stay together."""
    group = source_group(row.source)
    if group == "fms-acceleration":
        return LOOKED_AT.search(row.model) is not None and not row.out_of_memory
    if ONLY_JUDGE.search(group):
        return False
    return int(hashlib.sha256(ranking_key(row, groups).encode()).hexdigest()[:8], 16) % 100 < PERCENT


def fitting_rows_text(rows: Sequence[TruthRow], groups: Mapping[str, str]) -> str:
    """The list."""
    said = "Rows that may have chosen constants of the cost model; written by python -m benchmarks.fitting_rows"
    return fitted_rows_text([row for row in rows if may_fit(row, groups)], said)


def main() -> int:
    """Write the list, or with ``--check`` say whether it is up to date."""
    from planner.cli.commands.accuracy import read_truth_files

    parser = argparse.ArgumentParser(prog="python -m benchmarks.fitting_rows")
    parser.add_argument("truth", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    text = fitting_rows_text(*read_truth_files(asked.truth))
    if asked.check:
        fresh = COMMITTED.is_file() and COMMITTED.read_text(encoding="utf-8") == text
        print("up to date" if fresh else "stale")
        return 0 if fresh else 1
    COMMITTED.write_text(text, encoding="utf-8")
    print(f"written: {COMMITTED} ({len(text.splitlines()) - 1} rows)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
