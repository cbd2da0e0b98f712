"""Models by name."""

from __future__ import annotations

from pathlib import Path

from planner.answers.summaries import model_summary
from planner.model.builtin import builtin_model, builtin_models
from planner.model.load import is_model_path, load_model
from planner.operations.named import Listing, NamedRequest, NamedView, Nothing, listed, shown
from planner.operations.operation import Operation
from planner.operations.reading import file_exists


def model_is_file(reference: str) -> bool:
    """Whether a file of this machine is meant, and not a name that a service may know."""
    return is_model_path(reference) or file_exists(Path(reference))


LIST_MODELS = Operation(
    name="list_models",
    summary="Models by name, with their sizes",
    description="Built-in ones first.",
    request=Nothing,
    answer=Listing,
    work=listed("model", builtin_models, builtin_model, model_summary),
    path="/v1/models",
    tag="catalogue",
    errors=(),
    command="models list",
)
GET_MODEL = Operation(
    name="get_model",
    summary="One model, whole",
    description="Layers, attention, experts; its ETag is its id.",
    request=NamedRequest,
    answer=NamedView,
    work=shown(load_model),
    path="/v1/models/{name}",
    tag="catalogue",
    errors=(404,),
    served="own",
    reads_files=lambda asked: model_is_file(asked.name),
    command="models show",
)
