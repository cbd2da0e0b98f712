"""perftest: ib_write_bw, ib_read_bw, ib_send_bw, ib_atomic_bw, and the same with ``_lat`` (OFED and rdma-core).

Recognised by the header ``#bytes #iterations BW peak[..] BW average[..] MsgRate[Mpps]`` or ``#bytes #iterations
t_min[usec] ...``.  Units stand in the header: ``MB/sec`` and ``MiB/sec`` are both 2^20 bytes, ``Gb/sec`` is 10^9 bits;
times are usec (one way for send and write, a round trip for read and atomic).  Bidirectional bandwidth is the sum.
Traps: both ends of a loopback run print the same rows into one log (kept once); ``BW peak`` is 0 in runs by duration;
``-a`` prints a row for each size; several queue pairs print several address lines.
Source: linux-rdma/perftest src/perftest_parameters.h (RESULT_FMT*) and perftest_parameters.c (format_factor 0x100000).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiles.errors import DocumentInvalid
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import finite_number, whole_number
from profiles.importing.short_lines import short_lines
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import LinkKind, LinkObservation, Scalar

_HEADER = re.compile(r"[ \t>]*#bytes\s+(?:#sl\s+)?#iterations\s+(?:BW |t_)")
_HEADER_BEHIND_PREFIX = re.compile(r"(?:^|[\s>:])#bytes\s+(?:#sl\s+)?#iterations\s+(?:BW |t_)\w+ ?\[", re.MULTILINE)
_COLUMN = re.compile(
    r"#(?:bytes|sl|iterations)|(?:BW (?:peak|average|Port\d)|MsgRate(?: Port\d)?|CPU_Util"
    r"|t_(?:min|max|typical|avg|stdev)|99(?:\.9)?%+ percentile)\s?\[[^\]]*\]|tps average(?:\[[^\]]*\])?"
)
_BYTES_PER_S = {"MB/sec": 1 << 20, "MiB/sec": 1 << 20, "Gb/sec": 1e9 / 8, "Gbps": 1e9 / 8}
_TITLE = re.compile(
    r"^\s*(?P<verb>RDMA_Write|RDMA_Read|Send|Atomic|\w*Raw Ethernet\w*)\b.*?(?P<what>BW|Latency)\b.* Test"
)
_SETTING = re.compile(r"(\w[\w.* ]*?)\s*: (\S+)")
_SETTINGS = {"Number of qps": "queue_pairs", "Connection type": "connection", "Mtu": "mtu", "TX depth": "tx_depth"}
_ADDRESS = re.compile(r"^\s*(local|remote) address: LID (\S+)")
_GID = re.compile(r"^\s*GID: (\S+)")
_GPU = re.compile(r"(?:Name: (AMD [^,\]]+)|device name\W+(NVIDIA [^\]\"]+|Tesla [^\]\"]+))")
_GPU_MEMORY = re.compile(r"GPU buffer|cuMemAlloc|Use (?:ROCm|CUDA) memory\s*: ON|--?use_(?:cuda|rocm)[= ]\d")
_NUMERIC = re.compile(r"[-+]?\.?\d|[-+]?(?:nan|inf)", re.IGNORECASE)


def matches(head: Head) -> bool:
    """Whether the text holds a column header of perftest."""
    return _HEADER_BEHIND_PREFIX.search(head.text) is not None


@dataclass(slots=True)
class _Run:
    """What one side printed above its table."""

    verb: str = ""
    both_ways: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    ends: dict[str, set[str]] = field(default_factory=lambda: {"local": set(), "remote": set()})
    side: str = ""
    columns: list[str] = field(default_factory=list)
    on_device: bool = False

    @property
    def kind(self) -> LinkKind:
        """Loopback where both ends have the same address."""
        return "loopback" if self.ends["local"] and self.ends["local"] == self.ends["remote"] else "network"

    @property
    def transport(self) -> str:
        """IB, RoCE, iWARP or EFA by link and connection type."""
        if self.settings.get("Connection type") == "SRD":
            return "EFA"
        if self.settings.get("Transport type") == "IW":
            return "iWARP"
        return {"IB": "IB", "Ethernet": "RoCE"}.get(self.settings.get("Link type", ""), "")


@dataclass(slots=True)
class _Reader:
    file: SourceFile
    options: ReadOptions
    imported: Imported
    batches: Batches = field(default_factory=Batches)
    run: _Run = field(default_factory=_Run)
    device: str = ""
    seen: set[tuple[str, ...]] = field(default_factory=set)

    def line(self, number: int, text: str) -> None:
        if gpu := _GPU.search(text):
            self.device = (gpu.group(1) or gpu.group(2)).strip()
        if title := _TITLE.match(text):
            # The two sides of a loopback run print their headings into each other: a heading without rows is kept.
            addresses = self.run.ends if not self.run.columns else _Run().ends
            self.run = _Run(title["verb"], "Bidirectional" in text, ends=addresses, on_device=self.run.on_device)
        elif _HEADER.match(text):
            self.header(number, text)
        elif address := _ADDRESS.match(text):
            self.address(address.group(1), address.group(2))
        elif gid := _GID.match(text):
            self.run.ends.get(self.run.side, set()).add(gid.group(1))
        elif self.run.columns and re.match(r"\s*[-+]?\d", text):
            self.row(number, text.split())
        else:
            self.run.on_device = self.run.on_device or _GPU_MEMORY.search(text) is not None
            self.run.settings.update({name.strip(): value for name, value in _SETTING.findall(text)})

    def address(self, side: str, identifier: str) -> None:
        self.run.side = side
        if identifier.strip("0x") != "":
            self.run.ends[side].add(f"LID {identifier}")

    def header(self, number: int, text: str) -> None:
        plain = " ".join(text.replace(">", " ").split())
        columns, rest = _COLUMN.findall(plain), _COLUMN.sub("", plain).strip()
        if rest:
            raise DocumentInvalid(
                f"the column '{rest[:40]}' is not one that perftest prints",
                where=f"{self.file.where}:{number}",
                hint="give the unchanged output of the tool",
            )
        for column in columns:
            unit = column.partition("[")[2].rstrip("]")
            if (column.startswith("BW") and unit not in _BYTES_PER_S) or (column.startswith("t_") and unit != "usec"):
                raise DocumentInvalid(
                    f"the unit '{unit}' is not known",
                    where=f"{self.file.where}:{number}",
                    hint="MB/sec, MiB/sec and Gb/sec are read, and usec (run without --report-cycles)",
                )
        self.run.columns = columns

    def row(self, number: int, cells: list[str]) -> None:
        columns = self.run.columns
        if len(cells) != len(columns):
            if len(cells) == 1 or _NUMERIC.match(cells[1]):
                self.imported.bad(number, f"{len(cells)} columns, the header has {len(columns)}", "is it cut off?")
            return
        key = (self.run.verb, *columns, *cells)
        if key in self.seen:
            self.imported.skip("the other side's copy of a row")
            return
        try:
            self.store(number, dict(zip(columns, cells, strict=True)))
            self.seen.add(key)
        except ValueError as error:
            self.imported.bad(number, str(error), "check the line against the original output")

    def store(self, number: int, cells: dict[str, str]) -> None:
        size_bytes, iterations = whole_number(cells["#bytes"]), whole_number(cells["#iterations"])
        if size_bytes < 1 or iterations < 1:
            raise ValueError(f"{size_bytes} bytes, {iterations} iterations")
        values = {name: finite_number(cell) for name, cell in cells.items()}
        negative = next((name for name, value in values.items() if value < 0), None)
        if negative is not None:
            raise ValueError(f"{negative} is {values[negative]:g}")
        bandwidth, latency, statistic, detail = _measured(values, size_bytes)
        if not bandwidth and not latency:
            self.imported.skip("the average was printed as 0.00")
            return
        self.check_rate(number, bandwidth, detail, size_bytes)
        detail.update(self.run_detail())
        if latency and self.run.verb in ("RDMA_Read", "Atomic"):
            detail["latency_is"] = "round trip"
        environment = environment_of(self.options, self.device, transport=self.run.transport, num_nodes=self.nodes())
        same = self.run.kind == "loopback"
        self.batches.of(environment).links.append(
            LinkObservation(
                self.run.kind,
                "nic:0" if same else "node:0",
                "nic:0" if same else "node:1",
                "both_ways" if self.run.both_ways else "one_way",
                size_bytes,
                bandwidth,
                latency,
                statistic="median" if statistic == "t_typical" else "mean",
                num_samples=iterations,
                method=f"perftest {self.run.verb}".strip(),
                detail=detail,
                row=number,
            )
        )

    def check_rate(self, number: int, bandwidth: float | None, detail: dict[str, Scalar], size_bytes: int) -> None:
        """Bandwidth and message rate say the same thing twice: a contradiction means an edited or foreign unit."""
        by_messages = float(detail.get("message_rate_per_s", 0)) * size_bytes
        if bandwidth and by_messages and abs(bandwidth / by_messages - 1) > 0.1:
            what = f"the bandwidth of {size_bytes} bytes is {bandwidth / by_messages:.2f} times message rate x size"
            self.imported.flag("rate-mismatch", what, number)

    def nodes(self) -> int | None:
        """One node for a loopback; otherwise the log does not say."""
        return 1 if self.run.kind == "loopback" else None

    def run_detail(self) -> dict[str, Scalar]:
        detail: dict[str, Scalar] = {}
        for setting, name in _SETTINGS.items():
            value = self.run.settings.get(setting, "").removesuffix("[B]")
            if value:
                detail[name] = int(value) if value.isdecimal() and len(value) < 10 else value[:20]
        if self.run.on_device:
            detail["buffers"] = "device"
        return detail


def _measured(values: dict[str, float], size_bytes: int) -> tuple[float | None, float | None, str, dict[str, Scalar]]:
    """(bandwidth, latency, which column, detail) of one row.  Raises ValueError when the columns hold neither."""
    detail: dict[str, Scalar] = {}
    for name, value in values.items():
        unit = name.partition("[")[2].rstrip("]")
        if name.startswith("BW average"):
            detail["message_rate_per_s"] = round(
                next((values[key] for key in values if key == "MsgRate[Mpps]"), 0) * 1e6, 3
            )
            peak = next((value for key, value in values.items() if key.startswith("BW peak")), 0)
            if peak:
                detail["peak_bytes_per_s"] = peak * _BYTES_PER_S[unit]
            return value * _BYTES_PER_S[unit], None, "BW average", detail
    for name in ("t_typical", "t_avg"):
        if f"{name}[usec]" in values:
            for other, value in values.items():
                if other.endswith("[usec]") and other != f"{name}[usec]":
                    plain = other.removesuffix("[usec]").strip().replace("%", "").replace(" percentile", "")
                    detail[plain if plain.startswith("t_") else f"p{plain}"] = value / 1e6
            return None, values[f"{name}[usec]"] / 1e6, name, detail
    raise ValueError(f"no average among the columns (size {size_bytes})")


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Every row as a link; the environment per run (device, transport)."""
    imported = Imported(tool="perftest")
    reader = _Reader(files[0], options, imported)
    for line in short_lines(files[0], imported):
        reader.line(line.number, line.text)
    hint = "check that the benchmark ran to its end"
    return finished(imported, reader.batches, files[0], "no row of results could be stored", hint)


FORMAT = Format("perftest", "perftest: ib_write_bw and its relatives (text)", matches, read)
