"""Copies between host and devices: SuperBench gpu_copy, CUDA's bandwidthTest, bandwidth tests of ROCm and DTK.

Four dialects, recognised by their rows:
``gpu0_to_gpu1_write_by_sm 258.397`` (SuperBench gpu_copy; GB of 10^9 a second; ``_and_`` is both ways at once and the
sum of both; ``under_numa0`` names the host's memory);
``bandwidthTest-H2D-Pinned, Bandwidth = 13.1 GB/s, Time = 0.00061 s, Size = 8000000 bytes, NumDevsUsed = 1``
(CUDA sample ``--csv``; GB of 10^9, but the MB of CUDA 9 and older is 2^20);
``H2D_Bandwidth_pinned  1024kB  GB/sec  16.3342 ...`` (rocm bandwidth test; sizes in kB of 1024, ``+064By`` bytes;
columns median mean stddev min max) with times in ms in a second table, which is the same thing again;
``512 MB  17745.799  30.253  17742.546 ...`` under ``HIP Bandwidth Test Type: H2D with host pinned`` (Hygon DTK;
sizes of 1024, columns average time in us, GB of 10^9, then the same for minimum and maximum).
Traps: copies inside one device count each byte once in gpu_copy, twice (read and write) in bandwidthTest D2D.
Source: microsoft/superbenchmark micro_benchmarks/gpu_copy_performance; NVIDIA/cuda-samples bandwidthTest.cu;
ROCm/HIP samples hipBusBandwidth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import finite_number, whole_number
from profiles.importing.printed_sizes import printed_size_bytes
from profiles.importing.short_lines import short_lines
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import Direction, LinkKind, LinkObservation, Scalar
from profiles.observations.timing import Statistic

_PLACE = r"(?:cpu|gpu\d{1,4}|gpu_all)"
_COPY = re.compile(
    rf"^\s*(?P<first>{_PLACE})_(?P<how>to|and)_(?P<second>{_PLACE})(?:_(?P<access>read|write))?_by_"
    r"(?:gpu(?P<worker>\d{1,4})_using_)?(?P<by>sm|dma)(?:_under_numa(?P<numa>\d{1,4}))?\s+(?P<value>\S+)\s*$"
)
_CUDA = re.compile(
    r"^\s*bandwidthTest-(?P<way>H2D|D2H|D2D)(?:-(?P<memory>\w+))?, Bandwidth = (?P<value>\S+) (?P<unit>\S+), "
    r"Time = (?P<time>\S+) s, Size = (?P<size>\S+) bytes, NumDevsUsed = (?P<devices>\S+)"
)
_ROCM = re.compile(
    r"^\s*(?P<way>H2D|D2H|D2D|Bidir)_(?P<what>Bandwidth|Time)_?(?P<memory>\w*)\s+(?P<size>\+?\d+(?:By|kB))\*?\s+"
    r"(?P<unit>\S+)\s+(?P<values>\S.*)$"
)
_DTK_TYPE = re.compile(r"HIP Bandwidth Test Type: (?P<way>H2D|D2H|D2D)(?: with host (?P<memory>\w+))?")
_DTK = re.compile(r"^\s*(?P<size>\d+ (?:B|KB|MB|GB))\s+(?P<values>[\d.]+(?:\s+\S+){5})\s*$")
_DEVICE = re.compile(r"^\s*Device ?\d{1,3}: (.+?)\s*$|^\s*Device: ?(?:deviceId.*Name=)?(.+?) Mem=")
_SHAPES = (
    re.compile(
        rf"^.{{0,60}}{_PLACE}_(?:to|and)_{_PLACE}(?:_read|_write)?_by_(?:gpu\d+_using_)?(?:sm|dma)(?:_under_numa\d+)? ",
        re.M,
    ),
    re.compile(r"^.{0,60}bandwidthTest-(?:H2D|D2H|D2D)[^,\n]{0,20}, Bandwidth = ", re.M),
    re.compile(r"^.{0,60}(?:H2D|D2H|D2D)_Bandwidth_\w+[ \t]+\+?\d+(?:By|kB)\*?[ \t]+GB/sec", re.M),
    _DTK_TYPE,
)
_KINDS: dict[str, LinkKind] = {"H2D": "host_to_device", "D2H": "device_to_host", "D2D": "device_memory"}
_GIGABYTE = 1e9
_CUDA_UNITS = {"GB/s": 1e9, "MB/s": float(1 << 20)}


def matches(head: Head) -> bool:
    """Whether the text holds a row of one of the three dialects."""
    return any(shape.search(head.text) for shape in _SHAPES)


def _superbench(match: re.Match[str], line: int) -> LinkObservation | str:
    bandwidth = _positive(match["value"]) * _GIGABYTE
    source, target = _place(match["first"], match["numa"]), _place(match["second"], match["numa"])
    both = match["how"] == "and"
    same = source == target and source != "device:all"
    kind: LinkKind = "device_memory" if same else "device_to_device"
    if match["first"] == "cpu":
        kind = "host_to_device"
    elif match["second"] == "cpu":
        kind = "device_to_host"
    detail: dict[str, Scalar] = {"copied_by": "sm" if match["by"] == "sm" else "copy engine"}
    access = match["access"]
    if match["worker"] and match["first"] != match["second"] and "cpu" not in (match["first"], match["second"]):
        access = "write" if match["first"] == f"gpu{match['worker']}" else "read"
    if access:
        detail["access"] = access
    if "gpu_all" in (match["first"], match["second"]):
        detail["all_devices_at_once"] = True
    if same:
        detail["counts"] = "copied bytes"
        if both:
            detail["copies_at_once"] = 2
    direction: Direction = "both_ways" if both and not same else "one_way"
    return LinkObservation(
        kind, source, target, direction, None, bandwidth, method="superbench gpu_copy", detail=detail, row=line
    )


def _place(name: str, numa: str | None) -> str:
    if name == "cpu":
        return f"host:{int(numa) if numa else 0}"
    return "device:all" if name == "gpu_all" else f"device:{int(name.removeprefix('gpu'))}"


def _cuda(match: re.Match[str], line: int) -> LinkObservation | str:
    if match["unit"] not in _CUDA_UNITS:
        raise ValueError(f"the unit '{match['unit'][:20]}' is not known")
    size_bytes, devices = whole_number(match["size"]), whole_number(match["devices"])
    bandwidth = _positive(match["value"], zero=True) * _CUDA_UNITS[match["unit"]]
    if size_bytes < 1 or devices < 1:
        raise ValueError(f"{size_bytes} bytes on {devices} devices")
    if bandwidth == 0:
        return "bandwidth printed as 0.0"
    detail: dict[str, Scalar] = {"devices": devices} if devices > 1 else {}
    if match["memory"]:
        detail["host_memory"] = match["memory"].casefold()
    if match["way"] == "D2D":
        detail["counts"] = "read and write"
    return _host_link(match["way"], size_bytes, bandwidth, "mean", "cuda bandwidthTest", detail=detail, line=line)


def _rocm(match: re.Match[str], line: int) -> LinkObservation | str:
    if match["what"] == "Time":
        return "the same copy as a time"
    if match["way"] not in _KINDS or match["unit"] != "GB/sec":
        raise ValueError(f"{match['way']} in '{match['unit'][:20]}' is not understood")
    cells = match["values"].split()
    if len(cells) != 5:
        raise ValueError(f"{len(cells)} values where the header has median, mean, stddev, min and max")
    median, mean, deviation, low, high = (_positive(cell, zero=True) for cell in cells)
    if median == 0:
        return "bandwidth printed as 0.0000"
    digits = int(match["size"].lstrip("+").removesuffix("By").removesuffix("kB")[:12])
    detail: dict[str, Scalar] = {
        "mean_bytes_per_s": mean * _GIGABYTE,
        "std_bytes_per_s": deviation * _GIGABYTE,
        "min_bytes_per_s": low * _GIGABYTE,
        "max_bytes_per_s": high * _GIGABYTE,
    }
    if match["memory"]:
        detail["host_memory"] = match["memory"]
    size_bytes = digits * 1024 if match["size"].endswith("kB") else digits
    return _host_link(
        match["way"], size_bytes, median * _GIGABYTE, "median", "rocm bandwidth test", detail=detail, line=line
    )


def _dtk(match: re.Match[str], test: re.Match[str], line: int) -> LinkObservation | str:
    """``test`` is the heading that names the way."""
    time_us, bandwidth, *_ = (_positive(cell, zero=True) for cell in match["values"].split())
    if time_us == 0:
        return "time printed as 0.000"
    size_bytes, _ = printed_size_bytes(match["size"])
    detail: dict[str, Scalar] = {"time_s": time_us / 1e6}
    if test["memory"]:
        detail["host_memory"] = test["memory"]
    if test["way"] == "D2D":
        detail["counts"] = "copied bytes"
    # The time has more digits than the bandwidth of a small copy; where both are sound they agree.
    exact = size_bytes / (time_us / 1e6)
    if abs(exact - bandwidth * _GIGABYTE) > 0.0006 * _GIGABYTE + 0.01 * exact:
        raise ValueError(f"{match['size']} in {time_us:g} us is not {bandwidth:g} GB/s")
    return _host_link(test["way"], size_bytes, exact, "mean", "dtk bandwidth test", detail=detail, line=line)


def _host_link(
    way: str,
    size_bytes: int,
    bandwidth: float,
    statistic: Statistic,
    method: str,
    *,
    detail: dict[str, Scalar],
    line: int,
) -> LinkObservation:
    source, target = ("host:0" if end == "H" else "device:0" for end in (way[0], way[2]))
    return LinkObservation(
        _KINDS[way],
        source,
        target,
        "one_way",
        size_bytes,
        bandwidth,
        statistic=statistic,
        method=method,
        detail=detail,
        row=line,
    )


def _positive(text: str, zero: bool = False) -> float:
    value = finite_number(text)
    if value < 0 or (value == 0 and not zero):
        raise ValueError(f"{value:g} is not a bandwidth")
    return value


_DIALECTS: tuple[tuple[str, re.Pattern[str], Callable[..., LinkObservation | str]], ...] = (
    ("superbench-gpu-copy", _COPY, _superbench),
    ("cuda-bandwidthTest", _CUDA, _cuda),
    ("rocm-bandwidth-test", _ROCM, _rocm),
)
_BROKEN = re.compile(r"^\s*(?:bandwidthTest-|[HD]2[HD]_Bandwidth|(?:cpu|gpu\w*)_(?:to|and)_\w+_by_)")


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Every row as a link; the tool is the dialect of the first row."""
    imported = Imported(tool="")
    links: list[LinkObservation] = []
    device, test = "", None
    for line in short_lines(files[0], imported):
        test = _DTK_TYPE.search(line.text) or test
        found: tuple[str, Callable[..., LinkObservation | str], re.Match[str]] | None
        found = next(((name, make, match) for name, row, make in _DIALECTS if (match := row.match(line.text))), None)
        if found is None and test is not None and (row := _DTK.match(line.text)):
            found = ("dtk-bandwidth-test", partial(_dtk, test=test), row)
        if found is None:
            if named := _DEVICE.match(line.text):
                device = device or named.group(1) or named.group(2)
            elif _BROKEN.match(line.text):
                imported.bad(line.number, "the row is not complete", "was the line cut off?")
            continue
        imported.tool = imported.tool or found[0]
        try:
            link = found[1](found[2], line=line.number)
        except ValueError as error:
            imported.bad(line.number, str(error), "check the line against the original output")
            continue
        if isinstance(link, str):
            imported.skip(link)
        else:
            links.append(link)
    batches = Batches()
    batches.of(environment_of(options, device, num_nodes=1)).links.extend(links)
    return finished(imported, batches, files[0], "no row with a bandwidth", "did the benchmark run to its end?")


FORMAT = Format("gpu-copy", "copies host-device: SuperBench gpu_copy, CUDA bandwidthTest, ROCm (text)", matches, read)
