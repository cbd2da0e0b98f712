"""Assignments of strategy fields such as ``tp=8,pp=4,mbs=1``: from flags to values.

The same words serve ``--pin``, ``--why-not`` and ``--strategy``.  ``complete_strategy`` fills what a person leaves
out in the way that Megatron-LM would (dp from the device count, sequence parallelism with tensor parallelism, selective
recompute of the attention core), and says so.  ``planner.strategy.relief_layers`` has the words for the layers that
recompute or offload.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NoReturn

from planner.errors import DocumentInvalid
from planner.strategy.fields import ALIASES, FIELD, FORBIDDABLE, KEYS, PINNABLE, Value, full_name
from planner.strategy.findings import STRATEGY_FLAG, strategy_finding
from planner.strategy.relief_layers import WHERE_NEEDED, first_layers, is_recompute_word, policies
from planner.strategy.schedules import GROUPED_SCHEDULES, LOOPED_SCHEDULES, V_SCHEDULES
from planner.strategy.spelling import did_you_mean
from planner.strategy.strategy import RecomputeModule, Strategy
from profiles.validation import Finding, FindingsInvalid, pointer_to, require

TRUE_WORDS = frozenset({"true", "yes", "on", "1"})
FALSE_WORDS = frozenset({"false", "no", "off", "0"})


def parse_assignments(texts: Iterable[str], where: str, known: tuple[str, ...] = ()) -> dict[str, Value]:
    """``["tp=8", "pp=4,sp=true"]`` as a dict.  Raises FindingsInvalid with a pointer to each field that is wrong."""
    values: dict[str, Value] = {}
    findings: list[Finding] = []
    for text in texts:
        for part in text.split(","):
            try:
                key, value = _parse_assignment(part.strip(), known or KEYS)
            except _BadAssignmentError as error:
                findings.append(Finding(pointer_to(error.field) if error.field else "", error.what, error.hint or ""))
                continue
            if values.get(key, value) != value:
                twice = f"{key} is given twice, as {values[key]} and as {value}"
                findings.append(Finding(pointer_to(key), twice, "keep one of them"))
            values[key] = value
    require(findings, where)
    return values


def checked_fields(values: Mapping[str, Any], where: str, known: tuple[str, ...] = ()) -> dict[str, Value]:
    """Plain data (``{"tp": 8, "mbs": "1"}``) as strategy fields.  Raises FindingsInvalid with a pointer to each."""
    checked: dict[str, Value] = {}
    findings: list[Finding] = []
    for name, value in values.items():
        words = ("true" if value else "false") if isinstance(value, bool) else str(value)
        try:
            key, read = _parse_assignment(f"{name}={words}", known or KEYS)
        except _BadAssignmentError as error:
            findings.append(Finding(pointer_to(name), error.what, error.hint or ""))
            continue
        if checked.get(key, read) != read:
            findings.append(Finding(pointer_to(name), f"{key} is given twice", "keep one of them"))
        checked[key] = read
    require(findings, where)
    return checked


def parse_forbids(texts: Iterable[str], where: str) -> tuple[str, ...]:
    """``["cp", "vpp,ep"]`` as field names, sorted.  Raises DocumentInvalid for a name that cannot be forbidden.

    ``where``: what the caller calls a forbid, ``--forbid`` or ``forbid``.
    """
    words = [part.strip() for text in texts for part in text.split(",")]
    names = [full_name(word) for word in words]
    for word, name in zip(words, names, strict=True):
        if name in PINNABLE and name not in FORBIDDABLE:
            raise DocumentInvalid(
                f"{word} cannot be forbidden: it is neither an axis nor a switch",
                where=where,
                hint=f"hold it at a value instead: {where.replace('forbid', 'pin')} {word}=N",
            )
        if name not in FORBIDDABLE:
            raise DocumentInvalid(f"cannot forbid {word!r}", where=where, hint=did_you_mean(word, FORBIDDABLE))
    return tuple(sorted(set(names)))


def complete_strategy(
    values: Mapping[str, Any], num_devices: int, global_batch_size: int
) -> tuple[Strategy, list[str]]:
    """A whole strategy from the fields that were given, and a sentence for each one that was filled in.

    Raises FindingsInvalid, with pointers to the given fields, for numbers that do not divide.
    """
    given: dict[str, Any] = policies(values)
    if "recompute_modules" in given:
        modules = given["recompute_modules"]
        given["recompute_modules"] = tuple(modules.split("+") if isinstance(modules, str) else modules)
        given.setdefault("recompute", "selective")
    notes: list[str] = []

    def fill(key: str, value: Value | tuple[RecomputeModule, ...]) -> None:
        if key not in given:
            given[key] = value
            word = "+".join(value) if isinstance(value, tuple) else value
            notes.append(f"{key}={str(word).lower() if isinstance(word, bool) else word}")

    _fill_data_parallel(given, fill, num_devices)
    if given.get("recompute") == "selective":
        fill("recompute_modules", ("attention_core",))
    if given.get("tp", 1) > 1:
        fill("sp", True)
    if given.get("cp", 1) > 1:
        fill("cp_kind", "ring")
    if given.get("schedule") in V_SCHEDULES:
        fill("vpp", 2)
    if given.get("vpp", 1) > 1:
        fill("schedule", "interleaved")
    if given.get("schedule") in LOOPED_SCHEDULES:
        fill("vpp", 2)
    if given.get("schedule") in GROUPED_SCHEDULES:
        fill("microbatch_group_size", given.get("pp", 1))
    _fill_batch(given, fill, global_batch_size, frozenset(values))
    return Strategy(**given), notes


def _fill_data_parallel(given: dict[str, Any], fill: Any, num_devices: int) -> None:
    """Dp from what the other axes leave, then its two factors (all of it sharded unless said otherwise)."""
    said = frozenset(given)
    model_axes = given.get("tp", 1) * given.get("cp", 1) * given.get("pp", 1)
    dp = given.pop("dp", None)
    if dp is None and "dp_replicate" in given and "dp_shard" in given:
        dp = given["dp_replicate"] * given["dp_shard"]
    if dp is None:
        if num_devices % model_axes:
            _refuse(
                said,
                ("tp", "cp", "pp", "--devices"),
                f"tp * cp * pp = {model_axes} does not divide the {num_devices} devices",
                "choose degrees whose product divides the device count, or set --devices",
            )
        dp = num_devices // model_axes
    replicate = given.get("dp_replicate", dp // given["dp_shard"] if given.get("dp_shard") else 1)
    if replicate < 1 or dp % replicate or given.get("dp_shard", dp // replicate) * replicate != dp:
        _refuse(
            said,
            ("dp",),
            f"dp = {dp} is not dp_replicate * dp_shard = {replicate} * {given.get('dp_shard', '?')}",
            "give dp alone, or factors whose product is dp",
        )
    fill("dp_replicate", replicate)
    fill("dp_shard", dp // replicate)


def _fill_batch(given: dict[str, Any], fill: Any, global_batch_size: int, said: frozenset[str]) -> None:
    """num_microbatches and micro_batch_size so that they make the global batch."""
    dp = given["dp_replicate"] * given["dp_shard"]
    known = dp * given.get("micro_batch_size", 1) * given.get("num_microbatches", 1)
    if global_batch_size % known:
        _refuse(
            said,
            ("micro_batch_size", "num_microbatches", "dp", "tp", "cp", "pp", "--devices", "--global-batch-size"),
            f"dp * micro_batch_size * num_microbatches = {known} does not divide the global batch {global_batch_size}",
            "change mbs, dp or --global-batch-size so that they divide",
        )
    if "num_microbatches" in given:
        fill("micro_batch_size", global_batch_size // known)
    fill("micro_batch_size", 1)
    fill("num_microbatches", global_batch_size // known)


def _refuse(given: Collection[str], places: tuple[str, ...], what: str, hint: str) -> NoReturn:
    raise FindingsInvalid([strategy_finding(what, hint, places, given)], STRATEGY_FLAG)


class _BadAssignmentError(Exception):
    def __init__(self, what: str, hint: str | None, field: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.field = field


def _parse_assignment(text: str, known: tuple[str, ...]) -> tuple[str, Value]:
    name, equals, word = (part.strip() for part in text.partition("="))
    if not equals or not name or not word:
        raise _BadAssignmentError(f"{text!r} is not FIELD=VALUE", "write it as tp=8")
    key = full_name(name)
    if key not in known:
        raise _BadAssignmentError(f"unknown strategy field {name!r}", did_you_mean(name, (*known, *ALIASES)), name)
    try:
        return key, _parse_value(key, word)
    except _BadAssignmentError as error:
        raise _BadAssignmentError(error.what, error.hint, name) from None


def _parse_value(key: str, word: str) -> Value:
    field = FIELD[key]
    if key == "recompute":
        return word if is_recompute_word(word) else _parse_choice(key, word, (*field.words, first_layers(4)))
    if key == "activation_offload" and word == WHERE_NEEDED:
        return word
    if field.kind == "switch":
        return _parse_bool(key, word)
    if field.kind == "count":
        return _parse_int(key, word)
    for each in word.split("+") if field.kind == "words" else (word,):
        _parse_choice(key, each, field.words)
    return word


def _parse_bool(key: str, word: str) -> bool:
    if word.lower() in TRUE_WORDS:
        return True
    if word.lower() in FALSE_WORDS:
        return False
    raise _BadAssignmentError(f"{key} is true or false, not {word!r}", f"write {key}=true or {key}=false")


def _parse_int(key: str, word: str) -> int:
    low, high = FIELD[key].smallest, FIELD[key].largest
    digits = word.lstrip("+-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 12:
        raise _BadAssignmentError(f"{key} is a whole number, not {word!r}", f"write {key}={max(low, 1)} or more")
    value = int(word)
    if not low <= value <= high:
        raise _BadAssignmentError(f"{key} = {value} is out of range", f"{key} goes from {low} to {high}")
    return value


def _parse_choice(key: str, word: str, choices: tuple[str, ...]) -> str:
    if word not in choices:
        raise _BadAssignmentError(f"{key} has no value {word!r}", did_you_mean(word, choices))
    return word
