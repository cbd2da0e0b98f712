"""What tests cost, and which of the dear ones a quick run takes.

``costs.json`` says how many seconds the cases of each dear test function take (its calls; a fixture that several share
is not theirs).  A quick run gives every function the same seconds (``BUDGET_S``, or what its marker ``budget`` says),
and those of one file, which mostly test one thing, together no more than ``FILE_BUDGET_S``:

- of a function with several cases it takes as many as fit, and every case that ``sampling.drawn`` keeps;
- a case that takes longer than the budget alone runs with the chance budget / cost, so that a run spends the budget on
  such a function on average.

Which ones depends on the seed of the run, as for every sample (``tests/sampling.py``); ``make test-all`` runs each.

``MESHWRIGHT_TEST_COSTS=FOLDER make test-all`` records, ``python -m tests.checks.costs FOLDER`` writes the table.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Protocol

from tests import sampling

TABLE = Path(__file__).with_name("costs.json")
RECORD = "MESHWRIGHT_TEST_COSTS"
BUDGET_S = 2.0
FILE_BUDGET_S = 6.0
DEAR_S = 2.0
"""A function whose cases together take less is not in the table."""
UNLIKE = 2.0
"""A case whose cost is so many times that of the median case, or the inverse, has a line of its own."""


class Item(Protocol):
    """What is needed of pytest's item."""

    @property
    def nodeid(self) -> str: ...

    def get_closest_marker(self, name: str) -> object | None: ...


@cache
def costs_s() -> Mapping[str, Mapping[str, float]]:
    """Seconds of a case, by function and name of the case; the name "" stands for every case without a line."""
    found: dict[str, dict[str, float]] = json.loads(TABLE.read_text(encoding="utf-8"))["functions"]
    return found


def function_and_case(nodeid: str) -> tuple[str, str]:
    """``file::test[case]`` cut at the first bracket."""
    function, _, case = nodeid.partition("[")
    return function, case.removesuffix("]")


def left_out(items: Sequence[Item], costs: Mapping[str, Mapping[str, float]] | None = None) -> set[str]:
    """The ids of the tests that this quick run does not take."""
    table = costs_s() if costs is None else costs
    by_function: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        function, _ = function_and_case(item.nodeid)
        if function in table:
            by_function[function].append(item)
    sharing = Counter(_file(function) for function, cases in by_function.items() if _said_budget_s(cases[0]) is None)
    found: set[str] = set()
    for function, cases in by_function.items():
        budget_s = _said_budget_s(cases[0]) or min(BUDGET_S, FILE_BUDGET_S / sharing[_file(function)])
        found |= _left_out(cases, table[function], budget_s, random.Random(f"{sampling.run_seed()} {function}"))
    return found


def _left_out(cases: list[Item], costs: Mapping[str, float], budget_s: float, draw: random.Random) -> set[str]:
    seconds = {each.nodeid: costs.get(function_and_case(each.nodeid)[1], costs[""]) for each in cases}
    # The order of collection may differ between machines, the sample may not.
    order = draw.sample(sorted(seconds), len(seconds))
    taken = {each.nodeid for each in cases if _is_kept(each)}
    spent_s = sum(seconds[nodeid] for nodeid in taken)
    for nodeid in order:
        if nodeid not in taken and spent_s + seconds[nodeid] <= budget_s:
            taken.add(nodeid)
            spent_s += seconds[nodeid]
    if not taken and draw.random() < budget_s / seconds[order[0]]:
        taken.add(order[0])
    return seconds.keys() - taken


def _file(function: str) -> str:
    return function.partition("::")[0]


def _said_budget_s(item: Item) -> float | None:
    """What its marker says."""
    marker = item.get_closest_marker("budget")
    return None if marker is None else float(getattr(marker, "args")[0])  # noqa: B009  # a protocol's object


def _is_kept(item: Item) -> bool:
    """Whether one of its values is a case that ``drawn`` keeps in every sample."""
    values = getattr(getattr(item, "callspec", None), "params", {}).values()
    return any(sampling.is_kept(value) for value in values)


def record(nodeid: str, seconds: float) -> None:
    """Note what the call of a test took, in a file of this process."""
    folder = Path(os.environ[RECORD])
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{os.getpid()}.tsv").open("a", encoding="utf-8") as file:
        file.write(f"{nodeid}\t{seconds:.3f}\n")


def table_of(recorded: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """The lines of the dear functions: seconds of the median case, and of each case unlike it."""
    functions: dict[str, dict[str, float]] = defaultdict(dict)
    for nodeid, seconds in recorded.items():
        function, case = function_and_case(nodeid)
        functions[function][case] = seconds
    found = {}
    for function, cases in sorted(functions.items()):
        if sum(cases.values()) < DEAR_S:
            continue
        middle_s = max(median(cases.values()), 0.01)
        found[function] = {"": round(middle_s, 2)} | {
            case: round(seconds, 2)
            for case, seconds in sorted(cases.items())
            if case and seconds > 0.5 and not middle_s / UNLIKE < seconds < middle_s * UNLIKE
        }
    return found


def main(arguments: list[str]) -> int:
    """Write the table from what runs recorded into the given folders."""
    recorded: dict[str, float] = {}
    for folder in arguments:
        for path in sorted(Path(folder).glob("*.tsv")):
            for line in path.read_text(encoding="utf-8").splitlines():
                nodeid, seconds = line.rsplit("\t", 1)
                recorded[nodeid] = float(seconds)
    # A run of a part says nothing about the rest.
    table = {"functions": dict(sorted((dict(costs_s()) | table_of(recorded)).items()))}
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    print(f"{len(table['functions'])} dear functions in {TABLE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
