"""vLLM: one core process a data-parallel rank, chunked prefill in every iteration, its own words for everything."""

from planner.serving.engines.engine import Engine
from planner.serving.engines.vllm.read import read_arguments, read_words
from planner.serving.engines.vllm.space import RULES
from planner.serving.engines.vllm.words import RELEASE
from planner.serving.engines.vllm.write import arguments, command

ENGINE = Engine(
    name="vllm",
    title="vLLM",
    releases=(RELEASE,),
    rules=RULES,
    arguments=arguments,
    command=command,
    read_arguments=read_arguments,
    read_words=read_words,
)
