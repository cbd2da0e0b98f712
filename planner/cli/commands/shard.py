"""``meshwright shard``: placements operator by operator, solved to a certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.backends.launch import LauncherName
from planner.cli import options as flags
from planner.cli.output import OutputFormat

Instance = Annotated[
    Path | None,
    typer.Option("--instance", metavar="FILE", help="Instead of a module: a contest instance, JSON or gzipped."),
]
Module = Annotated[
    str | None, typer.Option("--module", metavar="PKG:CLASS", help="The nn.Module to trace; built on the meta device.")
]
ModuleArgs = Annotated[str | None, typer.Option("--module-args", metavar="JSON", help="Its constructor's arguments.")]
TransformersConfig = Annotated[
    str | None, typer.Option("--model", "-m", metavar="FILE", help="A transformers config.json instead of --module.")
]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="NAME=DTYPE[SHAPE]", help="An example input, such as x=bfloat16[2,128,64]."),
]
InputsFunction = Annotated[
    str | None,
    typer.Option("--inputs-function", metavar="PKG:NAME", help="Makes the inputs (default: method example_inputs)."),
]
Batch = Annotated[int, typer.Option("--batch", min=1, help="Samples of a --model's step on the whole mesh.")]
Sequence = Annotated[int, typer.Option("--sequence-length", min=1, help="Tokens of a --model's sample.")]
Dtype = Annotated[str, typer.Option("--dtype", metavar="D", help="Of parameters and floating inputs.")]
Mesh = Annotated[
    str, typer.Option("--mesh", metavar="AxBxC", help="Sizes from the outermost axis, or auto: every shape of up to 3.")
]
Optimizer = Annotated[str, typer.Option("--optimizer", metavar="NAME", help="Whose state lives beside parameters.")]
MemoryMargin = Annotated[
    float, typer.Option("--memory-margin", metavar="F", help="Part of device memory kept free, 0 to 1.")
]
Seconds = Annotated[float, typer.Option("--time-limit", metavar="SECONDS", min=0.1, help="For all solving together.")]
Fold = Annotated[bool, typer.Option("--fold/--no-fold", help="One choice for all copies of a repeated block.")]
Explain = Annotated[
    str | None, typer.Option("--explain", metavar="OPERATOR", help="Options of one operator, and who pays for them.")
]
Against = Annotated[
    str | None, typer.Option("--against", metavar="X", help="Compare with megatron, fsdp, or a saved sharding plan.")
]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write a folder that runs the plan there.")]

Launcher = Annotated[LauncherName, typer.Option("--launcher", help="Who starts the ranks of --out.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("shard")(shard)


def shard(  # noqa: PLR0913, PLR0917  # a flag is an argument
    instance: Instance = None,
    module: Module = None,
    module_args: ModuleArgs = None,
    model: TransformersConfig = None,
    inputs: Inputs = None,
    inputs_function: InputsFunction = None,
    batch: Batch = 8,
    sequence_length: Sequence = 4096,
    dtype: Dtype = "bfloat16",
    mesh: Mesh = "8",
    devices: flags.Devices = None,
    cluster: flags.ClusterReference = "dgx-h100",
    optimizer: Optimizer = "adamw",
    memory_margin: MemoryMargin = 0.06,
    profile: flags.Profile = "auto",
    time_limit: Seconds = 60.0,
    seed: flags.Seed = 0,
    fold: Fold = True,
    explain: Explain = None,
    against: Against = None,
    out: Out = None,
    launcher: Launcher = "torchrun",
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Place every operator of a training step on a mesh: compute and resharding, proved under a memory limit."""
    if instance is not None:
        from planner.cli.instance_sharding import shard_instance

        _refuse_both(module, model)
        shard_instance(instance, time_limit, seed, output)
        return
    from planner.cli.module_sharding import ModuleFlags, ShardingFlags, shard_module

    source = ModuleFlags(
        module, module_args, model, tuple(inputs or ()), inputs_function, batch, sequence_length, dtype
    )
    asked = ShardingFlags(
        mesh,
        devices,
        cluster,
        optimizer,
        memory_margin,
        profile,
        time_limit,
        seed,
        fold,
        explain,
        against,
        out,
        launcher,
    )
    shard_module(source, asked, output, quiet=quiet)


def _refuse_both(module: str | None, model: str | None) -> None:
    if module or model:
        from planner.errors import DocumentInvalid

        raise DocumentInvalid(
            "an instance and a module were given", where="--instance", hint="give --instance, --module or --model"
        )
