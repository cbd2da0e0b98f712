"""What software a measured run was, read from its row: the facts on which its prediction depends.

Every fact comes from a column of its own name where the file has one, else from the first rule that matches
(``planner.evidence.runs.software_rules``), else it is unknown.  An unknown fact takes the default that the library of
the row implies, and widens the interval by ``UNKNOWN_SPREAD``: what not knowing it means for the step time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache, lru_cache

from planner.evidence.runs.software_rules import Rule, library_rules, software_rules
from planner.evidence.runs.truth import TruthRow

FACTS: dict[str, str] = {
    "library": "what trains: its name decides the defaults of everything below",
    "training": "what learns: full (all weights), lora (adapters), qlora (adapters on quantised weights)",
    "quantization": "how frozen weights are stored: nf4, nf4-dq, gptq, int8, none",
    "task": "pretrain or finetune (blank), rl (a policy step)",
    "compiled": "yes where a compiler fuses point-wise work (thunder: that one), no where PyTorch runs eagerly",
    "attention": "best (the fastest published kernel), flash2, triton, unfused",
    "kernels": "fused kernels by hand: te, liger, fast-kernels",
    "loss": "plain (logits in fp32), wide (fp32 in Megatron's compiled parts), fused (one kernel), chunked (in parts), "
    "log-probabilities (and entropies, in chunks)",
    "launches": "blocking where every launch waits for its kernel (CUDA_LAUNCH_BLOCKING=1)",
    "states": "precision of optimizer and weights: 16bit, sharded16bit (under FSDP, too), 8bit, paged8bit, fp32",
    "residual": "precision of the hidden states between layers: 16bit, fp32",
    "step_in_backward": "yes where each gradient is used and freed at once",
    "offload": "what waits on the host: parameters, activations",
    "memory_figure": "what the memory column counts: allocated, reserved, process (nvidia-smi), resident",
}
"""Every fact that a row may state, in a column of that name."""

UNKNOWN_SPREAD: dict[str, float] = {"library": 0.12, "compiled": 0.08, "attention": 0.05}
"""Standard deviation of ln(step time) that an unknown fact adds.

Priors, from what the other value of the fact changes where both are measured: torchtune's Llama 3.2 3B takes 1.27
times as long without a compiler (half of ln 1.27 = 0.12, of which half again where the library is known), and
FlashAttention-2 on H100 1.6 times as long as cuDNN's kernel for attention that is a tenth to a fifth of a step."""


@dataclass(frozen=True, slots=True)
class SoftwareDescription:
    """Facts of one run; "" where its row does not say.  ``origin``: which column or rule said it."""

    library: str = ""
    training: str = ""
    quantization: str = ""
    task: str = ""
    compiled: str = ""
    attention: str = ""
    kernels: str = ""
    loss: str = ""
    launches: str = ""
    states: str = ""
    residual: str = ""
    step_in_backward: str = ""
    offload: str = ""
    memory_figure: str = ""
    origin: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def adapters(self) -> bool:
        """Whether only adapters learn."""
        return self.training in ("lora", "qlora")

    @property
    def compiles(self) -> bool:
        """Whether a compiler fuses point-wise work."""
        return self.compiled in ("yes", "thunder")

    @property
    def unknown(self) -> tuple[str, ...]:
        """Facts that matter to the step time and are not known."""
        return tuple(fact for fact in UNKNOWN_SPREAD if not getattr(self, fact))

    @property
    def unknown_spread(self) -> float:
        """Standard deviation of ln(step time) for what is unknown; a known library implies the rest."""
        missing = self.unknown if not self.library else ()
        return math.hypot(0.0, *(UNKNOWN_SPREAD[fact] for fact in missing))


WHOLE_NUMBER = "a whole number of GiB is read off nvidia-smi: counters of torch are printed with decimals"
NOTHING_SAID = SoftwareDescription()
_READ = ("framework", "notes", "source", "model", "zero_or_fsdp")
"""Columns of a row whose words the rules read."""


def described(row: TruthRow, *, publications: bool = True) -> SoftwareDescription:
    """The software of a row.  Without ``publications`` only what the row itself and its library's name say."""
    words = tuple(str(getattr(row, name)) for name in _READ)
    whole = row.peak_mem_gib is not None and row.peak_mem_gib == round(row.peak_mem_gib)
    return _described(words, tuple(row.software), whole, publications)


@lru_cache(maxsize=8192)
def _described(
    read: tuple[str, ...], stated: tuple[tuple[str, str], ...], whole: bool, publications: bool
) -> SoftwareDescription:
    """Rows of one table share their words, and each row is asked for its software several times."""
    words = dict(zip(_READ, read, strict=True))
    words["model"] = words["model"].replace("_", " ")
    own = dict(stated)
    facts: dict[str, str] = {}
    origin: list[tuple[str, str]] = []
    for fact in FACTS:
        value, said = own.get(fact, ""), f"column {fact}"
        if not value:
            rule = _rule(fact, words, publications=publications)
            value, said = (rule.value, rule.why) if rule is not None else ("", "")
        if value:
            facts[fact] = value
            origin.append((fact, said))
    if "memory_figure" not in facts and whole:
        facts["memory_figure"] = "process"
        origin.append(("memory_figure", WHOLE_NUMBER))
    return SoftwareDescription(**facts, origin=tuple(origin))


@lru_cache(maxsize=8192)
def library_of(source: str) -> str:
    """The library that a source's words name; "" where they name none."""
    words = dict.fromkeys(("framework", "notes", "model", "zero_or_fsdp"), "") | {"source": source}
    return next((rule.value for rule in library_rules() if rule.says(words)), "")


def _rule(fact: str, words: dict[str, str], *, publications: bool) -> Rule | None:
    wanted = (rule for rule in _rules_of(fact) if publications or not rule.publication)
    return next((rule for rule in wanted if rule.says(words)), None)


@cache
def _rules_of(fact: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in software_rules() if rule.fact == fact)
