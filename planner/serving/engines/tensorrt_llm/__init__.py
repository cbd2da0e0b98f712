"""TensorRT-LLM: a YAML of strict arguments, attention either split over tp or over requests."""

from planner.serving.engines.engine import Engine
from planner.serving.engines.tensorrt_llm.read import read_arguments, read_words
from planner.serving.engines.tensorrt_llm.space import RULES
from planner.serving.engines.tensorrt_llm.words import RELEASE
from planner.serving.engines.tensorrt_llm.write import arguments, command

ENGINE = Engine(
    name="tensorrt-llm",
    title="TensorRT-LLM",
    releases=(RELEASE,),
    rules=RULES,
    arguments=arguments,
    command=command,
    read_arguments=read_arguments,
    read_words=read_words,
)
