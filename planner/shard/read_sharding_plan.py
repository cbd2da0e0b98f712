"""Reads a sharding plan from text, or says which keys of which file are wrong."""

from __future__ import annotations

import json

from planner.errors import DocumentInvalid
from planner.shard.sharding_plan import ShardingPlan
from profiles.validation import read_document

HINT = "give a sharding.json that `meshwright shard --out` wrote"


def read_sharding_plan(text: str, where: str) -> ShardingPlan:
    """The plan.  Raises DocumentInvalid with a JSON pointer for every key that is wrong."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid(f"no JSON: {str(error).splitlines()[0]}", where=where, hint=HINT) from error
    if not isinstance(data, dict) or not {"traced", "mesh", "operators"} & set(data):
        raise DocumentInvalid("not a sharding plan", where=where, hint=HINT)
    return read_document(ShardingPlan, data, where)
