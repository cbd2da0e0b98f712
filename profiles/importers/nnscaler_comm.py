"""nnScaler's collective profiles: ``intra_<ranks>.json`` with two lists (MB, seconds) a collective.

Recognised by ``"all gather"`` and ``"all reduce"`` (with spaces) at the top.  Sizes are MB of 2^20 bytes: the buffer
of all reduce, the output of all gather, the input of reduce scatter; all to all shares the printed size out over the
ranks first, so one rank sends size / ranks.  Times are means in seconds.  The number of ranks stands in the file's name
only; runs over several nodes are saved under the same name, so the number of nodes is unknown (``--set num_nodes=``).

Source: microsoft/nnscaler nnscaler/profiler/benchmark_comm.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importing.environments import Batches, environment_of, finished, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import json_number
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import CollectiveObservation, CollectiveOperation
from profiles.observations.timing import Timing
from profiles.safe_json import load_json_text

_OPERATIONS: dict[str, CollectiveOperation] = {
    "all gather": "all_gather", "all reduce": "all_reduce", "reduce scatter": "reduce_scatter",
    "all to all": "all_to_all",
}  # fmt: skip
_NAME = re.compile(r"(?:intra|inter)_(\d{1,6})(?:\D|$)")
_MB = 2**20


def _matches(head: Head) -> bool:
    text = head.text
    return text.lstrip()[:1] == "{" and all(
        re.search(rf'"{name}"\s*:\s*\[\s*\[', text) for name in list(_OPERATIONS)[:2]
    )


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("nnscaler")
    batches = Batches()
    for file in files:
        data = load_json_text(file.text(), file.where)
        named = _NAME.search(file.name)
        ranks = given_whole(options, "group_size") or (int(named[1]) if named else 0)
        if not ranks:
            raise DocumentInvalid(
                "the number of ranks stands in the file's name, which is not intra_<ranks>.json here",
                where=file.where,
                hint="add --set group_size=8",
            )
        if not isinstance(data, dict):
            raise DocumentInvalid("the document is no JSON object", where=file.where, hint="give an intra_*.json file")
        batch = batches.of(environment_of(options, framework="torch"))
        for name, lists in data.items():
            batch.collectives += _collectives(str(name), lists, ranks, options, imported)
    if given_whole(options, "num_nodes") is None:
        imported.flag(
            "nodes-unknown", "nnScaler saves runs over several nodes under the same name; --set num_nodes= tells"
        )
    return finished(imported, batches, files[0], "there is no collective with a time", "check that it is complete")


def _collectives(
    name: str, lists: Any, ranks: int, options: ReadOptions, imported: Imported
) -> list[CollectiveObservation]:
    operation = _OPERATIONS.get(name)
    if operation is None:
        imported.bad(f"#/{name[:40]}", "this is none of nnScaler's four collectives", "remove it")
        return []
    two = isinstance(lists, list) and len(lists) == 2 and all(isinstance(each, list) for each in lists)
    if not two or len(lists[0]) != len(lists[1]):
        imported.bad(f"#/{name}", "two lists of one length are expected: MB and seconds", "is the file cut off?")
        return []
    nodes, each = given_whole(options, "num_nodes"), given_whole(options, "devices_per_node")
    found: list[CollectiveObservation] = []
    for index, (size_mb, time_s) in enumerate(zip(lists[0], lists[1], strict=True)):
        try:
            size = json_number(size_mb) * _MB / (ranks if operation == "all_to_all" else 1)
            if not 1 <= size < 2**62:
                raise ValueError(f"{size_mb} MB is no size of a collective")
            found.append(
                CollectiveObservation(
                    operation,
                    round(size),
                    ranks,
                    Timing(json_number(time_s), "mean"),
                    dtype="fp32",
                    num_nodes=nodes,
                    devices_per_node=each,
                    row=index,
                )
            )
        except ValueError as error:
            imported.bad(f"#/{name}/{index}", str(error), "profile again")
    return found


FORMAT = Format("nnscaler-comm", "nnScaler collective profiles (intra_*.json)", _matches, _read)
