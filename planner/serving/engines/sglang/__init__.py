"""SGLang: tp counts all devices of a stage, expert parallelism is free, prompts come before decoding."""

from planner.serving.engines.engine import Engine
from planner.serving.engines.sglang.read import read_arguments, read_words
from planner.serving.engines.sglang.space import RULES
from planner.serving.engines.sglang.words import RELEASE
from planner.serving.engines.sglang.write import arguments, command

ENGINE = Engine(
    name="sglang",
    title="SGLang",
    releases=(RELEASE,),
    rules=RULES,
    arguments=arguments,
    command=command,
    read_arguments=read_arguments,
    read_words=read_words,
)
