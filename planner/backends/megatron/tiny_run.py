"""Runs a small plan under Megatron-LM: ``launch.sh`` and ``train.sh`` as emitted, with its own schedules.

``MEGATRON_PATH`` names a folder whose ``pretrain_gpt.py`` hands over to ``tiny_run_worker.py``, which says what
of the arguments no CPU can run.  The reference is a second emission of the same model and samples for one rank.  One
value is edited: the learning rate of ``data.args``.  megatron-core lives in the folder of its validator, never in our
process.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner.backends.checking.environment import make_ready
from planner.backends.megatron.validator import VALIDATOR
from planner.backends.megatron.write import DATA_FILE
from planner.backends.ranks.launch_ranks import LOG_FILE, RanksRun, run_ranks
from planner.backends.ranks.runner import Losses, Runner, SmallRun
from planner.backends.rules.optimizer_recipe import LEARNING_RATE, short
from planner.errors import BackEndRefused
from planner.model.spec import ModelSpec

_EDITS = {"precision": ("bf16", "fp32"), "device": ("cuda", "cpu"), "learning_rate": (short(LEARNING_RATE), "1e-2")}
_WITHOUT_CONTEXT_PARALLELISM = "Megatron's attention without Transformer Engine has no context parallelism"
"""megatron-core 0.19.2 core/transformer/dot_product_attention.py:57."""
WORKER = Path(__file__).with_name("tiny_run_worker.py")
_EMITTED_RATE, _RATE = (f"--lr {value}" for value in _EDITS["learning_rate"])
"""With Megatron's own, three steps show little of a wrong gradient."""


def losses(run: SmallRun) -> Losses:
    """Losses of the ranks and of one process.

    Raises BackEndRefused (a layer needs Transformer Engine, or a launch fails), ValidatorUnavailable (there is no
    megatron-core).
    """
    _refuse_what_no_cpu_runs(run.plan.problem.model)
    packages = make_ready(VALIDATOR, VALIDATOR.default_version)
    done = []
    for write in (run.on_ranks, run.alone):
        emitted = _edited(write())
        stand_in = _stand_in(run.folder / f"{emitted.name}-pretrain", packages, run.steps, emitted)
        ran = run_ranks(emitted, {"MEGATRON_PATH": str(stand_in), "PYTHONDONTWRITEBYTECODE": "1"}, run.deadline)
        done.append((ran, _said(ran, emitted)))
    values = tuple(_losses(said, run.steps, run.folder) for _, said in done)
    notes = dict.fromkeys(note for ran, _ in done for note in ran.notes)
    return Losses(values[0], values[1], (_replaced(done[0][1]), *notes))


def _refuse_what_no_cpu_runs(model: ModelSpec) -> None:
    """Layers that Megatron builds only with Transformer Engine."""
    reasons = (
        ("latent attention", any(kind.attention.kind == "mla" for kind in model.layer_kinds)),
        # It adds the bias in place to what a reduction returned (core/transformer/mlp.py:354), which autograd refuses.
        ("experts with biases", any(kind.moe is not None and kind.moe.expert_bias for kind in model.layer_kinds)),
    )
    for what, there in reasons:
        if there:
            raise BackEndRefused(
                f"Megatron without Transformer Engine does not train {what}",
                where="--backend megatron",
                hint="`meshwright check` asks Megatron's own parser about the whole plan",
            )


def _edited(folder: Path) -> Path:
    """The emission, with a learning rate for a few steps."""
    data = folder / DATA_FILE
    data.write_text(data.read_text(encoding="utf-8").replace(_EMITTED_RATE, _RATE), encoding="utf-8")
    return folder


def _stand_in(folder: Path, packages: Path, steps: int, emitted: Path) -> Path:
    """A folder for ``MEGATRON_PATH``: its ``pretrain_gpt.py`` trains what is in the emitted folder."""
    folder.mkdir(parents=True)
    words = [str(WORKER), str(packages), str(steps), str(emitted)]
    text = f"import runpy\nimport sys\n\nsys.argv = {words!r}\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
    (folder / "pretrain_gpt.py").write_text(text, encoding="utf-8")
    return folder


def _said(ran: RanksRun, folder: Path) -> list[dict[str, Any]]:
    """The JSON lines of rank 0."""
    try:
        return [dict(json.loads(line)) for line in ran.stdout.splitlines() if line.startswith("{")]
    except (ValueError, TypeError) as error:
        raise BackEndRefused(f"the trainer printed no JSON: {error}", where=str(folder / LOG_FILE)) from error


def _losses(said: list[dict[str, Any]], steps: int, folder: Path) -> tuple[float, ...]:
    """The loss of every step, in order."""
    found = [(line["step"], float(line["loss"])) for line in said if "step" in line]
    if [number for number, _ in found] != list(range(steps)):
        raise BackEndRefused(f"the trainer printed {len(found)} of {steps} losses", where=str(folder))
    return tuple(loss for _, loss in found)


def _replaced(said: list[dict[str, Any]]) -> str:
    """What of the emitted arguments ran otherwise, by what ran instead."""
    replaced: dict[str, str] = next((line["replaced"] for line in said if "replaced" in line), {})
    reasons: dict[str, list[str]] = {}
    for flag, instead in replaced.items():
        reasons.setdefault(instead, []).append(flag)
    return "on a CPU: " + "; ".join(f"{' '.join(flags)} = {instead}" for instead, flags in reasons.items())


RUNNER = Runner(
    losses=losses,
    requires=("torch",),
    install="pip install 'meshwright[torch]'",
    edits=_EDITS,
    without_context_parallelism=_WITHOUT_CONTEXT_PARALLELISM,
)
