"""Imported formats, observations and accuracy of predictions: pages from the code and the results."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docs.generate import page, table
from docs.observation_words import COLUMN_WORDS, KIND_WORDS

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
_UNITS = (
    ("_flops_per_s_per_device", "FLOP/s"),
    ("_bytes_per_s", "bytes/s"),
    ("_bytes", "bytes"),
    ("_s", "s"),
)
LONGEST_TEST = 200
"""Characters of what recognises a format, code left out; longer ones are cut."""
_TAKES = {"file": "a file", "files": "files together", "folder": "a folder"}
_CODE = re.compile(r"``(.+?)``", re.DOTALL)


# --- Formats ---------------------------------------------------------------------------------------------------------


def formats_page() -> str:
    """Every format that ``profile import`` reads, in detection order."""
    from profiles.importing.formats import format_names, load_format

    rows = []
    for name in format_names():
        known = load_format(name)
        module = importlib.import_module(f"profiles.importers.{name.replace('-', '_')}")
        path = Path(str(module.__file__)).relative_to(RESULTS.parents[1]).as_posix()
        about = markdown((inspect.getdoc(module) or "").split("\n")[0])
        rows.append(
            (f"[`{name}`](../../{path})", known.title, _TAKES[known.takes], about, recognised_by(known, module))
        )
    return page(
        "Formats that profile import reads",
        "In the order in which a file is tried; the first that matches reads it, and `--format NAME` says it yourself."
        " `meshwright profile formats` prints the list. The name leads to the importer: its first lines say which"
        " columns and units the format has, what is easily got wrong, and where the knowledge comes from.",
        "*Files together*: files of that format which are given in one command belong to one run (ranks).",
        table(("format", "reads", "takes", "what it is", "recognised by"), rows),
    )


def recognised_by(known: Any, module: Any) -> str:
    """The sentence of the importer's docstring that says it, else what its test says of itself."""
    text = inspect.getdoc(module) or ""
    spans: list[str] = []

    def hidden(found: re.Match[str]) -> str:
        spans.append(found[0])
        return f"\0{len(spans) - 1}\0"

    plain = _CODE.sub(hidden, text)
    found = re.search(r"[Rr]ecognised (?:by )?(.*?)(?:\.(?=\s|$)|\n\n|\Z)", plain, re.DOTALL)
    if found is not None and found[1].strip():
        return markdown(re.sub(r"\0(\d+)\0", lambda part: spans[int(part[1])], _short(found[1])))
    test = " ".join((inspect.getdoc(known.matches) or "").split("\n\n")[0].split())
    return markdown(test.removeprefix("Whether ").rstrip(".")) or "its keys or columns, see the importer"


def _short(text: str) -> str:
    """A long sentence up to its first semicolon, without a bracket that stays open."""
    if len(" ".join(text.split())) <= LONGEST_TEST:
        return text
    first = text.partition(";")[0]
    return first[: first.rindex("(")].rstrip() if first.count("(") > first.count(")") else first


def markdown(text: str) -> str:
    """Text of a docstring with Markdown's marks for code."""
    return _CODE.sub(r"`\1`", " ".join(text.split()))


# --- Observations ----------------------------------------------------------------------------------------------------


def observations_page() -> str:
    """The four kinds of observation, column by column, as they are stored."""
    from profiles.observation_store.schema import KINDS, columns_of

    parts = [
        "What `meshwright profile import` and `profile measure` store: rows of four kinds, in Parquet"
        " (`<kind>/<batch>.parquet`), in seconds and bytes. Beside the rows of a batch lies a JSON document with its"
        " [environment](documents.md#environment), [source](documents.md#source) and flags"
        " ([StoredBatch](documents.md#storedbatch)).",
        "An empty text and null mean: the source does not say. Nothing is made up. A file leaves out columns in which"
        " no row has a value. A failed case (`ok` false) is a row like any other, without a time.",
        "**Sizes of collectives** are the full logical tensor on one rank, whatever a tool prints: all_reduce and"
        " broadcast the buffer, all_gather the output, reduce_scatter the input, all_to_all what one rank sends in"
        " total, send_recv the message. Bandwidths of collectives are never stored; they follow from size, group and"
        " time: size / time, and times 2(n-1)/n (all_reduce) or (n-1)/n (all_gather, reduce_scatter, all_to_all) for"
        " the bus bandwidth (`profiles/observations/bandwidth.py`).",
        "**Sizes of a matmul** are those of the product as it ran, [m, k] x [k, n]: of a forward (m, n, k) the input's"
        " gradient is (m, k, n) and the weight's (n, k, m). Those of a grouped matmul are the forward's, m the mean"
        " rows of a group.",
    ]
    for kind in KINDS:
        rows = [
            (
                f"`{column.name}`",
                str(column.type),
                unit_of(column.name),
                COLUMN_WORDS[column.name],
                ", ".join(f"`{choice}`" for choice in column.choices),
            )
            for column in columns_of(kind)
        ]
        parts.append(
            f"## {kind}\n\n{KIND_WORDS[kind]}\n\n" + table(("column", "type", "unit", "meaning", "one of"), rows)
        )
    return page("Observations", *parts)


def unit_of(name: str) -> str:
    """The unit that a column's name ends with."""
    return next((unit for suffix, unit in _UNITS if name.endswith(suffix)), "")


# --- Accuracy of predictions -----------------------------------------------------------------------------------------


def newest_prediction_run(folder: Path = RESULTS) -> dict[str, Any] | None:
    """The newest run of ``python -m benchmarks --write`` that measured predictions."""
    runs = [run for file in sorted(folder.glob("*.json")) for run in json.loads(file.read_text("utf-8"))["runs"]]
    judging = [run for run in runs if any(map(is_prediction, run.get("measurements", ())))]
    return max(judging, key=lambda run: run["measured_at"], default=None)


def is_prediction(measurement: dict[str, Any]) -> bool:
    """Whether a line of the results is an error of predictions, or how often their interval held."""
    return bool(measurement["name"].startswith("prediction-"))


def summary_rows(run: dict[str, Any]) -> list[tuple[str, ...]]:
    """One row a kind and way: points, tables, errors beside their targets, coverage."""
    by_name = {each["name"]: each for each in run["measurements"]}
    rows = []
    for name, middle in by_name.items():
        tail, inside = by_name.get(f"{name}.p90"), by_name.get(f"{name}.coverage")
        if not is_prediction(middle) or tail is None or inside is None:
            continue
        kind, way = name.removeprefix("prediction-").rsplit("-", 1)
        judged = [each for each in middle["details"]["tables"] if each["part"] == "report"]
        rows.append(
            (
                f"{kind}, unseen {way}",
                str(len(judged)),
                f"{middle['details']['n']:,}",
                *(f"{each['measured']:.1%} (<= {each['target']:.1%})" for each in (middle, tail)),
                f"{inside['measured']:.1%}",
                *_worst(judged),
            )
        )
    return rows


def _worst(tables: list[dict[str, Any]]) -> tuple[str, str]:
    """Median of the worst table, and the range of what the interval held."""
    held = [each["coverage"] for each in tables]
    return f"{max(each['median'] for each in tables):.1%}", f"{min(held):.0%} to {max(held):.0%}"


SUMMARY_HEAD = (
    *("what", ">tables", ">points", ">median error", ">90th percentile", ">80 % interval holds"),
    *(">worst table: median", ">interval, by table"),
)


def accuracy_page(folder: Path = RESULTS) -> str:
    """Errors of predictions at points that were held out, of the newest run."""
    title = "Accuracy of predictions from measured tables"
    intro = (
        "How far off is a time that was looked up where nothing was measured? Points of AIConfigurator's tables"
        " (package aiconfigurator-core 0.12.0, every system that has them) are held out, predicted from the rest and"
        " compared. [The prediction ladder](../explanation/prediction-ladder.md) explains how they are predicted;"
        " `python -m benchmarks --only prediction --only lookup` repeats it."
    )
    run = newest_prediction_run(folder)
    if run is None:
        return page(title, intro, "No run is kept in `benchmarks/results`.")
    return page(
        title,
        intro,
        _how_held_out(),
        "Errors are |predicted / measured - 1|. In brackets what was aimed for; the interval is meant to hold 75 to"
        " 85 % of the points.",
        table(SUMMARY_HEAD, summary_rows(run)),
        *_lookup_lines(run),
        *(_tables_of(each) for each in run["measurements"] if each["details"].get("tables")),
        f"Measured on {run['measured_at'][:10]}.",
        "These are errors of single operators and collectives on the device that was measured, alone. A training step"
        " adds its back-end; [accuracy](accuracy.md) compares whole steps.",
    )


def _how_held_out() -> str:
    return "\n".join(
        (
            "- **sites**: whole (n, k) of a matmul, or whole (batch, heads, key/value heads) of an attention, a fifth"
            " at a time: shapes of a model that nobody measured;",
            "- **shapes**: a tenth of all points, at random: a size between measured ones;",
            "- **sizes**: every second size of a collective, so that a grid of factor 4 remains.",
            "",
            "One constant (the spread between sizes of a collective) was chosen on the systems marked *calibration*;"
            " they are shown and not counted. Tables of bf16 with at least 2,000 points are taken; attention causal and"
            " without a window, one table a kernel and head size. The figures of all tables together hide the bad ones:"
            " look at the tables of your device.",
        )
    )


def _lookup_lines(run: dict[str, Any]) -> list[str]:
    found = [each for each in run["measurements"] if each["name"] == "lookup"]
    return [
        f"Speed: {each['task']} in {each['measured'] * 1e3:.0f} ms on one core (target {each['target'] * 1e3:.0f} ms)."
        for each in found
    ]


def _tables_of(measurement: dict[str, Any]) -> str:
    heading = measurement["name"].removeprefix("prediction-").replace("-", ", unseen ")
    rows = [_table_row(each) for each in measurement["details"]["tables"]]
    head = ("system", "table", ">points", ">median", ">90th pct.", ">interval holds", "")
    return f"## {heading}\n\n{table(head, rows)}"


def _table_row(each: dict[str, Any]) -> Sequence[str]:
    return (
        each["system"],
        each["table"],
        f"{each['n']:,}",
        f"{each['median']:.1%}",
        f"{each['p90']:.1%}",
        f"{each['coverage']:.1%}",
        "calibration" if each["part"] == "calibration" else "",
    )
