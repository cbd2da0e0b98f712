"""Measured steps of RL: rows of a CSV by stage, or of whole steps, as questions with what was run.

``rl_steps`` files have one row a stage (``stage``, ``measured_s``) and ``group``; ``rl`` files have the columns of
training runs, one whole step a row, and say in their notes how samples were generated (NeMo-RL's performance page).
What a row leaves open is filled in and named in ``assumed``; a row that cannot be asked has ``left_out``.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from planner.errors import DocumentInvalid
from planner.evidence.runs.row_cluster import cluster_of_row
from planner.evidence.runs.row_flavour import flavour_of_row
from planner.evidence.runs.row_model import model_of_row
from planner.evidence.runs.truth import TruthRow
from planner.evidence.runs.unmapped import RowUnmapped
from planner.question.sequences import Sequences
from planner.rl.problem import RlConstraints, RlProblem, Turns
from planner.rl.words import Placement, Synchrony

STEP_COLUMNS = frozenset({"stage", "measured_s", "placement", "prompts", "samples_per_prompt", "group"})
WHOLE_STEP = re.compile(r"whole RL step \(generation vLLM TP,PP=\[(?P<tp>\d+),(?P<pp>\d+)")
TRAIN_MAX = re.compile(r"train max (?P<tokens>[\d,]+)")
NEMO_BATCH = 512
"""Training batch that NeMo-RL's page states for all of its runs (``train GBS 512``)."""
USUAL_PROMPT, USUAL_LONGEST_SHARE = 200.0, 7.0
"""Prompts of mathematical questions; the longest of a batch of responses over their mean (6.6, redai-studio/Relax#152),
where a source states one of the two."""
SAME_SHAPE = (
    (r"qwen2\.5-math-", "Qwen2.5-"),
    (r"qwen3-vl-", "Qwen3-"),
    (r"\s*\(sft\)", ""),
    (r"^(7|13|34|70)b$", r"Llama-2-\1B"),
)
"""Names whose language model has the shapes of another one: base of Qwen2.5-Math, decoder of Qwen3-VL; OpenRLHF's
sizes are LLaMA-2's by its text."""
USUAL_SAMPLES = "16"
"""Samples of a prompt where a source states none (verl's DAPO scripts)."""
_OLD_PASSES = ("old_log_prob", "log_prob", "log_probs")
"""Stages that say that the trainer computes log-probabilities again; a run without them takes the engines'."""
_FIRST_NUMBER = re.compile(r"\d+(\.\d+)?")
_SPLIT = re.compile(r"(?P<rollout>\d+) rollout \+ (?P<train>\d+) train|(?P<first>\d+)\s*\+\s*(?P<second>\d+)")
_TRAIN_FIRST = re.compile(r"(?P<train>\d+) train\w* \+ (?P<rollout>\d+) rollout")
_STALENESS = re.compile(r"staleness(_threshold)? (?P<part>\d+(\.\d+)?)")


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """One run: what it was asked, what was run, how long it took."""

    id: str
    group: str
    source: str
    problem: RlProblem | None
    placement: Placement
    synchrony: Synchrony
    trainer_devices: int
    rollout_devices: int
    rollout_tp: int | None
    strategy: Mapping[str, int | str] | None
    """The trainer's, where it is stated; None = the best."""
    stages_s: Mapping[str, float]
    assumed: tuple[str, ...] = ()
    left_out: str = ""
    times_can_be_judged: bool = field(default=False)
    """Whether lengths, device and layout are stated, so that seconds mean something beside the order."""

    @property
    def step_s(self) -> float | None:
        """Seconds of the whole step."""
        return self.stages_s.get("step")


def read_measured(text: str, where: str) -> list[MeasuredStep]:
    """The runs of one file.  Raises DocumentInvalid for a file of other columns."""
    rows = list(csv.DictReader(io.StringIO(text)))
    names = set(rows[0]) if rows else set()
    if names >= STEP_COLUMNS:
        return [_run(key, part) for key, part in _by_run(rows).items()]
    if "gbs" in names and any(WHOLE_STEP.search(row.get("notes") or "") for row in rows):
        return [_whole(row) for row in rows if WHOLE_STEP.search(row["notes"] or "")]
    raise DocumentInvalid(
        "these are not measured steps of RL", where=where, hint=f"columns: {', '.join(sorted(STEP_COLUMNS))}, ..."
    )


def responses(mean: float, longest: int | None, samples: int) -> Sequences:
    """Lengths of responses of which a mean and a limit are known: log-normal, and the longest of a step at the limit.

    Reasoning models run into their limit (verl ``overlong_buffer``, NeMo-RL ``reward_shaping`` are made for that).
    Exponential without a limit, or where no such distribution has this mean.
    """
    if longest is not None and mean < longest:
        try:
            return Sequences(kind="padded", mean=mean, percentiles=((100.0 * (1.0 - 0.5 / max(samples, 2)), longest),))
        except ValueError:
            pass
    return Sequences(kind="padded", mean=min(mean, longest or mean))


def plain_row(cells: Mapping[str, str]) -> TruthRow:
    """A row of training runs from the few cells that are known."""
    given: dict[str, Any] = {"line": 0}
    for each in fields(TruthRow):
        text = cells.get(each.name) or ""
        if each.name in ("line", "framework", "framework_version", "software", "converted_step_s", "defect"):
            continue
        kind = str(each.type)
        if kind.startswith("str"):
            given[each.name] = text
        elif kind.startswith("int"):
            given[each.name] = int(float(text)) if _FIRST_NUMBER.fullmatch(text) else None
        else:
            given[each.name] = float(text) if _FIRST_NUMBER.fullmatch(text) else None
    return TruthRow(**given)


def _whole(cells: Mapping[str, str]) -> MeasuredStep:
    """A whole step of NeMo-RL."""
    notes, row = cells["notes"], plain_row(cells)
    off = "1-step Off" in notes
    devices = row.num_devices or 0
    trainer = devices // 2 if off else devices
    layout = WHOLE_STEP.search(notes)
    longest = TRAIN_MAX.search(notes)
    assert layout is not None
    limit = int(longest["tokens"].replace(",", "")) if longest else 4096
    assumed = ["prompts of 200 tokens", "the longest response of a step at the limit"]
    assumed += ["half of the devices generate"] if off else []
    samples = row.gbs or 1
    synchrony: Synchrony = "one_step_off" if off else "synchronous"
    problem, why = _problem(
        row,
        devices,
        (row.seq_len or 1024) - USUAL_PROMPT,
        limit - int(USUAL_PROMPT),
        RlConstraints(synchrony=(synchrony,), trainers=("megatron",)),
        prompts=samples,
        mini_batches=max(1, samples // NEMO_BATCH),
    )
    strategy = {name: cells[name] for name in ("tp", "pp", "cp", "ep") if cells.get(name)}
    return MeasuredStep(
        id=cells["id"],
        group=f"{cells['id'].rpartition('-')[0]} {cells['model']} {cells['device']} {devices}",
        source=cells["source"],
        problem=problem,
        placement="split" if off else "colocated",
        synchrony=synchrony,
        trainer_devices=trainer,
        rollout_devices=devices - trainer if off else devices,
        rollout_tp=int(layout["tp"]) * int(layout["pp"]),
        strategy={**{name: int(value) for name, value in strategy.items()}, "micro_batch_size": 1, "recompute": "full"},
        stages_s={"step": row.step_time_s} if row.step_time_s else {},
        assumed=tuple(assumed),
        left_out=why,
        times_can_be_judged=True,
    )


def _by_run(rows: Iterable[Mapping[str, str]]) -> dict[tuple[str, ...], list[Mapping[str, str]]]:
    """Rows of one run: the stages of one placement and layout of a group."""
    runs: dict[tuple[str, ...], list[Mapping[str, str]]] = defaultdict(list)
    told = ("group", "model", "num_devices", "placement", "train_layout", "rollout_layout", "engine", "source")
    for row in rows:
        runs[tuple(row[name] for name in told)].append(row)
    return runs


def _run(key: tuple[str, ...], rows: list[Mapping[str, str]]) -> MeasuredStep:
    first = rows[0]
    stages = {row["stage"]: float(row["measured_s"]) for row in rows if row["measured_s"]}
    placement, synchrony, trainer, rollout, why = _placement(first)
    devices = trainer if placement == "colocated" else trainer + rollout
    mean, longest, stated = _lengths(first)
    assumed = [] if stated else ["mean response = longest / 7"]
    staleness = _STALENESS.search(first["placement"])
    turns = Turns(mean=8, tool_latency_s=1.0, tool_tokens=100) if "multi-turn" in first["algorithm"] else None
    prompts = int(float((_FIRST_NUMBER.search(first["prompts"]) or ["512"])[0]))
    problem: RlProblem | None = None
    if not why:
        batch = _FIRST_NUMBER.search(first["minibatch"])
        trained = (first["train_layout"] + first["engine"]).lower()
        constraints = RlConstraints(
            synchrony=(synchrony,),
            trainers=("megatron" if "megatron" in trained else "fsdp2",),
            partial_rollout="no partial" not in first["placement"],
        )
        problem, why = _problem(
            plain_row(first),
            devices,
            mean,
            longest,
            constraints,
            prompts=prompts,
            samples_per_prompt=int(float((_FIRST_NUMBER.search(first["samples_per_prompt"]) or [USUAL_SAMPLES])[0])),
            old_log_prob=not stages.keys().isdisjoint(_OLD_PASSES),
            reference="ref_log_prob" in stages,
            mini_batches=max(1, prompts // int(float(batch[0]))) if batch else 1,
            staleness=float(staleness["part"]) if staleness and synchrony == "asynchronous" else 0.0,
            turns=turns,
        )
    if "ARTIFICIAL reward delay" in first["notes"]:
        why = why or "an artificial delay of rewards, which the step waits for"
    if "step" not in stages and not why:
        why = "no time of the whole step"
    return MeasuredStep(
        id=first["id"],
        group=first["group"],
        source=first["source"],
        problem=problem,
        placement=placement,
        synchrony=synchrony,
        trainer_devices=trainer,
        rollout_devices=rollout,
        rollout_tp=None,
        strategy=None,
        stages_s=stages,
        assumed=tuple(assumed),
        left_out=why,
        times_can_be_judged=stated and bool(first["device"]) and "ORDER ONLY" not in first["notes"],
    )


def _placement(row: Mapping[str, str]) -> tuple[Placement, Synchrony, int, int, str]:
    """Placement, synchrony, devices of trainer and engines, and why the row cannot be asked ("" = it can)."""
    words, why = row["placement"].lower(), ""
    count = _FIRST_NUMBER.match(row["num_devices"])
    devices = int(float(count[0])) if count else 0
    if "weight sync" in row["algorithm"]:
        return "split", "synchronous", devices, 0, "weight synchronisation alone"
    if not devices:
        why = "the number of devices is not stated"
    if "deepspeed-chat" in row["engine"].lower():
        why = "DeepSpeed-Chat generates with its trainer, not with a serving engine"
    if "mtp" in words or "speculative" in words:
        why = "speculative decoding without a stated acceptance"
    if not ("separate" in words or "split" in words):
        why = why or ("stages of one placement overlap in a way of their own" if "pipeline" in words else "")
        return "colocated", "synchronous", devices, devices, why
    synchrony: Synchrony = "synchronous"
    if "fully async" in words or "stream" in words:
        synchrony = "asynchronous"
    elif "off" in words and ("one" in words or "1-off" in words):
        synchrony = "one_step_off"
    found = _TRAIN_FIRST.search(words) or _SPLIT.search(words)
    if found is None:
        half = devices // 2
        known = "nemo-rl" in row["engine"].lower()  # its recipes give half to generation where they say nothing
        return "split", synchrony, devices - half, half, why or ("" if known else "the devices' division is not stated")
    parts = found.groupdict()
    rollout = int(parts.get("rollout") or parts.get("first") or 0)
    train = int(parts.get("train") or parts.get("second") or 0)
    if rollout + train != devices:
        why = why or f"{rollout} and {train} devices are not the {devices} of the row"
    return "split", synchrony, train, rollout, why


def _lengths(row: Mapping[str, str]) -> tuple[float, int | None, bool]:
    """Mean response, the longest, and whether the mean is stated."""
    mean, longest = _FIRST_NUMBER.match(row["response_len_mean"]), _FIRST_NUMBER.match(row["response_len_max"])
    most = int(float(longest[0])) if longest else None
    if mean is not None:
        return float(mean[0]), most, True
    return (most or 4096) / USUAL_LONGEST_SHARE, most, False


def _problem(
    row: TruthRow, devices: int, mean: float, longest: int | None, constraints: RlConstraints, **sizes: Any
) -> tuple[RlProblem | None, str]:
    """The question of a run with these other fields, or None and why there is none."""
    name = row.model
    for pattern, known in SAME_SHAPE:
        name = re.sub(pattern, known, name, flags=re.IGNORECASE)
    row = replace(row, model=name)
    try:
        model = model_of_row(row, flavour_of_row(row))
        cluster = cluster_of_row(row, devices)
    except (RowUnmapped, DocumentInvalid) as error:
        return None, str(error).splitlines()[0]
    samples = sizes["prompts"] * sizes.get("samples_per_prompt", 1)
    while samples % sizes["mini_batches"]:
        sizes["mini_batches"] -= 1
    problem = RlProblem(
        actor=model,
        cluster=cluster,
        prompt_tokens=Sequences(kind="padded", histogram=((USUAL_PROMPT, 1.0),)),
        response_tokens=responses(mean, longest, samples),
        longest_response=longest,
        constraints=constraints,
        **sizes,
    )
    return problem, ""
