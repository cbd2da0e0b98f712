"""How fast is one NVLink or xGMI link of this generation?  One-way, from the vendors' totals over their link counts."""

from __future__ import annotations

from profiles.device import Provenance
from profiles.topology import LinkType

_NVLINK = {"volta": 25e9, "ampere": 25e9, "hopper": 25e9, "blackwell": 50e9, "rubin": 50e9}
"""V100 6 links 300 GB/s, A100 12 and 600, H100 18 and 900, B200 18 and 1800, Rubin 36 and 3600; both ways together."""
_XGMI = {"cdna2": 50e9, "cdna3": 64e9, "cdna4": 76.5e9}
"""MI250X 100 GB/s, MI300X 128, MI355X 153 a link, both ways together."""

NVLINK_SOURCE = Provenance(
    confidence="A",
    source="NVIDIA V100, A100, H100, B200 data sheets: NVLink total over number of links, one way is half",
)
XGMI_SOURCE = Provenance(
    confidence="A", source="AMD CDNA 2, CDNA 3 and MI355X data sheets: Infinity Fabric link, one way is half"
)
SCALE_UP_LATENCY_S = {"switch": 1.9e-6, "mesh": 1.9e-6, "pcie": 2.5e-6}
"""A prior for one step.  Source: NVIDIA/nccl 2.30.7 src/graph/tuning.cc, hardware latency of the ring with LL128."""


def link_rate_bytes_per_s(link: LinkType, architecture: str) -> tuple[float, Provenance] | None:
    """Rate of one link and where it comes from; None for a generation that is not listed."""
    if link == "nvlink" and architecture in _NVLINK:
        return _NVLINK[architecture], NVLINK_SOURCE
    if link == "xgmi" and architecture in _XGMI:
        return _XGMI[architecture], XGMI_SOURCE
    return None
