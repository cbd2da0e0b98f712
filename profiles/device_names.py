"""Catalogue devices by the names that drivers and tools print, such as "NVIDIA H100 80GB HBM3".

A name is recognised only if it is certain; memory size and form factor decide between variants.  Unknown = None: an
observation of an unknown device is stored under its reported name and never used for another device.
"""

from __future__ import annotations

import re

_RULES: tuple[tuple[str, str], ...] = (
    (r"h100.*pcie|pcie.*h100", "h100-pcie-80gb"),
    (r"\bh100 ?(sxm|80 ?gb hbm3|hbm3)|h100_sxm|dgx.?h100|^(nvidia )?h100$|^h100[_ -]dgx$", "h100-sxm5-80gb"),
    (r"(?<!g)\bh200(?! ?nvl)|^h200_sxm", "h200-sxm-141gb"),
    (r"h800", "h800-sxm5-80gb"),
    (r"\bh20\b", "h20-96gb"),
    (r"gh200(?!.*144)", "gh200-96gb"),
    (r"\bgb200", "gb200"),
    (r"\bgb300", "gb300"),
    (r"\bb200", "b200-sxm-180gb"),
    (r"\bb300", "b300-sxm-288gb"),
    (r"a100.*(pcie|pci-e).*40|a100-pcie-40", "a100-pcie-40gb"),
    (r"a100.*(pcie|pci-e)", "a100-pcie-80gb"),
    (r"a100.*40 ?gb", "a100-sxm4-40gb"),
    (r"a100.*(sxm|80 ?gb|dgx)|a100_sxm|^a100$", "a100-sxm4-80gb"),
    (r"a800.*(sxm|80)|^a800$", "a800-sxm4-80gb"),
    (r"\bl40s\b", "l40s"),
    (r"\bl4\b", "l4"),
    (r"rtx.?4090(?! ?(d\b|laptop))", "rtx-4090"),
    (r"rtx.?3090(?! ?(ti|laptop))", "rtx-3090"),
    (r"rtx.?a6000\b", "rtx-a6000"),
    (r"rtx.?a5000\b(?!.*laptop)", "rtx-a5000"),
    (r"\ba40\b(?!-)", "a40"),
    (r"\ba10g\b", "a10g"),
    (r"v100.*sxm2.*32|v100.*32.*sxm2", "v100-sxm2-32gb"),
    (r"mi300x", "mi300x"),
    (r"mi325x", "mi325x"),
    (r"mi355x", "mi355x"),
    (r"mi25?0x", "mi250x-gcd"),
    (r"ascend.?910b1\b", "ascend-910b1"),
    (r"ascend.?910b2\b", "ascend-910b2"),
    (r"ascend.?910b3\b", "ascend-910b3"),
    (r"ascend.?910b4\b", "ascend-910b4"),
    (r"ascend.?910(c|_93\d*)\b", "ascend-910c-die"),
    (r"tpu.?v6e|tpu v6 lite", "tpu-v6e"),
    (r"tpu.?v5p", "tpu-v5p"),
    (r"tpu.?(v5e|v5 lite)", "tpu-v5e"),
    (r"tpu.?v4", "tpu-v4"),
    (r"trn1|trainium1", "trainium1"),
    (r"trn2|trainium2", "trainium2"),
    (r"gaudi.?2|hl-?225", "gaudi2"),
    (r"gaudi.?3|hl-?325", "gaudi3"),
    (r"\bb60\b", "arc-pro-b60"),
)
_COMPILED = tuple((re.compile(pattern), name) for pattern, name in _RULES)


def catalogue_device(reported: str) -> str | None:
    """Catalogue name of a device as reported by a driver or tool; None if it is not certain."""
    plain = reported.casefold().strip()
    return next((name for pattern, name in _COMPILED if pattern.search(plain)), None)
