"""Install what checks deployments: ``python -m planner.serving.platforms.install_validators [NAME ...]``."""

from __future__ import annotations

import sys

from planner.backends.checking.environment import make_ready
from planner.backends.checking.validator import Validator
from planner.serving.engines.validators import VALIDATORS
from planner.serving.platforms import triton

ALL: dict[str, Validator] = {**VALIDATORS, triton.VALIDATOR.name: triton.VALIDATOR}

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        chosen = ALL[name]
        print(f"validator: {name} {chosen.default_version} in {make_ready(chosen, chosen.default_version)}")
