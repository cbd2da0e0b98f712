"""Install validators for the tests: ``python -m tests.install_validators [NAME[==VERSION] ...]``; all without names."""

from __future__ import annotations

import sys

from planner.backends.checking.environment import make_ready
from planner.backends.folders.catalogue import parse_requirement, validators
from planner.rl.frameworks.verl.validator import VALIDATOR as VERL

OTHER_RELEASES = ("megatron-core==0.18.2", "megatron-core==0.17.1", "torchtitan==0.2.2")
"""Tests ask these beside the default release."""


FRAMEWORKS = {VERL.name: VERL}
"""Validators of RL frameworks, which the catalogue of back-ends does not list."""


def main(names: list[str]) -> None:
    """Fill the overlays; a failed install fails the build."""
    for name in [each for each in names if each in FRAMEWORKS] or ([] if names else FRAMEWORKS):
        chosen = FRAMEWORKS[name]
        print(f"validator: {name} {chosen.default_version} in {make_ready(chosen, chosen.default_version)}")
    others = [each for each in names if each not in FRAMEWORKS]
    if names and not others:
        return
    for name in others or [*validators(), *OTHER_RELEASES]:
        validator, version = parse_requirement(name)
        print(f"validator: {validator.name} {version} in {make_ready(validator, version)}")


if __name__ == "__main__":
    main(sys.argv[1:])
