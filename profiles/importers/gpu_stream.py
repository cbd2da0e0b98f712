"""STREAM on devices (SuperBench gpu_stream): bandwidth of a device's own memory.

Recognised by rows ``STREAM_COPY_double_gpu_0_buffer_4294967296_block_128  6711.67 81.93`` (newer versions leave
``gpu_0`` out: the run sees one device).  Columns: GB of 10^9 bytes a second, percent of the theoretical peak (-1 = not
known).  COPY and SCALE count one read and one write, ADD and TRIAD two reads and one write.
Source: microsoft/superbenchmark micro_benchmarks/gpu_stream/gpu_stream.cu.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import finite_number
from profiles.importing.short_lines import short_lines
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import LinkObservation, Scalar

_TAG = (
    r"STREAM_(?P<kernel>COPY|SCALE|ADD|TRIAD)_(?P<dtype>\w+?)(?:_gpu_(?P<device>\d{1,4}))?"
    r"_buffer_(?P<size>\d{1,16})_block_(?P<block>\d{1,6})"
)
_ROW = re.compile(rf"^\s*{_TAG}\s+(?P<bandwidth>\S+)\s+(?P<percent>\S+)\s*$")
_BEGIN = re.compile(r"^.{0,60}STREAM_(?:COPY|SCALE|ADD|TRIAD)_\w{1,60}_block_\d+[ \t]+\S", re.MULTILINE)
_DEVICE = re.compile(r'^\s*Device (\d{1,4}): "([^"]+)"')
_LOOPS = re.compile(r"^\s*Number of loops: (\d{1,9})\s*$")


def matches(head: Head) -> bool:
    """Whether the text holds a row of the benchmark."""
    return _BEGIN.search(head.text) is not None


def _link(match: re.Match[str], loops: int | None, line: int) -> LinkObservation:
    bandwidth, percent = finite_number(match["bandwidth"]), finite_number(match["percent"])
    if bandwidth <= 0:
        raise ValueError(f"{bandwidth:g} is not a bandwidth")
    kernel = match["kernel"].casefold()
    detail: dict[str, Scalar] = {
        "kernel": kernel,
        "dtype": match["dtype"],
        "block_size": int(match["block"]),
        "counts": "read and write" if kernel in ("copy", "scale") else "two reads and one write",
    }
    if percent >= 0:
        detail["percent_of_peak"] = percent
    device = f"device:{int(match['device'] or 0)}"
    return LinkObservation(
        "device_memory",
        device,
        device,
        "one_way",
        int(match["size"]),
        bandwidth * 1e9,
        statistic="mean",
        num_samples=loops,
        method=f"stream {kernel}",
        detail=detail,
        row=line,
    )


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Every row as a link of a device to its own memory."""
    imported = Imported(tool="gpu_stream")
    links: list[LinkObservation] = []
    devices: dict[str, str] = {}
    loops: int | None = None
    for line in short_lines(files[0], imported):
        if row := _ROW.match(line.text):
            try:
                links.append(_link(row, loops, line.number))
            except ValueError as error:
                imported.bad(line.number, str(error), "check the line against the original output")
        elif device := _DEVICE.match(line.text):
            devices[device.group(1)] = device.group(2)
        elif count := _LOOPS.match(line.text):
            loops = int(count.group(1)) or None
        elif line.text.lstrip().startswith("STREAM_"):
            imported.bad(line.number, "the row is not complete", "was the line cut off?")
    batches = Batches()
    reported = next(iter(devices.values()), "")
    batches.of(environment_of(options, reported, num_devices=len(devices) or None, num_nodes=1)).links.extend(links)
    return finished(imported, batches, files[0], "no row with a bandwidth", "did the benchmark run to its end?")


FORMAT = Format("gpu-stream", "STREAM on devices, SuperBench gpu_stream (text)", matches, read)
