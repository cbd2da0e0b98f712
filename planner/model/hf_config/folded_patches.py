"""Patches that linear maps fold together step by step until one vector is left (inkling_mm_model).

``transformers`` 5.23 ``models/inkling``: the sides of a patch are products of its prime factors, largest first; a layer
maps what lies between two of these scales.  Which scale stands behind a layer follows from the layers: their logarithms
of pixels are evenly spaced, and each takes the nearest scale; with fewer layers than scales each scale is taken once,
at the least sum of distances.
"""

from __future__ import annotations

import math
from itertools import pairwise

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.image_parts import Part, linear, norm

Scale = tuple[int, int, int]
"""Frames, pixels a side, and channels."""


def _factors(number: int) -> list[int]:
    """Prime factors, largest first."""
    found, factor = [], 2
    while factor * factor <= number:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return [*([number] if number > 1 else []), *reversed(found)]


def _products(number: int) -> list[int]:
    product, found = 1, []
    for factor in _factors(number):
        product *= factor
        found.append(product)
    return found


def _scales(frames: int, patch: int, channels: int) -> list[Scale]:
    sides, times = _products(patch), _products(frames)
    spatial = [(1, side, math.ceil(side**2 * channels / 64) * 64) for side in sides]
    last = sides[-1] if sides else 1
    return [(1, 1, channels), *spatial, *((time, last, last**2 * channels * time * 64) for time in times)]


def _chosen(scales: list[Scale], frames: int, patch: int, channels: int, layers: int) -> list[Scale]:
    """One scale for the input and behind every layer."""
    whole = math.log(patch * patch * frames * channels)
    wanted = [whole * index / layers for index in range(layers + 1)]
    sizes = [math.log(frames * side * side) for frames, side, _ in scales]
    if layers >= len(scales):
        indices = [min(range(len(sizes)), key=lambda each: abs(sizes[each] - want)) for want in wanted]
    else:
        indices = _matched(wanted, sizes)
    indices[0], indices[-1] = 0, len(scales) - 1
    return [scales[index] for index in indices]


def _matched(wanted: list[float], sizes: list[float]) -> list[int]:
    """A size of its own for every wish, in order, at the least sum of distances (both are sorted)."""
    best: list[tuple[float, list[int]]] = [(0.0, [])] * (len(sizes) + 1)
    for want in wanted:
        found: list[tuple[float, list[int]]] = [(math.inf, [])]
        for index, size in enumerate(sizes):
            taken = (best[index][0] + abs(size - want), [*best[index][1], index])
            found.append(min(found[-1], taken, key=lambda each: each[0]))
        best = found
    return best[-1][1]


def folded_patches(keys: ClassKeys, out: int, tokens: int) -> Part:
    """The maps and their norms; the last one gives ``out`` features, without a norm."""
    frames, patch = keys.integer("temporal_patch_size"), keys.integer("patch_size")
    channels, layers = keys.integer("num_channels"), keys.integer("num_hidden_layers")
    scales = _chosen(_scales(frames, patch, channels), frames, patch, channels, layers)
    part = Part()
    for index, (start, end) in enumerate(pairwise(scales)):
        folded = end[0] // start[0] * (end[1] // start[1]) ** 2
        places = tokens * (frames // end[0]) * (patch // end[1]) ** 2
        last = index == layers - 1
        width = out if last else end[2]
        part += linear(start[2] * folded, width, places, bias=False)
        part += Part() if last else norm(width, bias=False)
    return part
