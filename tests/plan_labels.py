"""What a plan's numbers are called wherever a person reads them, and which number a printed one must be.

``Labelled`` is a quantity: its words and its value from a machine-readable answer.  A printed number is the quantity
whose words stand nearest to it: in its own clause, then in its column's head, its row's name, the text before it, the
heading.  Of several in one place the longest words win.  A subject (the plan, the fastest plan, a stage, a runner-up,
a back-end, ...) is whose quantities a row or a sentence tells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from planner.predict.step_terms import TERM_WORDS
from planner.strategy.relief_layers import policies
from tests.shown_numbers import SCALES, Cell, Shown

Data = Mapping[str, Any]
MEMORY_WORDS = {
    "weights": "weights",
    "gradients": "gradients|grads",
    "optimizer": r"optimizer(?! step)|optim\.?$",
    "activations": r"activations|activ\.?$",
    "buffers": "buffers",
}


@cache
def compiled(words: str) -> re.Pattern[str]:
    """There are more of them than ``re`` keeps."""
    return re.compile(words, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A quantity; ``order``: which number of its cell it is, where only the place tells.

    Without a ``value`` it is another one each time that it is asked for: how long a search took.
    """

    name: str
    unit: str
    words: str
    value: float | None
    order: int | None = None

    def found_in(self, text: str, *, last: bool = False) -> tuple[int, int]:
        """How long its words are there, (0, 0) without them; with ``last`` those that end furthest right win."""
        found = [match.span() for match in compiled(self.words).finditer(text)]
        return max(((end if last else 0, end - start) for start, end in found), default=(0, 0))


def quantity_of(shown: Shown, quantities: Sequence[Labelled]) -> Labelled | None:
    """The quantity that a printed number is labelled as; None where no words of this unit are near."""
    fitting = [each for each in quantities if each.unit == shown.unit and each.order in {None, shown.order}]
    column = shown.cell.column.partition(" (")[0] if "(" in shown.cell.column else shown.cell.column
    parts = [part.strip() for part in column.split(" / ")]
    column = parts[shown.order] if len(parts) > max(shown.order, 1) else column
    before = shown.cell.text[: shown.cell.text.find(shown.text)]
    for place, last in (
        (f"{shown.before} • {shown.after}", False),
        (column, False),
        (shown.cell.row, False),
        (before, True),
        (shown.cell.heading, False),
    ):
        best = max(fitting, key=lambda each: (each.found_in(place, last=last), each.order is not None), default=None)
        if best is not None and best.found_in(place)[1]:
            return best
    return None


def agrees(shown: Shown, quantity: Labelled) -> bool:
    """Whether the printed number is the quantity as printed; *faster* tells it with the other sign, *over* from below.

    A bare number in a column of sizes is GiB.
    """
    if quantity.value is None:
        return True
    if shown.unit == "%" and re.search(r"\bover$", shown.before):
        return quantity.value > shown.value
    if shown.after.startswith("faster") and quantity.name.endswith("slower_by"):
        return shown.says(-quantity.value)
    return shown.says(quantity.value)


def in_gib(shown: Shown) -> Shown:
    """A bare number of a column of sizes, in bytes."""
    unit, scale = SCALES["GiB"]
    return Shown(
        shown.value * scale, shown.half_digit * scale, unit, shown.cell, shown.before, shown.after, shown.order,
        shown.text,
    )  # fmt: skip


def imbalance(stages: Sequence[Data]) -> float:
    """How far the slowest stage is above the mean of all."""
    times_s = [stage["forward_s"] + stage["backward_s"] for stage in stages]
    return float(max(times_s) / (sum(times_s) / len(times_s)) - 1)


def step_terms(plan: Data) -> list[Labelled]:
    """Seconds and share of each term of the breakdown."""
    terms, step_s = plan["breakdown_s"], plan["step_time_s"]
    named = {term: re.escape(TERM_WORDS.get(term, term)) for term in terms}
    named["compute"] = r"(?<!not )\bcompute\b"
    return [
        *(Labelled(f"breakdown_s.{term}", "s", named[term], value) for term, value in terms.items()),
        *(Labelled(f"share of {term}", "%", named[term], value / step_s) for term, value in terms.items()),
        Labelled("imbalance of the stages", "%", "above their mean", imbalance(plan["stages"])),
        Labelled("share of all but compute", "%", "not compute takes", 1 - terms.get("compute", 0.0) / step_s),
    ]


def memory_terms(bill: Data, limit_bytes: float) -> list[Labelled]:
    """Parts of one device's peak, in bytes and of the limit."""
    return [
        *(Labelled(f"peak_memory_bytes.{term}", "B", words, bill[term]) for term, words in MEMORY_WORDS.items()),
        *(Labelled(f"{term} of limit", "%", words, bill[term] / limit_bytes) for term, words in MEMORY_WORDS.items()),
    ]


def size_quantities(plan: Data) -> list[Labelled]:
    """Counts without a unit: the batch, the devices, and the groups that sentences name."""
    strategy, problem = plan["strategy"], plan["problem"]
    work = problem["workload"]
    devices = sum(pool["num_nodes"] * pool["devices_per_node"] for pool in problem["cluster"]["pools"])
    worst = max(plan["stages"], key=lambda stage: stage["peak_memory_bytes"]["total"])
    words = {
        "num_microbatches": ("• micro-batch(es)?( of| fill)?$", strategy["num_microbatches"]),
        "micro_batch_size": ("^micro-batch(es)? of •", strategy["micro_batch_size"]),
        "global_batch_size": (r"^ ?• (\N{MULTIPLICATION SIGN}|sequences of|samples x)$", work["global_batch_size"]),
        "sequence_length": (r"(\N{MULTIPLICATION SIGN}|sequences of|samples x) • tokens", work["sequence_length"]),
        "num_devices": (r"\bon • (\N{MULTIPLICATION SIGN}|devices)|^devices$", devices),
        "tp": ("its activations among • devices", strategy["tp"]),
        "cp": ("keys and values among • devices", strategy["cp"]),
        "ep": ("experts and back among • devices", strategy["ep"]),
        "dp": ("parameters of • replicas", strategy["dp"]),
        "pp": ("pipeline ranks|(micro-batches fill|the slowest of) • stages", strategy["pp"]),
        "worst stage": ("stage • uses|fills the worst device stage •", worst["stage"]),
    }
    return [
        Labelled("num_microbatches", "", "^micro-batches$", strategy["num_microbatches"], 0),
        Labelled("micro_batch_size", "", "^micro-batches$", strategy["micro_batch_size"], 1),
        *(Labelled(name, "", said, value) for name, (said, value) in words.items()),
    ]


def plan_quantities(plan: Data) -> list[Labelled]:
    """Everything of the plan itself."""
    low_s, high_s = plan["step_time_interval_s"]
    limit, peak = plan["memory_limit_bytes"], plan["peak_memory_bytes"]
    worst = max(plan["stages"], key=lambda stage: stage["peak_memory_bytes"]["total"])
    fastest = plan.get("fastest")
    cost, search = plan["cost_per_step"], plan["search"]
    found = [
        Labelled("step_time_s", "s", r"\bsteps?\b|\bstep time\b|whole step", plan["step_time_s"]),
        Labelled("step_time_s", "s", "expected step time", plan["step_time_s"], 0),
        Labelled("interval, low end", "s", "expected step time", low_s, 1),
        Labelled("interval, high end", "s", "expected step time", high_s, 2),
        Labelled("interval, low end", "s", r"\binterval\b", low_s),
        Labelled("interval, high end", "s", "^to\\b", high_s),
        Labelled("level of the interval", "%", "interval", 0.8),
        Labelled("lower_bound_s", "s", "lower bound|bound|predicted below", plan["lower_bound_s"]),
        *step_terms(plan),
        Labelled("gap", "%", "gap|of the bound|more than|up to", plan["gap"]),
        Labelled("model_flops_utilization", "%", "mfu|of the peak|model flops utili[sz]ation",
                 plan["model_flops_utilization"]),
        Labelled("fits_probability", "%", r"fits? with(?: over)?|\bchance\b|^fits$", plan["fits_probability"]),
        Labelled("peak_memory_bytes", "B", r"\bpeaks?\b|peak memory|\bmemory\b|\buses\b|needs most", peak),
        Labelled("memory_limit_bytes", "B", r"usable|limit|may be used|^of\b|memory by stage", limit),
        Labelled("spare bytes", "B", r"(are )?spare", limit - peak),
        Labelled("missing bytes", "B", r"too much|misses|are missing", peak - limit),
        *memory_terms(worst["peak_memory_bytes"], limit),
        Labelled("tokens_per_s", "", r"tokens/s|tokens a second", plan["tokens_per_s"]),
        Labelled("tokens_per_s_per_device", "", r"(tokens/s )?a device", plan["tokens_per_s_per_device"]),
        # The heading of the stages, where all of them recompute alike.
        Labelled("recomputed layers of a stage", "", "a device, recompute [a-z+ ]+",
                 sum(plan["stages"][0]["recompute"]["num_layers_per_chunk"]), 1),
        Labelled("layers of a stage", "", "a device, recompute [a-z+ ]+", plan["stages"][0]["layers"], 2),
        *size_quantities(plan),
        Labelled("time of the search", "s", "solved exactly in •", None),
        Labelled("enumerated", "", "(strategies )?enumerated|\\bof • strategies", search["enumerated"]),
        Labelled("bounded", "", r"\bbounded\b", search["bounded"]),
        Labelled("evaluated", "", "(was |were )?solved( exactly)?", search["evaluated"]),
        *(Labelled(f"pruned, {name}", "", re.escape(name), number)
          for name, number in {**search["pruned"], **search["refused"]}.items()),
        *(Labelled(f"time from {name}", "%", f"time from {re.escape(name)}|^{re.escape(name)}", share)
          for name, share in plan["provenance"].get("time_by_input", {}).items()),
    ]  # fmt: skip
    if cost is not None:
        found.append(Labelled("cost_per_step", "", "^cost$", cost))
    if fastest is not None:
        found += [
            Labelled("band", "%", r"\bwithin\b", fastest["band"]),
            Labelled("fastest.slower_by", "%", "slower on paper", fastest["slower_by"]),
            Labelled("more room", "B", "more room|less room", abs(fastest["peak_memory_bytes"] - peak)),
            Labelled("fastest.fits_probability", "%", "instead of (over )?•", fastest["fits_probability"]),
            Labelled("fastest.step_time_s", "s", "fastest plan of", fastest["step_time_s"]),
        ]
    return found


def other_quantities(name: str, other: Data) -> list[Labelled]:
    """A strategy beside the plan: the fastest plan, a runner-up, a back-end's plan, a neighbour."""
    keys = {
        "step_time_s": ("s", r"\bstep\b|^fastest$|takes"),
        "slower_by": ("%", r"slower( by)?|faster|against plan"),
        "gap": ("%", "gap"),
        "peak_memory_bytes": ("B", r"peaks?( at)?\b|^fastest$"),
        "fits_probability": ("%", "fits with"),
        "over_limit_bytes": ("B", "misses"),
    }
    return [
        Labelled(f"{name}.{key}", unit, words, other[key])
        for key, (unit, words) in keys.items()
        if other.get(key) is not None
    ]


def unrestricted_quantities(free: Data) -> list[Labelled]:
    """What no back-end can run yet."""
    return [
        Labelled("unrestricted.step_time_s", "s", r"run yet|faster|proved within", free["step_time_s"]),
        Labelled("unrestricted.faster_by", "%", r"faster", free["faster_by"]),
        Labelled("unrestricted.gap", "%", r"proved within|of the best of that space", free["gap"]),
    ]


def stage_quantities(stage: Data, limit_bytes: float) -> list[Labelled]:
    """A pipeline stage."""
    bill = stage["peak_memory_bytes"]
    name = f"stage {stage['stage']}"
    found = [
        Labelled(f"{name}, total", "B", r"\bpeak\b|^total$|\buses\b|needs most", bill["total"]),
        Labelled(f"{name}, of limit", "%", "of limit", bill["total"] / limit_bytes),
        Labelled("memory_limit_bytes", "B", r"limit|may be used|usable|^of\b", limit_bytes),
        *memory_terms(bill, limit_bytes),
        Labelled(f"{name}, layers", "", "^layers$", stage["layers"]),
        Labelled(f"{name}, number", "", "^stage(?: •.*)?$|^stage • ", stage["stage"]),
    ]
    if "forward_s" in stage:
        again = sum(stage["recompute"]["num_layers_per_chunk"])
        found += [
            Labelled(f"{name}, recomputed layers", "", "^recompute$", again, 0),
            Labelled(f"{name}, layers", "", "^recompute$", stage["layers"], 1),
            Labelled(f"{name}, offloaded", "", "activations of • layers", stage["offload"]["activation_layers"]),
            Labelled(f"{name}, forward_s", "s", "^fwd|^forward", stage["forward_s"]),
            Labelled(f"{name}, backward_s", "s", "^bwd|^backward", stage["backward_s"]),
        ]
    return found


Told = tuple[str, list[Labelled], Data | None]


@dataclass(slots=True)
class Answers:
    """Machine-readable answers about one plan, and whose quantities each place of a document tells."""

    plan: Data
    explanation: Data = field(default_factory=dict)
    step: Data = field(default_factory=dict)
    drawn: Data | None = None
    """The step with as few micro-batches as the chart of a terminal has, where it has not all of them."""
    own: list[Labelled] = field(default_factory=list)
    """The quantities of the plan itself, once they are asked for."""

    def subject(self, cell: Cell) -> Told:
        """Its name, its quantities, and the strategy that ``name=value`` in this place tells."""
        plan, about, row = self.plan, cell.heading.lower(), cell.row.lower()
        found = self._row(cell, about) if cell.column else self._sentence(cell)
        if found is not None:
            return found
        if row == "fastest" and plan["fastest"] and not plan["fastest"]["is_recommended"]:
            return "fastest", other_quantities("fastest", plan["fastest"]), plan["fastest"]["strategy"]
        if about.startswith("pipeline") and self.step:
            return "pipeline", self._pipeline(cell, self.step), None
        if about.startswith("timeline"):
            return "timeline", self._pipeline(cell, self.drawn or self.step), None
        if about.startswith("assumptions"):
            return "assumptions", self._assumed(), None
        stage = re.match(r"(\d+)(?:-\d+)?$", row) if cell.column else re.match(r"stage (\d+)[, ]", cell.text.lower())
        if stage and re.match("stages|memory by stage", about):
            return "stage", stage_quantities(plan["stages"][int(stage[1])], plan["memory_limit_bytes"]), None
        told = not re.match("assumptions|searched|what was searched|launch", about) and row not in {"proof", "price"}
        if not self.own:
            self.own = plan_quantities(plan)
        return "plan", self.own, plan["strategy"] if told else None

    def _row(self, cell: Cell, about: str) -> Told | None:
        """A line of a table of others: runners-up, back-ends, neighbours, collectives."""
        tables = {
            "runners-up|why: runner-up": ("alternatives", self.plan["alternatives"]),
            "back-ends": ("backends", self.plan["backends"]),
            "one move away|one change away": ("neighbours", self.explanation.get("neighbours", ())),
        }
        for heads, (name, others) in tables.items():
            if re.match(heads, about):
                other = others[cell.place]
                return name, other_quantities(f"{name}[{cell.place}]", other), other.get("strategy")
        return ("traffic", self._traffic(cell), None) if about.startswith("what is sent") else None

    def _sentence(self, cell: Cell) -> Told | None:
        """A sentence about a runner-up, a neighbour, or what no back-end can run."""
        if re.match("The runner-up|Of other degrees", cell.text):
            return "runner-up", other_quantities("alternatives[0]", self.plan["alternatives"][0]), None
        if re.match("(What n|N)o back-end can run yet", cell.text):
            return "unrestricted", unrestricted_quantities(self.plan["unrestricted"]), None
        if cell.text.startswith("Next step") and (move := self._move(cell.text)):
            return "neighbour", other_quantities("neighbour", move), None
        return None

    def _move(self, text: str) -> Data | None:
        near = self.explanation.get("neighbours", ())
        return next((each for each in near if f"{each['move']} would" in text), None)

    def _traffic(self, cell: Cell) -> list[Labelled]:
        """The busiest stage's line of each axis, operation and group size, in the order of the bill."""
        most: dict[tuple[str, str, int], Data] = {}
        for line in self.explanation["communication"]:
            key = (line["axis"], line["operation"], line["group_size"])
            if key not in most or line["bytes_per_step"] > most[key]["bytes_per_step"]:
                most[key] = line
        line = list(most.values())[cell.place]
        return [
            Labelled("payload", "B", "payload", line["bytes_per_step"]),
            Labelled("calls", "", "calls", line["calls_per_step"]),
            Labelled("payload of a call", "B", "each", line["bytes_per_step"] / line["calls_per_step"]),
            Labelled("group size", "", "ranks", line["group_size"]),
            Labelled("busiest stage", "", "busiest stage", line["stage"]),
        ]

    def _assumed(self) -> list[Labelled]:
        """The chance to fit that was asked for; what measured runs say is no quantity of a plan."""
        asked = self.plan["problem"]["constraints"]["fits"]
        return [
            Labelled("constraints.fits", "", "with a chance of", asked, 0),
            Labelled("level of the measured ratios", "%", "• below", 0.95),
        ]

    def _pipeline(self, cell: Cell, step: Data) -> list[Labelled]:
        """The simulated pipeline: its length, and what each rank does in it."""
        length_s = step["makespan_ns"] / 1e9
        found = [
            Labelled("makespan", "s", "ranks over|^timeline", length_s),
            Labelled("bubble", "%", "idle for|of the time shown", step["bubble_fraction"]),
            Labelled("after the pipeline", "s", "• follow", step["after_ns"] / 1e9),
            Labelled("step_time_s", "s", "step of", self.plan["step_time_s"]),
        ]
        rank = re.match(r"(?:rank )?(\d+)", cell.row or cell.text)
        if rank and int(rank[1]) < len(step["busy_ns"]):
            busy, idle = step["busy_ns"][int(rank[1])], step["bubble_ns"][int(rank[1])]
            found += [
                Labelled("busy", "%", "busy", busy / step["makespan_ns"]),
                Labelled("work", "s", "^work$", busy / 1e9),
                Labelled("idle", "s", "^idle$", idle / 1e9),
                Labelled("idle share", "%", "idle share", idle / step["makespan_ns"]),
            ]
        return found


SHORT_NAMES = {"zero": "zero_stage", "mbs": "micro_batch_size"}
PAIRS = {"dp": ("dp_replicate", "dp_shard"), "pp": ("pp", "vpp")}
"""What ``dp=2x8`` and ``pp=4x5`` tell."""


def is_told(strategy: Data, name: str, value: str) -> bool | None:
    """Whether ``name=value`` is what the strategy has; None for a name that is no field of one."""
    if name in PAIRS and "x" in value:
        return value == "x".join(str(strategy[each]) for each in PAIRS[name])
    name = SHORT_NAMES.get(name, name)
    if name not in strategy:
        return None
    held = strategy[name]
    # The strategy names the policy; which layers use it stands beside it.
    value = str(policies({name: value})[name]).lower()
    words = "+".join(held) if isinstance(held, list) else str(held).lower()
    return value == (words or "none")


def layers_told(text: str) -> int:
    """Layers of a stage in ``E+1, 5 of 3, 1+H`` or in ``embedding + layers 0-9; layer 10 + head``."""
    ranges = re.findall(r"layers? (\d+)(?:-(\d+))?", text)
    if ranges:
        return sum(int(last or first) - int(first) + 1 for first, last in ranges)
    return sum(int(times or 1) * int(layers) for times, layers in re.findall(r"(?:(\d+) of )?(?:E\+)?(\d+)", text))
