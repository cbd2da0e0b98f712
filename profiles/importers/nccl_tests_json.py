"""JSON reports of nccl-tests (``-J``, 2.17.6 and later) and of rccl-tests (``-Z json -x FILE``).

nccl-tests: one object with ``version, args, env, nccl_version, config {devices}, results [{size, count, type, redop,
root, out_of_place {time, alg_bw, bus_bw, nwrong}, in_place, out_of_place_per_iter {min_us ...}, actual_iterations,
tuning}]``; times in us.  rccl-tests: a list of ``{numCycle, name, nodes, ranks, ranksPerNode, size, type, redop,
inPlace, time, algBw, busBw, wrong}``.

Traps: ``env`` is the whole environment of the process, tokens included: it is never read.  A process with several
GPUs (``-g 8``) lists its first one only.  Booleans are the texts "true" and "false", NaN is "nan".
Source: NVIDIA/nccl-tests src/util.cu; ROCm/rccl-tests src/common.cu.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importers.nccl_tests import collect
from profiles.importers.nccl_tests.columns import Columns
from profiles.importers.nccl_tests.header import Rank, Versions, command_of_line, library_version
from profiles.importers.nccl_tests.rows import Block, Row
from profiles.importers.nccl_tests.runs import Run
from profiles.importing.environments import Batches, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import BadRow, Imported
from profiles.importing.launch_command import Launched
from profiles.importing.number_cells import finite_number, shown, whole_number
from profiles.importing.ranks_of_bandwidth import ratio_bounds
from profiles.importing.redaction import Redactor
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.source import Flag
from profiles.safe_json import load_json_text

_SWITCHES = {
    "nthreads": "num_threads",
    "ngpus": "num_gpus_per_thread",
    "warmup_iters": "warmup_iterations",
    "iterations": "iterations",
    "aggregated_iterations": "aggregated_iterations",
    "validation": "validation",
    "graph": "graph_launches",
}
_SPREAD = {
    "min_us": "i_min",
    "max_us": "i_max",
    "p50_us": "i_p50",
    "p95_us": "i_p95",
    "p99_us": "i_p99",
    "stdev_us": "i_std",
    "cv_pct": "i_cv",
}


def matches(head: Head) -> bool:
    """Whether the text is one of the two reports."""
    text = head.text.lstrip()
    if text.startswith("{"):
        return bool(
            re.search(r'"nccl_version"\s*:\s*\d{4,6}\b', text) and re.search(r'"(?:args|config|results)"\s*:', text)
        )
    return text.startswith("[") and '"numCycle"' in text[:4000] and '"busBw"' in text[:4000]


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """All results of one report.  Raises DocumentInvalid for broken JSON and for a report without results."""
    file = files[0]
    document = load_json_text(file.text(), file.where)
    if isinstance(document, dict):
        runs, versions, imported = _nvidia(document, file)
    elif isinstance(document, list):
        runs, versions, imported = _amd(document), Versions(library="rccl"), Imported("rccl-tests")
    else:
        raise DocumentInvalid("the report is neither an object nor a list", where=file.where, hint="is it complete?")
    batches = collect([run for run in runs if run.begun], versions, imported, options, file.name)
    _places(imported, isinstance(document, dict))
    _captured(batches, document)
    return finished(imported, batches, file, "the report has no results", "run the test to its end")


def _nvidia(document: dict[str, Any], file: SourceFile) -> tuple[list[Run], Versions, Imported]:
    config = document.get("config")
    config = config if isinstance(config, dict) else {}
    args = [each for each in _list(document, "args") if isinstance(each, str)]
    program = re.split(r"[/\\]", args[0])[-1] if args else ""
    versions = Versions(library="nccl", library_version=library_version(str(document.get("nccl_version", ""))))
    imported = Imported("nccl-tests", "")
    if isinstance(document.get("version"), int):
        imported.facts["report_version"] = document["version"]
    command = command_of_line(" ".join([program, *args[1:]])) if program else None
    switches = dict(command[1]) if command else {}
    if command and command[2]:
        imported.facts["switches"] = Redactor().clean(command[2])
    for key, name in _SWITCHES.items():
        if isinstance(config.get(key), int) and not isinstance(config.get(key), bool):
            switches[name] = max(0, min(config[key], 10**9))
    if config.get("blocking_collectives") in ("true", True):
        switches["blocking"] = 1
    run = Run(columns=_columns(document), test=program if command else "", switches=switches, versions=versions)
    run.ranks = _ranks(document, config, switches)
    results = document.get("results")
    if not isinstance(results, list):
        what, hint = "the report has no list of results", "the test was stopped before its first size; run it again"
        raise DocumentInvalid(what, where=f"{file.where}#/results", hint=hint)
    for index, result in enumerate(results):
        try:
            run.rows.append(_row(index, result))
        except ValueError as error:
            run.bad.append((index, str(error)))
        if not run.test and isinstance(result, dict) and isinstance(result.get("experiment_name"), str):
            run.test = result["experiment_name"]
    bounds = document.get("out_of_bounds")
    if isinstance(bounds, dict) and isinstance(bounds.get("count"), int):
        run.out_of_bounds = max(0, bounds["count"])
    return [run], versions, imported


def _columns(document: dict[str, Any]) -> Columns:
    """Whether the report holds times of the collective or of the launching processor (``-C``)."""
    results = document.get("results")
    first = results[0] if isinstance(results, list) and results and isinstance(results[0], dict) else {}
    places = [first[name] for name in ("out_of_place", "in_place") if isinstance(first.get(name), dict)]
    cpu = any("cpu_time" in place for place in places)
    return Columns(block=("cputime" if cpu else "time", "algbw", "busbw", "#wrong"), unit_printed=True)


def _row(index: int, result: Any) -> Row:
    """One entry of ``results``.  Raises ValueError."""
    if not isinstance(result, dict):
        raise ValueError("the result is no object")
    size, count = _natural(result, "size"), _natural(result, "count")
    tuning = result.get("tuning")
    extras = {str(key): str(value) for key, value in tuning.items()} if isinstance(tuning, dict) else {}
    root = str(result.get("root", "")).strip()
    iterations = result.get("actual_iterations")
    redop = result.get("redop")
    blocks = [_block(result, place) for place in ("out_of_place", "in_place")]
    if blocks == [None, None]:
        raise ValueError("the result has neither out_of_place nor in_place measurements")
    return Row(
        line=index,
        size=size,
        count=count,
        dtype=str(result.get("type", "")),
        redop=redop if isinstance(redop, str) else "",
        root=int(root) if re.fullmatch(r"-?\d{1,9}", root) else None,
        out_of_place=blocks[0],
        in_place=blocks[1],
        extras=extras,
        iterations=iterations if isinstance(iterations, int) and 0 < iterations < 10**9 else None,
    )


def _block(result: dict[str, Any], place: str) -> Block | None:
    found = result.get(place)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise ValueError(f"{place} is no object")
    time = _number(found, "cpu_time" if "cpu_time" in found else "time")
    algbw, busbw = _number(found, "alg_bw"), _number(found, "bus_bw")
    wrong = found.get("nwrong")
    spread = result.get(f"{place}_per_iter")
    spread = spread if isinstance(spread, dict) else {}
    values = {ours: _number(spread, theirs) for theirs, ours in _SPREAD.items() if theirs in spread}
    # Six decimals are printed, whatever the number of them in the JSON text.
    bounds = ratio_bounds(f"{algbw:.6f}", f"{busbw:.6f}")
    error = "N/A" if wrong is None else f"{_number(found, 'nwrong'):g}"
    return Block(time, algbw, busbw, error, bounds, values)


def _amd(records: list[Any]) -> list[Run]:
    """One run for each collective, group and cycle of rccl-tests' records."""
    runs: dict[tuple[object, ...], Run] = {}
    for index, record in enumerate(records):
        known = record if isinstance(record, dict) else {}
        names = ("name", "ranks", "nodes", "ranksPerNode", "gpusPerRank", "numCycle", "type", "redop")
        run = runs.setdefault(tuple(str(known.get(name)) for name in names), Run(columns=Columns(unit_printed=True)))
        try:
            _amd_record(index, record, run)
        except ValueError as error:
            run.bad.append((index, str(error)))
    return list(runs.values())


def _amd_record(index: int, record: Any, run: Run) -> None:
    """Add one record.  Raises ValueError."""
    if not isinstance(record, dict):
        raise ValueError("the record is no object")
    run.test = str(record.get("name", ""))
    per_rank = max(1, _natural(record, "gpusPerRank")) if "gpusPerRank" in record else 1
    run.switches = {"num_threads": 1, "num_gpus_per_thread": per_rank}
    ranks, nodes = _natural(record, "ranks"), _natural(record, "nodes")
    per_node = _natural(record, "ranksPerNode") if "ranksPerNode" in record else 0
    run.launch = Launched(ranks or None, nodes or None, per_node or None)
    algbw, busbw = _number(record, "algBw"), _number(record, "busBw")
    wrong = str(record.get("wrong", "N/A")).strip()
    error = "N/A" if wrong == "N/A" else f"{finite_number(wrong):g}"
    bounds = ratio_bounds(f"{algbw:.6f}", f"{busbw:.6f}")
    block = Block(_number(record, "time"), algbw, busbw, error, bounds)
    redop = record.get("redop")
    in_place = str(record.get("inPlace")) in ("1", "True", "true")
    run.rows.append(
        Row(
            line=index,
            size=_natural(record, "size"),
            count=0,
            dtype=str(record.get("type", "")),
            redop=redop if isinstance(redop, str) else "",
            root=None,
            out_of_place=None if in_place else block,
            in_place=block if in_place else None,
        )
    )


def _ranks(document: dict[str, Any], config: dict[str, Any], switches: dict[str, int]) -> list[Rank]:
    """The device list; the devices of a process that lists only its first one are consecutive."""
    listed = _list(config, "devices") or _list(document, "ranks") or _list(document, "devices")
    ranks = [rank for rank in map(_rank, listed) if rank is not None]
    each = min(max(1, switches.get("num_threads", 1)) * max(1, switches.get("num_gpus_per_thread", 1)), 1024)
    if each == 1 or any(rank.rank % each for rank in ranks):
        return ranks
    return [
        Rank(rank.rank + i, rank.group, rank.host, rank.device + i, f"{rank.address}+{i}", rank.name)
        for rank in ranks
        for i in range(each)
    ]


def _rank(listed: Any) -> Rank | None:
    if not isinstance(listed, dict) or not isinstance(listed.get("rank"), int) or not 0 <= listed["rank"] < 10**7:
        return None
    group, device = listed.get("group"), listed.get("device")
    return Rank(
        listed["rank"],
        group if isinstance(group, int) else 0,
        str(listed.get("hostname", "")),
        device if isinstance(device, int) else 0,
        str(listed.get("device_hex", ""))[:40],
        str(listed.get("device_info", "")).strip()[:120],
    )


def _places(imported: Imported, in_results: bool) -> None:
    """Indices instead of line numbers."""
    prefix = "/results/" if in_results else "/"
    imported.bad_rows = [BadRow(bad.where.replace("line ", prefix), bad.what, bad.hint) for bad in imported.bad_rows]
    imported.flags = [Flag(code=flag.code, what=flag.what) for flag in imported.flags]


def _captured(batches: Batches, document: Any) -> None:
    start = document.get("start_time") if isinstance(document, dict) else None
    if isinstance(start, str) and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", start):
        for batch in batches.all():
            batch.environment = batch.environment.model_copy(update={"captured_at": start.replace(" ", "T")})


def _list(document: dict[str, Any], key: str) -> list[Any]:
    found = document.get(key)
    return found if isinstance(found, list) else []


def _natural(record: dict[str, Any], key: str) -> int:
    value = whole_number(str(record.get(key, "")))
    if isinstance(record.get(key), bool) or not 0 <= value < 2**62:
        raise ValueError(f"{key} is {shown(str(record.get(key)))}, not a whole number from 0")
    return value


def _number(record: Any, key: str) -> float:
    value = record.get(key) if isinstance(record, dict) else None
    try:
        number = finite_number(str(value))
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None
    if isinstance(value, bool) or number < 0:
        raise ValueError(f"{key} is {shown(str(value))}; it cannot be negative")
    return number


FORMAT = Format("nccl-tests-json", "nccl-tests -J report, rccl-tests JSON", matches, read)
