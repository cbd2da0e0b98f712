"""Accelerators by PCI device number: names as in the public PCI ID database (pci-ids.ucw.cz)."""

from __future__ import annotations

_NAMES = {
    ("0x10de", "0x1db1"): "Tesla V100 SXM2 16GB",
    ("0x10de", "0x1db5"): "Tesla V100 SXM2 32GB",
    ("0x10de", "0x20b0"): "A100 SXM4 40GB",
    ("0x10de", "0x20b2"): "A100 SXM4 80GB",
    ("0x10de", "0x20b5"): "A100 PCIe 80GB",
    ("0x10de", "0x20f1"): "A100 PCIe 40GB",
    ("0x10de", "0x2330"): "H100 SXM5 80GB",
    ("0x10de", "0x2331"): "H100 PCIe",
    ("0x10de", "0x2335"): "H200 SXM 141GB",
    ("0x10de", "0x2342"): "GH200 96GB",
    ("0x10de", "0x26b9"): "L40S",
    ("0x10de", "0x2901"): "B200",
    ("0x10de", "0x2941"): "GB200",
    ("0x1002", "0x7408"): "AMD Instinct MI250X",
    ("0x1002", "0x740c"): "AMD Instinct MI250X",
    ("0x1002", "0x738c"): "AMD Instinct MI100",
    ("0x1002", "0x74a1"): "AMD Instinct MI300X",
    ("0x1002", "0x74a5"): "AMD Instinct MI325X",
}


def device_name(vendor: str, device: str) -> str:
    """The name; empty for a number that is not listed."""
    return _NAMES.get((vendor.lower(), device.lower()), "")
