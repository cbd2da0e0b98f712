"""YAML files of trainers: LLaMA-Factory's and TRL's, whose keys are arguments of the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.errors import DocumentInvalid
from profiles.safe_yaml import load_yaml_text

_FACTORY = ("llamafactory-cli", "lmf")
_SUFFIXES = (".yaml", ".yml")


def with_trainer_file(words: Sequence[str], where: str, opened: Callable[[str], str | None]) -> tuple[str, ...]:
    """The words of a launch with what its trainer's YAML file says, which later words overrule.

    The file is the first word behind the program, or that of ``--config``.  Raises DocumentInvalid for one that is not
    there.
    """
    start = next((place for place, word in enumerate(words) if word.endswith(".py") and not word.startswith("-")), None)
    factory = next((place for place, word in enumerate(words) if word.rpartition("/")[2] in _FACTORY), None)
    if factory is not None and words[factory + 1 : factory + 2] == ("train",):
        words = (*words[:factory], "train.py", *words[factory + 2 :])
        start = factory
    if start is None:
        return tuple(words)
    own = list(words[start + 1 :])
    name, at = next(((word.partition("=")[2] or "".join(own[place + 1 : place + 2]), place)
                     for place, word in enumerate(own) if word.partition("=")[0] == "--config"), ("", -1))  # fmt: skip
    if at < 0 and own and own[0].endswith(_SUFFIXES):
        name, at = own[0], 0
    if not name.endswith(_SUFFIXES):
        return tuple(words)
    text = opened(name)
    if text is None:
        raise DocumentInvalid(
            f"the trainer reads {name}, which is not there", where=where, hint="put it where the script looks for it"
        )
    data = load_yaml_text(text, name)
    if not isinstance(data, dict) or "model_name_or_path" not in data:
        return tuple(words)
    said = [word for key, value in data.items() for word in _words(str(key), value)]
    rest = own[:at] + own[at + (1 if own[at] == name or "=" in own[at] else 2) :]
    return (*words[: start + 1], *said, *(_plain(word) for word in rest))


def _words(key: str, value: object) -> list[str]:
    if isinstance(value, list):
        return [f"--{key}", *map(str, value)]
    return [] if value is None or isinstance(value, dict) else [f"--{key}", str(value)]


def _plain(word: str) -> str:
    """``key=value`` behind a file, as LLaMA-Factory takes it."""
    return f"--{word}" if "=" in word and not word.startswith("-") else word
