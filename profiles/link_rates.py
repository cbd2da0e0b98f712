"""The one-way rate of one NVLink or xGMI link of a generation, from the catalogue of architectures."""

from __future__ import annotations

from profiles.catalogue.architectures import architectures
from profiles.device import Provenance
from profiles.topology import LinkType


def link_rate_bytes_per_s(link: LinkType, architecture: str) -> tuple[float, Provenance] | None:
    """Rate of one link and where it comes from; None for a generation that is not listed."""
    known = {"nvlink": architectures().nvlink_bytes_per_s, "xgmi": architectures().xgmi_bytes_per_s}.get(link)
    if known is None or architecture not in known.values:
        return None
    return known.values[architecture], known.provenance
