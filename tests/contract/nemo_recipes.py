"""Writes the defaults of NeMo's recipes: ``python -m tests.contract.nemo_recipes FOLDER FILE``.

``FOLDER``: the files of NVIDIA/NeMo at the tag v2.4.0 (``git archive v2.4.0 nemo/collections/llm | tar x -C FOLDER``).
Every recipe function is called, with each of its switches both ways; a ``run.Config`` is its class and what is set on
it, and everything that is no recipe is a name.  ``planner/backends/nemo/recipes_2_4_0.jsonl`` is such a file.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import inspect
import itertools
import json
import sys
import types
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from planner.backends.megatron_bridge.settings import MODEL_FIELDS

RECIPES = "nemo.collections.llm.recipes"
CONFIGS = ("nemo/collections/llm/gpt/model",)
FEIGNED = ("nemo", "nemo_run", "lightning", "torch", "megatron", "pytorch_lightning", "transformers")
NUMBER = 7_919
"""Given for a number, it shows where the recipe writes it."""
SWITCHES = {"peft_scheme": ("lora", "dora", "none"), "performance_mode": (True,), "packed_sequence": (True,)}
ROOTS = ("trainer.", "data.", "optim.config.", "model.", "peft", "tokenizer", "resume.restore_config.path")
LEFT_OUT = (
    "trainer.logger",
    "trainer.limit_",
    "trainer.log_",
    "trainer.max_steps",
    "trainer.val_check",
    "optim.config.lr",
    "trainer.accelerator",
    "trainer.use_distributed",
    "trainer.gradient_clip",
    "trainer.enable_",
    "data.num_",
    "optim.config.adam",
    "optim.config.weight",
    "optim.config.clip",
    "trainer.strategy.ckpt",
    "trainer.callbacks.MegatronCommOverlapCallback.tp_comm_overlap_cfg",
    "trainer.callbacks.TimingCallback",
    "trainer.callbacks.GarbageCollectionCallback",
    "trainer.callbacks.PreemptionCallback",
    "trainer.callbacks.ModelCheckpoint",
    "trainer.plugins.params",
    "trainer.plugins.pipeline",
    "trainer.plugins.autocast",
    "trainer.plugins.fp8_margin",
    "trainer.plugins.fp8_amax",
    "optim.config.bf16",
    "optim.config.fp16",
    "trainer.strategy.gradient_as",
    "trainer.strategy.pipeline_dtype",
    "trainer.strategy.ddp.average",
    "trainer.strategy.ddp.check",
    "trainer.strategy.ddp.align",
    "trainer.strategy.save_ckpt",
    "trainer.accumulate",
    "data.dataset_kwargs",
    "data.path",
    "peft.alpha",
)
"""Beginnings of paths that no plan needs."""
KEPT = MODEL_FIELDS | {"seq_length", "vocab_size", "make_vocab_size_divisible_by", "activation_func",
                       "moe_token_dispatcher_type", "recompute_granularity", "recompute_method",
                       "recompute_num_layers", "recompute_modules", "cp_comm_type", "moe_grouped_gemm"}  # fmt: skip
UNKNOWN = object()


class Name:
    """A name of a module that is not there: its attributes are names, and a call of it is a ``Node``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Name(f"{self._name}.{name}")

    def __call__(self, *words: Any, **settings: Any) -> Any:
        if self._name in ("nemo_run.cli.factory", "nemo_run.autoconvert", "nemo_run.cli.entrypoint"):
            plain = len(words) == 1 and isinstance(words[0], types.FunctionType)
            return words[0] if plain else lambda function: function
        if self._name in ("nemo_run.Config", "nemo_run.Partial"):
            return Node(words[0], words[1:], settings)
        return Node(self, words, settings)

    def __getitem__(self, key: Any) -> Any:
        return self

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (object,)


class Node:
    """What ``run.Config`` gives: a class, its arguments, and what is set since."""

    _target: Any
    _words: tuple[Any, ...]

    def __init__(self, target: Any, words: tuple[Any, ...], settings: dict[str, Any]) -> None:
        object.__setattr__(self, "_target", target)
        object.__setattr__(self, "_words", words)
        for name, value in settings.items():
            setattr(self, name, value)

    def __getitem__(self, key: Any) -> Any:
        return self

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__


class Modules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Recipes from a folder; every other module of the feigned packages is a name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.split(".", maxsplit=1)[0] not in FEIGNED:
            return None
        file = self.folder / (name.replace(".", "/") + ".py")
        if name.startswith(f"{RECIPES}.") and file.is_file():
            from importlib.util import spec_from_file_location

            return spec_from_file_location(name, file)
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        module = types.ModuleType(spec.name)
        vars(module)["__getattr__"] = lambda name: _attribute(spec.name, name)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


def _attribute(module: str, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "PEFT_STR2CLS":
        return {"lora": Name("LoRA"), "dora": Name("DoRA"), "LoRA": Name("LoRA"), "DoRA": Name("DoRA")}
    return Name(f"{module}.{name}")


def plain(value: Any) -> Any:
    """A value as JSON has it; a class or call by its last name."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, Name):
        return value._name.rpartition(".")[2]
    if isinstance(value, Node):
        return plain(value._target)
    return f"<{getattr(value, '__name__', type(value).__name__)}>"


def flat(node: Node, above: str = "") -> Iterator[tuple[str, Any]]:
    """Paths and values; ``@`` is the class of a section, and a callback is a section of its class's name."""
    for name, value in vars(node).items():
        path = f"{above}{name}"
        if name.startswith("_"):
            continue
        if name == "callbacks":
            for each in value or ():
                yield f"{path}.{plain(each)}.@", plain(each)
                yield from flat(each, f"{path}.{plain(each)}.")
        elif isinstance(value, Node):
            yield f"{path}.@", plain(value)
            if value._words:
                yield f"{path}.0", plain(value._words[0])
            yield from flat(value, f"{path}.")
        else:
            yield path, plain(value)


def described(recipe: Node) -> dict[str, Any]:
    """What a recipe says that a plan could need."""
    rows = dict(flat(recipe))
    return {path: value for path, value in rows.items() if path.startswith(ROOTS) and not path.startswith(LEFT_OUT)}


def variants(function: Any) -> dict[str, dict[str, Any]]:
    """What differs with its switches, by ``name=value`` of all that are not as by default."""
    default = described(function())
    known = inspect.signature(function).parameters
    names = [name for name in SWITCHES if name in known]
    found: dict[str, dict[str, Any]] = {}
    for values in itertools.product(*((UNKNOWN, *SWITCHES[name]) for name in names)):
        given = {name: value for name, value in zip(names, values, strict=True) if value is not UNKNOWN}
        given = {name: value for name, value in given.items() if known[name].default != value}
        if not given:
            continue
        key = ",".join(f"{name}={value}" for name, value in given.items())
        try:
            mine = described(function(**given))
        except (AssertionError, ValueError, NotImplementedError) as refused:
            found[key] = {"refused": str(refused) or "an assertion of the recipe"}
            continue
        differs = {path: value for path, value in mine.items() if default.get(path, UNKNOWN) != value}
        found[key] = differs | {path: None for path in default if path not in mine}
    return found


def parameters(function: Any) -> dict[str, list[str]]:
    """Where each parameter's value is written; nowhere for names, folders and what is computed with."""
    default = described(function())
    found: dict[str, list[str]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in SWITCHES or isinstance(parameter.default, str) or parameter.default is parameter.empty:
            continue
        given: Any = not parameter.default if isinstance(parameter.default, bool) else NUMBER
        try:
            mine = described(function(**{name: given}))
        except Exception:  # a parameter that takes no number
            continue
        differs = [path for path, value in mine.items() if default.get(path, UNKNOWN) != value]
        if differs and all(mine[path] == given for path in differs):
            found[name] = differs
        elif differs:
            sys.stderr.write(f"{function.__module__}.{function.__name__}({name}) changes {differs}\n")
            found[name] = ["?"]
    return found


def recipes(folder: Path) -> list[dict[str, Any]]:
    """All recipes of the folder."""
    found = []
    for file in sorted((folder / RECIPES.replace(".", "/")).glob("*.py")):
        if file.stem in ("__init__", "finetune_default"):
            continue
        try:
            module = importlib.import_module(f"{RECIPES}.{file.stem}")
        except Exception as error:  # one family less is told
            sys.stderr.write(f"{file.stem}: {type(error).__name__}: {error}\n")
            continue
        for name in ("pretrain_recipe", "finetune_recipe"):
            function = vars(module).get(name)
            if function is None:
                continue
            try:
                row = {"module": file.stem, "function": name, "factory": vars(module).get("NAME", file.stem)}
                row |= {"says": described(function()), "parameters": parameters(function)}
                found.append(row | {"variants": variants(function)})
            except Exception as error:  # one recipe less is told
                sys.stderr.write(f"{file.stem}.{name}: {type(error).__name__}: {error}\n")
    return found


def configs(folder: Path) -> dict[str, dict[str, Any]]:
    """Fields of the model configurations' classes, with what they inherit from each other."""
    classes: dict[str, ast.ClassDef] = {}
    for place in CONFIGS:
        for file in sorted((folder / place).glob("*.py")):
            body = ast.parse(file.read_text(encoding="utf-8")).body
            classes |= {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    return {
        name: {field: value for field, value in fields.items() if field in KEPT and value is not None}
        for name in sorted(classes)
        if "Config" in name and (fields := _fields(name, classes))
    }


def _fields(name: str, classes: dict[str, ast.ClassDef]) -> dict[str, Any]:
    if name not in classes:
        return {"multi_latent_attention": True} if name == "MLATransformerConfig" else {}
    found: dict[str, Any] = {}
    for base in reversed(classes[name].bases):
        found |= _fields(ast.unparse(base).rpartition(".")[2], classes)
    for node in classes[name].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = _value(node.value)
    return found


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "field":
        made = next((word.value for word in node.keywords if word.arg == "default_factory"), None)
        node = made.body if isinstance(made, ast.Lambda) else node
    try:
        value = eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})
    except Exception:
        return f"<{ast.unparse(node)}>"
    value = list(value) if isinstance(value, tuple) else value
    return value if value is None or isinstance(value, (bool, int, float, str, list)) else f"<{ast.unparse(node)}>"


def shortened(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What most recipes say, taken out of each; a path that one of them lacks is null there."""
    common = {
        path: value
        for path, value in rows[0]["says"].items()
        if sum(row["says"].get(path, UNKNOWN) == value for row in rows) > len(rows) // 2
    }
    for row in rows:
        said = row["says"]
        row["says"] = {path: value for path, value in said.items() if common.get(path, UNKNOWN) != value}
        row["says"] |= {path: None for path in common if path not in said}
        row["variants"] = {key: each for key, each in row["variants"].items() if not _follows(key, row["variants"])}
    return common


def _follows(key: str, variants: dict[str, dict[str, Any]]) -> bool:
    """Whether a variant of DoRA is that of LoRA, but for its class."""
    if "peft_scheme=dora" not in key:
        return False
    others = [each for each in key.split(",") if each != "peft_scheme=dora"]
    return variants[key] == {**variants.get(",".join(others), {}), "peft.@": "DoRA"}


def main(folder: Path, out: Path) -> None:
    """Write the recipes: the classes and what most recipes say, then a line for each recipe."""
    sys.meta_path.insert(0, Modules(folder))
    rows = recipes(folder)
    head = {"release": "NeMo 2.4.0", "configs": configs(folder), "common": shortened(rows)}
    lines = [json.dumps(each, sort_keys=True) for each in (head, *rows)]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
