"""Writes the reference pages from the code, so that they cannot disagree with it.

    python -m docs.generate           write docs/reference/*.md, the page of the architecture, README's figures, and
                                      the words of the pages (web/src/vocabulary.ts)
    python -m docs.generate --check   exit code 1 if a page is not up to date (a contract test does the same)

Hand-written pages of ``docs/reference`` (accuracy.md) are left alone.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

FOLDER = Path(__file__).parent / "reference"
NOTE = "<!-- Written by `python -m docs.generate`; changes here are lost. -->"
CONFIDENCE = "Confidence: A vendor page, B constant of an open project, C third party, D unverified, measured."


def page(title: str, *parts: str) -> str:
    """A whole page."""
    return "\n\n".join((NOTE, f"# {title}", *(part for part in parts if part))) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; pipes and line ends in cells are made harmless.  Columns headed ``>name`` are right-aligned."""
    cells = [[" ".join(str(cell).split()).replace("|", "\\|") for cell in row] for row in rows]
    rule = ["---:" if name.startswith(">") else "---" for name in head]
    lines = [[name.removeprefix(">") for name in head], rule, *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def first_sentence(thing: object) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


# --- Commands --------------------------------------------------------------------------------------------------------


def commands_page() -> str:
    """Every command with its arguments and flags, as Typer knows them."""
    import typer

    from planner.cli.main import build_app

    root = typer.main.get_command(build_app())
    parts = [f"{root.epilog or ''}\n\nEvery command takes `-h` and `--help`."]
    for path, command in _leaves(root, ()):
        parts.append(f"## meshwright {' '.join(path)}\n\n{command.help or ''}\n\n{_parameters(command)}")
    return page("Commands", *parts)


def _leaves(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    children = getattr(command, "commands", {})
    if not children:
        yield path, command
    for name, child in children.items():
        yield from _leaves(child, (*path, name))


def _parameters(command: Any) -> str:
    rows = []
    for each in command.params:
        if each.param_type_name == "argument":
            name = f"`{each.metavar or each.name.upper()}`"
            rows.append((name, "required" if each.required else "", each.help or ""))
            continue
        names = ", ".join(f"`{name}`" for name in (*each.opts, *each.secondary_opts))
        value = f" `{_value_name(each)}`" if not each.is_flag else ""
        default = "required" if each.required else _default(each)
        rows.append((names + value, default, each.help or ""))
    return table(("flag", "default", "meaning"), rows)


def _value_name(option: Any) -> str:
    kind = option.type_descriptor.annotation
    if hasattr(kind, "__members__"):
        return "|".join(member.value for member in kind)
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    return str(option.metavar or kind.__name__)


def _default(option: Any) -> str:
    value = getattr(option.default, "value", option.default)
    return "" if value is None or value is False else f"`{value}`"


# --- Errors ----------------------------------------------------------------------------------------------------------

ERROR_MODULES = (
    "profiles.errors",
    "profiles.observation_store.errors",
    "planner.errors",
    "planner.store.errors",
    "planner.answers.sweep.errors",
    "api.errors",
    "api.client.errors",
)


def error_classes() -> list[type[Any]]:
    """Every error that a user can meet, from the root of the tree."""
    from profiles.errors import MeshwrightError

    for module in ERROR_MODULES:
        importlib.import_module(module)
    found: list[type[Any]] = [MeshwrightError]
    for known in found:
        found += [cls for cls in known.__subclasses__() if cls not in found and "slug" in vars(cls)]
    return sorted(found, key=lambda cls: (cls.exit_code, cls.slug))


def errors_page() -> str:
    """Slug, exit code and HTTP status of every error."""
    rows = [
        (f"`{cls.slug}`", str(cls.exit_code), str(cls.http_status), cls.__name__, first_sentence(cls))
        for cls in error_classes()
    ]
    door = [
        ("`usage`", "2", "the command line cannot be parsed: unknown command or flag, a value of the wrong type"),
        ("`file-unusable`", "2", "the operating system refuses a file: full disk, no permission"),
        ("`interrupted`", "130", "Ctrl-C"),
    ]
    return page(
        "Errors",
        "A failed command prints one message on stderr: `error[slug]: what`, then `--> where` (a flag, or a file with a"
        ' JSON pointer) and `hint: ...`. With `-o json` the same is a JSON object `{"error": {slug, what, where, hint,'
        " exit_code, ...}}` on stderr, and stdout stays empty or holds a whole answer. HTTP statuses are those that the"
        " API will use.",
        table(("slug", ">exit code", ">HTTP", "class", "meaning"), rows),
        "## Of the command line alone",
        table(("slug", ">exit code", "meaning"), door),
        "A bug (`internal`, exit code 1) leaves a report file with the traceback and names it; `MESHWRIGHT_DEBUG=1`"
        " prints the traceback. A reader that closes the pipe early (`| head`) gives exit code 141 and no message.",
    )


# --- Models, devices, clusters ---------------------------------------------------------------------------------------


def models_page() -> str:
    """Built-in models and the architectures that can be read."""
    from planner.model.builtin import builtin_models, builtin_source
    from planner.model.diffusers_config import DENOISERS
    from planner.model.hf_config.registry import supported_model_types
    from planner.model.load import load_model
    from planner.model.parameters import active_parameters, total_parameters

    rows = []
    for name in builtin_models():
        spec = load_model(name)
        numbers = (total_parameters(spec), active_parameters(spec), spec.num_layers, spec.hidden_size)
        rows.append((f"`{name}`", spec.family, *(f"{number:,}" for number in numbers), builtin_source(name)))
    head = ("name", "family", ">parameters", ">active for a token", ">layers", ">hidden size", "source")
    return page(
        "Models",
        "`--model` takes a name of this table, a Hugging Face `config.json` (or the folder that holds one), the"
        " `transformer/config.json` of a diffusers pipeline (or the pipeline's folder), a"
        " Megatron-LM launch script or argument file (`.sh`, `.args`, `.txt`, `.bash`, `.slurm`, `.sbatch`), or a"
        " model YAML ([documents](documents.md#modeldescription)).",
        table(head, rows),
        "## Hugging Face architectures",
        "`model_type` of a `config.json`: "
        + ", ".join(f"`{kind}`" for kind in supported_model_types())
        + ". [Model types](model-types.md) says how each was judged, and why others are refused.",
        "## Diffusion transformers",
        f"`_class_name` of a `transformer/config.json`: {', '.join(f'`{kind}`' for kind in sorted(DENOISERS))}.",
    )


def devices_page() -> str:
    """Every accelerator of the catalogue with the confidence of its numbers."""
    from profiles.catalogue import builtin_devices, load_device

    rows = []
    for name in builtin_devices():
        device = load_device(name)
        peaks = {key: f"{rate / 1e12:,.5g}" for key, rate in device.peak_flops_per_s.items()}
        memory = (f"{device.memory_bytes / 2**30:.1f}", f"{device.memory_bandwidth_bytes_per_s / 1e12:.3g}")
        rows.append((f"`{name}`", device.vendor, *memory, peaks.get("bf16", ""), peaks.get("fp8", ""), _trust(device)))
    head = ("name", "vendor", ">memory GiB", ">memory TB/s", ">bf16 TFLOP/s", ">fp8 TFLOP/s", "confidence")
    return page(
        "Devices",
        f"{CONFIDENCE} `meshwright devices show NAME` prints the source of every number. Peaks are dense.",
        table(head, rows),
    )


def clusters_page() -> str:
    """Every ready cluster with the confidence of its numbers."""
    from profiles.catalogue import builtin_clusters, load_cluster

    rows = []
    for name in builtin_clusters():
        cluster = load_cluster(name)
        pool = cluster.pools[0]
        link = pool.scale_up
        fabric = ", ".join(f"{level.name} {level.num_nodes:,} nodes" for level in cluster.fabric)
        rows.append(
            (
                f"`{name}`",
                f"`{pool.device.name}`",
                str(pool.devices_per_node),
                f"{link.name or link.kind} x {link.domain_size}",
                f"{link.bandwidth_bytes_per_s / 1e9:,.4g}",
                f"{pool.nics_per_node} x {pool.nic_bandwidth_bytes_per_s / 1e9:,.4g}",
                fabric,
                _trust(cluster),
            )
        )
    head = ("name", "device", ">a node", "scale-up", ">GB/s a device", ">NICs x GB/s", "fabric", "confidence")
    return page(
        "Clusters",
        f"`--cluster` takes a name of this table or a YAML file; `--devices N` scales it to whole nodes. {CONFIDENCE}"
        " `meshwright clusters show NAME` prints the source of every number. Bandwidth is one-way.",
        table(head, rows),
    )


def _trust(document: Any) -> str:
    """How many numbers have which confidence: ``A 5, D 1``."""
    counts: dict[str, int] = {}
    for provenance in document.provenance.values():
        counts[provenance.confidence] = counts.get(provenance.confidence, 0) + 1
    return ", ".join(f"{letter} {count}" for letter, count in sorted(counts.items()))


def pages() -> dict[str, Callable[[], str]]:
    """File name -> what writes it."""
    from docs.generate_backends import backends_page, rules_page
    from docs.generate_constants import constants_page
    from docs.generate_documents import documents_page, strategy_page
    from docs.generate_executed import executed_page
    from docs.generate_model_types import model_types_page
    from docs.generate_operations import operations_page
    from docs.generate_profiles import accuracy_page, formats_page, observations_page
    from docs.generate_readme import benchmarks_page
    from docs.generate_scripts import scripts_page
    from docs.generate_software import software_page
    from docs.generate_survey import survey_page
    from docs.generate_vocabulary import glossary_page

    return {
        "commands.md": commands_page,
        "operations.md": operations_page,
        "documents.md": documents_page,
        "strategy.md": strategy_page,
        "errors.md": errors_page,
        "models.md": models_page,
        "model-types.md": model_types_page,
        "devices.md": devices_page,
        "clusters.md": clusters_page,
        "backends.md": backends_page,
        "rules.md": rules_page,
        "constants.md": constants_page,
        "software.md": software_page,
        "profile-formats.md": formats_page,
        "observations.md": observations_page,
        "profile-accuracy.md": accuracy_page,
        "space-survey.md": survey_page,
        "executed-plans.md": executed_page,
        "launch-scripts.md": scripts_page,
        "benchmarks.md": benchmarks_page,
        "glossary.md": glossary_page,
    }


def outputs() -> dict[Path, Callable[[], str]]:
    """Every file that is written wholly or in part -> its text."""
    from docs.generate_architecture import architecture_page
    from docs.generate_readme import ROOT, readme
    from docs.generate_vocabulary import vocabulary_module

    return {
        **{FOLDER / name: make for name, make in pages().items()},
        FOLDER.parent / "explanation" / "architecture.md": architecture_page,
        ROOT / "README.md": readme,
        ROOT / "web" / "src" / "vocabulary.ts": vocabulary_module,
    }


def main() -> int:
    """Write the pages, or with ``--check`` name those that are not up to date."""
    check = "--check" in sys.argv[1:]
    stale = []
    for path, make in outputs().items():
        text = make()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.name)
        if not check:
            path.write_text(text, encoding="utf-8")
    print(f"{'stale' if check else 'written'}: {', '.join(stale) or 'nothing'}")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main())
