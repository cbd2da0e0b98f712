"""No back-end launches for nothing: every physics but the neutral one has a host."""

from __future__ import annotations

import pytest

from planner.backends.registry import physics_by_name
from planner.predict.physics.host import CORE_CALL_S, CORE_LAUNCH_S


@pytest.mark.parametrize("name", sorted(set(physics_by_name()) - {"tuned"}))
def test_a_back_end_has_launch_time(name: str) -> None:
    assert physics_by_name()[name].launch_s > 0


def test_megatrons_python_is_counted_wherever_its_modules_run() -> None:
    for name in ("megatron-core", "nemo", "megascale", "mindspeed"):
        physics = physics_by_name()[name]
        assert (physics.launch_s, physics.call_s) == (CORE_LAUNCH_S, CORE_CALL_S)
