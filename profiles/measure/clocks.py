"""The state of the device at this moment: clock, power, temperature and throttle reasons.

NVIDIA: ``nvidia-smi --query-gpu``; AMD: ``rocm-smi --json``; CPU: /proc/cpuinfo.  A tool that is absent or answers
something else leaves the reading empty: a measurement never fails because of it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from profiles.measure.device import MeasuredDevice

LARGEST_MOVE = 0.02
"""A block whose clock moved by more than this part is flagged."""
_QUERY = "clocks.sm,power.draw,temperature.gpu,clocks_throttle_reasons.active,power.limit,driver_version"
_TOOL_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class ClockReading:
    """One look at the device; None and empty = not known."""

    clock_hz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttle_reasons: str = ""
    power_cap_w: float | None = None
    driver_version: str = ""

    def moved(self, after: ClockReading) -> float | None:
        """Relative change of the clock; None where either reading has none."""
        if not self.clock_hz or not after.clock_hz:
            return None
        return abs(after.clock_hz - self.clock_hz) / self.clock_hz


def read_clocks(device: MeasuredDevice) -> ClockReading:
    """What the vendor's tool says now."""
    if device.kind == "cuda":
        identity = str(getattr(device.properties, "uuid", "")) or None
        chosen = f"GPU-{identity}" if identity else str(device.device.index or 0)
        command = ("nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits", "-i", chosen)
        return nvidia_reading(_answer(command))
    if device.kind == "rocm":
        shown = ("--showclocks", "--showpower", "--showtemp", "--showmaxpower", "--showdriverversion")
        return amd_reading(_answer(("rocm-smi", "-d", str(device.device.index or 0), *shown, "--json")))
    if device.is_host:
        return host_reading(_cpuinfo())
    return ClockReading()


def nvidia_reading(answer: str) -> ClockReading:
    """One CSV line of nvidia-smi (clocks in MHz, power in W)."""
    cells = [cell.strip() for cell in answer.strip().splitlines()[0].split(",")] if answer.strip() else []
    if len(cells) != _QUERY.count(",") + 1:
        return ClockReading()
    clock_mhz, power_w, temperature_c, cap_w = (_number(cells[place]) for place in (0, 1, 2, 4))
    reasons = "" if re.fullmatch(r"0x0*[01]?", cells[3]) else cells[3]
    return ClockReading(_hz(clock_mhz), power_w, temperature_c, reasons, cap_w, cells[5])


def amd_reading(answer: str) -> ClockReading:
    """The JSON of rocm-smi, whose keys change between versions: found by what they mention."""
    try:
        cards = json.loads(answer)
    except ValueError:
        return ClockReading()
    if not isinstance(cards, dict):
        return ClockReading()
    found: dict[str, str] = {}
    for card in cards.values():
        if isinstance(card, dict):
            found |= {str(key).casefold(): str(value) for key, value in card.items()}
    clock_mhz = _first(found, "sclk clock speed")
    return ClockReading(
        _hz(clock_mhz),
        _first(found, "socket graphics package power", "average graphics package power"),
        _first(found, "sensor junction", "sensor edge"),
        "",
        _first(found, "max graphics package power"),
        next((value for key, value in found.items() if "driver version" in key), ""),
    )


def host_reading(cpuinfo: str) -> ClockReading:
    """Mean frequency of the cores."""
    mhz = [float(each) for each in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", cpuinfo, re.MULTILINE)]
    return ClockReading(clock_hz=_hz(sum(mhz) / len(mhz)) if mhz else None)


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _answer(command: tuple[str, ...]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TOOL_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _hz(mhz: float | None) -> float | None:
    return mhz * 1e6 if mhz else None


def _number(text: str) -> float | None:
    match = re.search(r"\d+(?:\.\d+)?", text)
    return float(match[0]) if match else None


def _first(found: dict[str, str], *mentions: str) -> float | None:
    for mention in mentions:
        for key, value in found.items():
            if mention in key and (number := _number(value)) is not None:
                return number
    return None
