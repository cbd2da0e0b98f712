"""The environment and search path that the imports depended on, compared with those of a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

FREE = {
    *("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME", "NODE_RANK"),
    *("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID"),
    *("TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_SIGNALS_TO_HANDLE", "TORCHELASTIC_ERROR_FILE"),
    *("TORCH_NCCL_ASYNC_ERROR_HANDLING", "STEPS", "TRAIN_ARGS", "MEGATRON_PATH"),
    *("PATH", "PWD", "OLDPWD", "SHLVL", "_", "PYTHON", "PYTHONDONTWRITEBYTECODE"),
    *("PYTEST_CURRENT_TEST", "XDG_DATA_HOME"),
    # The size of a terminal, which a test process may set once it runs.
    *("COLUMNS", "LINES"),
    # Read with the first memory, or the first context, of a device.
    *("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "CUDA_DEVICE_MAX_CONNECTIONS"),
}
"""Variables that a command may have otherwise than the server: none of them is read while modules are imported, which
``tests/integration/test_warm_python.py`` watches.  With any other difference the real interpreter is asked."""
SEARCHED = "PYTHONPATH"


def folders(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The folders of PYTHONPATH; a second mention changes nothing."""
    value = environment.get(SEARCHED, "")
    return tuple(dict.fromkeys(map(os.path.abspath, value.split(os.pathsep)))) if value else ()


@dataclass(frozen=True, slots=True)
class Imported:
    """The environment before and after the modules were imported, and where they were searched."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    path: tuple[str, ...]

    def differences(self, environment: Mapping[str, str]) -> Iterator[str]:
        """Variables with which the imports could have gone another way."""
        for name in {*self.before, *self.after, *environment} - FREE - {SEARCHED}:
            if environment.get(name) not in {self.before.get(name), self.after.get(name)}:
                yield name
        mine, given = folders(self.before), folders(environment)
        if tuple(folder for folder in given if folder in mine) != mine or _hides(set(given).difference(mine)):
            yield SEARCHED

    def completed(self, environment: Mapping[str, str]) -> dict[str, str]:
        """``environment`` with what the imports changed in it."""
        changed = {name: value for name, value in self.after.items() if self.before.get(name) != value}
        gone = self.before.keys() - self.after.keys()
        return {name: value for name, value in {**environment, **changed}.items() if name not in gone}

    def search_path(self, environment: Mapping[str, str]) -> list[str]:
        """What ``sys.path`` holds behind the folder of the main program."""
        mine = folders(self.before)
        return [*folders(environment), *(folder for folder in self.path if folder not in mine)]


def _hides(added: set[str]) -> bool:
    """Whether something in these folders has the name of what was imported from elsewhere."""
    found = {entry.partition(".")[0] for folder in added if os.path.isdir(folder) for entry in os.listdir(folder)}
    return not found.isdisjoint(name.partition(".")[0] for name in sys.modules)
