"""No architecture that transformers knows is taken for a typing slip of one that we read."""

from __future__ import annotations

import pytest

from planner.model.hf_config.registry import model_from_hf_config, supported_model_types
from planner.model.traced import model as tracing
from profiles.errors import DocumentInvalid
from profiles.spelling import nearest_name

auto = pytest.importorskip("transformers.models.auto.configuration_auto", reason="transformers is not installed")


def test_no_other_architecture_gets_a_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    # As in an install without torch: with it each of them would be traced in a process of its own.
    monkeypatch.setattr(tracing, "find_spec", lambda _: None)
    known = supported_model_types()
    others = [name for name in auto.CONFIG_MAPPING_NAMES if name not in known]
    # Names that are near, without being slips, are among them.
    assert sum(nearest_name(name, known) is not None for name in others) >= 50
    for name in others:
        with pytest.raises(DocumentInvalid) as caught:
            model_from_hf_config({"model_type": name}, "x", "config.json")
        assert "did you mean" not in str(caught.value), name
