"""The model of a configuration of Megatron-Bridge: a Hugging Face name, a provider's sizes, or what is named beside."""

from __future__ import annotations

from planner.backends.megatron.model_flags import model_flags, moe_flags
from planner.backends.megatron_bridge.recipe_table import model_of_hf
from planner.backends.megatron_bridge.settings import MODEL_FIELDS, Settings
from planner.errors import DocumentInvalid
from planner.model.builtin import builtin_model, builtin_models
from planner.model.hf_config import model_from_hf_config
from planner.model.spec import ModelSpec
from planner.question.problem import Workload

_PLAIN = frozenset({"GPTModelProvider", "MLAModelProvider"})
_HYBRID = "Mamba layers beside attention"


def model_words(
    settings: Settings, where: str, beside: ModelSpec | None
) -> tuple[list[str], ModelSpec | None, list[str]]:
    """Megatron-LM's arguments of the model, the model itself where no size of it was changed, and what was taken.

    Raises DocumentInvalid for a model that is not known, or for one that is named although the file says it.
    """
    spec, told = _named(settings, where, beside)
    changed = sorted(path for path in settings.said if path.removeprefix("model.") in MODEL_FIELDS and "model." in path)
    if spec is None:
        return [*_provider_words(settings), *settings.words(model=True)], None, told
    words = [part for flag, values in _flags(spec, settings).items() for part in (flag, *values)]
    if not changed:
        return words, spec, told
    own = settings.words(model=True)
    taken = {word for word in own if word.startswith("--")}
    return [*_without(words, taken), *own], None, [*told, f"sizes that the script changes: {', '.join(changed)}"]


def _named(settings: Settings, where: str, beside: ModelSpec | None) -> tuple[ModelSpec | None, list[str]]:
    hf, provider = settings.value("model.hf"), str(settings.value("model.provider") or "")
    found = model_of_hf(str(hf)) if hf is not None else None
    fields = settings.value("model.hf_config")
    if isinstance(fields, dict):
        found = model_from_hf_config(fields, provider, where)
    if provider in builtin_models():
        found = builtin_model(provider)
    if found is not None or provider.rpartition(".")[2] in _PLAIN:
        if beside is not None:
            raise DocumentInvalid("the script says the model", where="--model", hint="keep one of --model and --from")
        name = hf or provider
        return found, [] if found is None else [f"model {found.name}: the shapes of {name}"]
    said = str(hf) if hf is not None else provider or "nothing that is known"
    if beside is None:
        what = f"it trains {said}, whose sizes are not here"
        if "Hybrid" in provider or "emotron" in said:
            what = f"it trains {said}, a model with {_HYBRID}, which the planner has no description of"
        raise DocumentInvalid(
            what, where=where, hint="give its config.json, or a model that may stand for it: --model config.json"
        )
    return beside, [f"model {beside.name}: as you say, for {said}"]


def _flags(spec: ModelSpec, settings: Settings) -> dict[str, tuple[str, ...]]:
    """Megatron-LM's arguments of a model; of one that it cannot be said in, its number of layers."""
    length = settings.number("dataset.seq_length", "dataset.sequence_length", "model.seq_length") or 1
    workload = Workload(global_batch_size=1, sequence_length=length)
    try:
        flags = {**model_flags(spec, workload), **moe_flags(spec)}
    except (ValueError, KeyError, IndexError):
        return {"--num-layers": (str(spec.num_layers),)}
    flags.pop("--make-vocab-size-divisible-by", None)
    return flags


def _provider_words(settings: Settings) -> list[str]:
    """What a provider says by a function, or by its class."""
    activation = str(settings.value("model.activation_func") or "")
    words = []
    if settings.value("model.provider") is not None and "MLA" in str(settings.value("model.provider")):
        words.append("--multi-latent-attention")
    if activation.endswith("squared_relu"):
        words.append("--squared-relu")
    if activation.endswith("quick_gelu"):
        words.append("--quick-geglu")
    words += ["--max-position-embeddings", str(settings.value("model.seq_length", "dataset.seq_length") or 1)]
    return words


def _without(words: list[str], flags: set[str]) -> list[str]:
    kept, dropping = list[str](), False
    for word in words:
        if word.startswith("--"):
            dropping = word in flags
        if not dropping:
            kept.append(word)
    return kept
