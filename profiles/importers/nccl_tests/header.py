"""The lines around an nccl-tests table: versions, switches, and the device of every rank.

    # nccl-tests version 2.18.0 nccl-headers=22907 nccl-library=22907
    # Collective test starting: all_reduce_perf
    # nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 ...
    #  Rank  0 Group  0 Pid   6899 on  host device  0 [0000:04:00] NVIDIA H100 80GB HBM3

and what NCCL itself or rccl-tests write into the same log.  Host names are used to count nodes and go no further.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_RANK = re.compile(
    r"Rank\s+(\d{1,7})(?:\s+Group\s+(-?\d{1,9}))?(?:\s+Pid\s+\d+)?\s+on\s+(\S+)\s+device\s+(\d{1,4})"
    r"\s+\[([^\]]{0,40})\]\s*(.*)$"
)
_STARTING = re.compile(r"Collective test (starting|concluded):\s*(\S+)")
_COMMAND = re.compile(
    r"(?<![\w.])(all_?reduce(?:_bias)?|all_?gather|reduce_?scatter|all_?to_?allv?|send_?recv|broadcast|reduce|gather"
    r"|scatter|hypercube)_perf(?:_mpi)?\b(?P<rest>[^|;&<>\"'`]*)",
    re.IGNORECASE,
)
_TESTS_VERSION = re.compile(r"nccl-tests version (\S+)(?:\s+nccl-headers=(\d+))?(?:\s+nccl-library=(\d+))?")
_RCCL_TESTS = re.compile(r"rccl-tests: Version (\S+)")
_NCCL = re.compile(r"(?<![RA-Za-z])NCCL version (\d+\.\d+(?:\.\d+)?)(?:\+(cuda|hip)(\d+(?:\.\d+)*))?")
_RCCL = re.compile(r"RCCL version\s*:?\s*(\d+\.\d+(?:\.\d+)?)(?:\+hip(\d+(?:\.\d+)*))?")
_ROCM = re.compile(r"ROCm version\s*:\s*(\d+\.\d+(?:\.\d+)*)")
_COMPILED_CUDA = re.compile(r"compiled with CUDA (\d+\.\d+)")
_NETWORK = re.compile(r"NCCL INFO Using network ([\w.-]+(?: [A-Z][\w.-]+)?)\s*$")
_SWITCHES = {
    # rccl-tests of 2019 to 2023 prints colons and ``warmupIters``.
    "num_threads": r"nThreads?:? (\d+)",
    "num_gpus_per_thread": r"nGpus:? (\d+)",
    "min_bytes": r"minBytes:? (\d+)",
    "max_bytes": r"maxBytes:? (\d+)",
    "warmup_iterations": r"warmup ?[iI]ters: (\d+)",
    "iterations": r"(?<!warmup )(?<!agg )iters: (\d+)",
    "aggregated_iterations": r"agg iters: (\d+)",
    "validation": r"validation: (\d+)",
    "graph_launches": r"graph: (\d+)",
}
_OPTIONS = {"-z": "blocking", "-G": "graph_launches", "-a": "average", "-R": "buffer_registration", "-n": "iterations"}
_LONG = {
    "--blocking": "blocking",
    "--cudagraph": "graph_launches",
    "--hipgraph": "graph_launches",
    "--average": "average",
    "--local_register": "buffer_registration",
    "--iters": "iterations",
}


@dataclass(frozen=True, slots=True)
class Rank:
    """One line of the device list."""

    rank: int
    group: int
    host: str
    device: int
    address: str
    name: str


@dataclass(frozen=True, slots=True)
class Versions:
    """What a line says about versions; empty = nothing."""

    tests: str = ""
    library: str = ""
    library_version: str = ""
    runtime: str = ""
    transport: str = ""


def rank_of_line(text: str) -> Rank | None:
    """The rank that a line of the device list describes; None for other lines."""
    if "device" not in text or "Rank" not in text:
        return None
    match = _RANK.search(text)
    if match is None:
        return None
    rank, group, host, device, address, name = match.groups()
    return Rank(int(rank), int(group or 0), host, int(device), address, re.sub(r"[`*|]+$", "", name).strip()[:120])


def program_of_line(text: str) -> tuple[str, str] | None:
    """("starting" or "concluded", name of the test program); None for other lines."""
    match = _STARTING.search(text) if "Collective test" in text else None
    return (match.group(1), match.group(2)) if match else None


def command_of_line(text: str) -> tuple[str, dict[str, int], str] | None:
    """Test program, the switches that matter, and all switches as written; None where no program is named.

    ``... all_reduce_perf -b 8 -e 8G -z 1`` gives ("all_reduce_perf", {"blocking": 1}, "-b 8 -e 8G -z 1").
    """
    match = _COMMAND.search(text) if "_perf" in text else None
    if match is None:
        return None
    words = match.group("rest").split()
    known: dict[str, int] = {}
    written: list[str] = []
    for index, word in enumerate(words):
        if not word.startswith("-") and not (written and words[index - 1].startswith("-")):
            break
        written.append(word)
        name, _, value = word.partition("=")
        option = _LONG.get(name) or _OPTIONS.get(name) or _OPTIONS.get(name[:2])
        if option is None or (name.startswith("--") and name not in _LONG):
            continue
        if not value:
            value = name[2:] if name[:2] in _OPTIONS and len(name) > 2 and not name.startswith("--") else ""
            value = value or (words[index + 1] if index + 1 < len(words) else "")
        if value.isascii() and value.isdigit() and len(value) < 8:
            known[option] = int(value)
    return match.group().split()[0], known, " ".join(written)[:200]


def switches_of_line(text: str) -> dict[str, int] | None:
    """The settings in the ``# nThread ...`` line; None for other lines.  "blocking" is in its own line."""
    if "nThread" in text and "minBytes" in text:
        found = {name: re.search(pattern, text) for name, pattern in _SWITCHES.items()}
        return {name: int(match.group(1)) for name, match in found.items() if match and len(match.group(1)) <= 18}
    if "Blocking Enabled" in text:
        return {"blocking": 1}
    return None


def colons_in_settings(text: str) -> bool:
    """Whether the line of settings is the one of rccl-tests (``nThread: 1``)."""
    return re.search(r"nThreads?: \d", text) is not None


def versions_of_line(text: str) -> Versions | None:
    """Versions and transport that a line names; None for most lines."""
    if "ersion" not in text and "Using network" not in text:
        return None
    if match := _TESTS_VERSION.search(text):
        code = match.group(3) or match.group(2) or ""
        return Versions(tests=match.group(1), library="nccl", library_version=library_version(code))
    if match := _RCCL_TESTS.search(text):
        return Versions(tests=match.group(1) if match.group(1) != ":+" else "", library="rccl")
    if match := _RCCL.search(text):
        return Versions(library="rccl", library_version=match.group(1), runtime=_runtime("hip", match.group(2)))
    if match := _NCCL.search(text):
        cuda = _COMPILED_CUDA.search(text)
        kind, number = (match.group(2), match.group(3)) if match.group(2) else ("cuda", cuda.group(1) if cuda else None)
        library = "rccl" if kind == "hip" else "nccl"
        return Versions(library=library, library_version=match.group(1), runtime=_runtime(kind, number))
    if match := _ROCM.search(text):
        return Versions(library="rccl", runtime=f"ROCm {match.group(1)}")
    if match := _NETWORK.search(text):
        return Versions(transport=match.group(1))
    return None


def library_version(code: str) -> str:
    """Version for the number that ``ncclGetVersion`` returns: 22903 is 2.29.3, 2804 is 2.8.4; empty if it is none."""
    if not (code.isascii() and code.isdigit() and 4 <= len(code) <= 6):
        return ""
    number = int(code)
    major, rest = divmod(number, 10000 if number >= 10000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _runtime(kind: str, number: str | None) -> str:
    if not number:
        return ""
    return f"{'HIP' if kind == 'hip' else 'CUDA'} {number}"
