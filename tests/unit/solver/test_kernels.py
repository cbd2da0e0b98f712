"""What a kernel refuses, where its machine code is kept, and when it is made anew."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from solver.selection.kernel import Kernel
from solver.selection.kernel_store import read_code, write_code

ROOT = Path(__file__).parents[3]
SOURCE = """
from typing import NamedTuple
import numpy as np
from solver.selection.kernel import FLAG, INT, INTS, NOTHING, REAL, REALS, REAL_ROWS, inner, kernel, record

FACTOR = 3

class Pair(NamedTuple):
    counts: object
    weights: object

PAIR = record(Pair, INTS, REALS)

@inner
def scaled(value):
    return value * FACTOR

@kernel(REAL(PAIR, INT, REAL))
def weighted(pair, number, shift):
    total = shift
    for index in range(pair.counts.size):
        total += scaled(pair.counts[index]) * pair.weights[index] / number
    return total

@kernel(NOTHING(REAL_ROWS, REALS))
def row_sums(rows, sums):
    for row in range(rows.shape[0]):
        sums[row] = 0.0
        for column in range(rows.shape[1]):
            sums[row] += rows[row, column]

@kernel(FLAG(INTS, INT))
def holds(numbers, wanted):
    for number in numbers:
        if number == wanted:
            return True
    return False

@kernel(INT(INT, INT))
def scratch(size, rounds):
    total = 0
    for turn in range(rounds):
        taken = np.zeros(size, np.int64)
        taken[turn % size] = 1
        total += taken.sum()
    return total

@kernel(INT(INT, INT))
def quotient(number, divisor):
    return number // divisor
"""
PAIR = (np.arange(5), np.linspace(0.5, 1.0, 5))
WEIGHTED = 1.5 + 3 * float(np.arange(5) @ np.linspace(0.5, 1.0, 5)) / 4


@pytest.fixture(autouse=True)
def users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's cache is an empty one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The kernels of ``SOURCE``, kept beside it."""
    return module_of(tmp_path_factory.mktemp("kernels"), SOURCE)


def module_of(folder: Path, source: str) -> ModuleType:
    """A module of a file in that folder."""
    path = folder / "sums.py"
    path.write_text(source, encoding="utf-8")
    made = ModuleType("sums")
    exec(compile(source, str(path), "exec"), vars(made))
    return made


def weighted(module: ModuleType) -> float:
    return float(module.weighted(module.Pair(*PAIR), 4, 1.5))


def kept(folder: Path, kernel: str = "sums.weighted") -> Path:
    (found,) = folder.glob(f"{kernel}-*.kernel")
    return found


def test_values_of_every_kind_come_and_go(module: ModuleType) -> None:
    assert weighted(module) == pytest.approx(WEIGHTED, rel=1e-12)
    rows, sums = np.arange(12.0).reshape(3, 4), np.full(3, np.nan)
    assert module.row_sums(rows, sums) is None
    assert sums.tolist() == rows.sum(axis=1).tolist()
    assert module.holds(np.array([1, 7]), 7) is True
    assert module.holds(np.array([1, 7]), 8) is False
    assert module.quotient(np.int64(-7), 2) == -4
    assert type(module.quotient(7, 2)) is int
    assert module.quotient(-1, 1) == module.quotient(1, -1) == -1


@pytest.mark.parametrize(
    ("rows", "sums"),
    [
        ([[1.0]], np.zeros(1)),
        (np.zeros((3, 4), np.int64), np.zeros(3)),
        (np.zeros((3, 4), np.float32), np.zeros(3)),
        (np.zeros(12), np.zeros(3)),
        (np.zeros((3, 4), order="F"), np.zeros(3)),
        (np.zeros((6, 4))[::2], np.zeros(3)),
        (np.zeros((3, 4)), None),
        (np.zeros((3, 4)), np.frombuffer(bytes(24))),
        (np.zeros((3, 4)), np.frombuffer(bytearray(25), offset=1, count=3)),
        (np.zeros((3, 4)), np.zeros(3, ">f8")),
    ],
)
def test_what_is_no_such_array_is_refused(module: ModuleType, rows: Any, sums: Any) -> None:
    with pytest.raises(TypeError, match=r"is not a C-ordered float64 array of [12] axes"):
        module.row_sums(rows, sums)


def test_what_is_no_such_number_is_refused(module: ModuleType) -> None:
    with pytest.raises(TypeError):
        module.quotient(1.5, 2)
    with pytest.raises(TypeError):
        module.quotient(None, 2)
    with pytest.raises(OverflowError):
        module.quotient(2**63, 2)
    with pytest.raises(TypeError):
        module.weighted(module.Pair(*PAIR), 4, "1.5")
    with pytest.raises(TypeError, match=r"Pair.counts is not"):
        module.weighted(module.Pair(PAIR[1], PAIR[0]), 4, 1.5)


@pytest.mark.parametrize("arguments", [(), (1,), (1, 2, 3)])
def test_a_wrong_number_of_arguments_is_refused(module: ModuleType, arguments: tuple[int, ...]) -> None:
    with pytest.raises(TypeError, match="quotient: 2 arguments are wanted"):
        module.quotient(*arguments)
    with pytest.raises((IndexError, SystemError)):
        module.weighted((PAIR[0],), 4, 1.5)


def test_what_cannot_be_computed_is_an_arithmetic_error(module: ModuleType) -> None:
    with pytest.raises(ArithmeticError, match="divides by zero"):
        module.quotient(1, 0)
    with pytest.raises(ArithmeticError, match="no room"):
        module.scratch(2**55, 1)


def test_scratch_arrays_are_given_back(module: ModuleType) -> None:
    module.scratch(100_000, 10)
    before = resident_bytes()
    assert module.scratch(100_000, 3000) == 3000  # 2.4 GB in all
    assert resident_bytes() - before < 100e6


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_python_goes_on_while_a_kernel_runs(module: ModuleType) -> None:
    module.scratch(1, 1)
    turns = 0
    thread = threading.Thread(target=module.scratch, args=(100_000, 5000))
    thread.start()
    while thread.is_alive():
        turns += 1
        time.sleep(0.001)
    assert turns > 20


def test_a_kernel_that_needs_more_than_the_c_library_is_refused(tmp_path: Path) -> None:
    sorting = SOURCE.replace("number // divisor", "np.full(number, divisor).reshape((divisor, -1))[0].size")
    with pytest.raises(AssertionError, match=r"quotient needs numba_.*; write what asks for it as a loop"):
        module_of(tmp_path, sorting).quotient(8, 2)


def test_code_is_kept_beside_the_source_and_taken_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert weighted(module_of(tmp_path, SOURCE)) == pytest.approx(WEIGHTED)
    assert kept(tmp_path / "__pycache__").stat().st_size > 32
    monkeypatch.setitem(sys.modules, "solver.selection.kernel_compiler", None)  # nothing can be compiled
    assert weighted(module_of(tmp_path, SOURCE)) == pytest.approx(WEIGHTED)


@pytest.mark.parametrize(
    ("old", "new", "factor"),
    [
        ("FACTOR = 3", "FACTOR = 5", 5 / 3),
        ("value * FACTOR", "value * FACTOR * 2", 2.0),
        ("* pair.weights[index]", "* pair.weights[index] * 7", 7.0),
    ],
)
def test_changed_source_is_compiled_anew(tmp_path: Path, old: str, new: str, factor: float) -> None:
    assert weighted(module_of(tmp_path, SOURCE)) == pytest.approx(WEIGHTED)
    assert weighted(module_of(tmp_path, SOURCE.replace(old, new))) == pytest.approx(1.5 + (WEIGHTED - 1.5) * factor)
    kept(tmp_path / "__pycache__")  # one file, that of the new source


def test_damaged_files_are_compiled_anew(tmp_path: Path) -> None:
    weighted(module_of(tmp_path, SOURCE))
    path = kept(tmp_path / "__pycache__")
    whole = path.read_bytes()
    for damaged in (
        b"",
        whole[:10],
        whole[:32],
        whole[: len(whole) // 2],
        whole[:-1],
        whole + b"\0",
        b"\0" + whole[1:],
    ):
        path.write_bytes(damaged)
        assert weighted(module_of(tmp_path, SOURCE)) == pytest.approx(WEIGHTED)
        assert path.read_bytes()[32:36] == whole[32:36]
        assert len(path.read_bytes()) == len(whole)


def test_every_damaged_byte_is_seen(tmp_path: Path) -> None:
    source, code = tmp_path / "a.py", bytes(range(64))
    write_code("a.b", source, b"digest", code)
    path = kept(tmp_path / "__pycache__", "a.b")
    assert read_code("a.b", source, b"digest") == code
    assert read_code("a.b", source, b"another digest") is None
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert read_code("a.b", source, b"digest") is None
        path.write_bytes(whole[:place])
        assert read_code("a.b", source, b"digest") is None


def test_a_folder_that_cannot_be_written_sends_code_to_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "__pycache__").write_text("not a folder", encoding="utf-8")
    assert weighted(module_of(tmp_path, SOURCE)) == pytest.approx(WEIGHTED)
    kept(tmp_path / "cache" / "meshwright" / "kernels")
    monkeypatch.setitem(sys.modules, "solver.selection.kernel_compiler", None)
    assert weighted(module_of(tmp_path, SOURCE)) == pytest.approx(WEIGHTED)


@pytest.mark.parametrize("cache", ["file", "relative"])
def test_where_nothing_can_be_written_code_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: str
) -> None:
    (tmp_path / "__pycache__").write_text("not a folder", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", {"file": str(tmp_path / "__pycache__"), "relative": "cache"}[cache])
    monkeypatch.chdir(tmp_path)
    made = module_of(tmp_path, SOURCE)
    assert weighted(made) == weighted(made) == pytest.approx(WEIGHTED)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["__pycache__", "sums.py"]


def test_a_full_disk_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    """``/dev/full`` stands for the disk: a folder of links to it takes every name and no byte."""
    source = tmp_path / "a.py"
    folder = source.parent / "__pycache__"
    folder.mkdir()
    unfinished = f"{_file_name('a.b')}.{os.getpid()}.{threading.get_ident()}"
    (folder / unfinished).symlink_to("/dev/full")
    write_code("a.b", source, b"digest", bytes(100))
    assert list(folder.iterdir()) == []


def _file_name(name: str) -> str:
    from solver.selection import kernel_store

    return kernel_store._file_name(name)


def test_threads_that_call_first_get_the_same(tmp_path: Path) -> None:
    made = module_of(tmp_path, SOURCE)
    start, results = threading.Barrier(8), []

    def call() -> None:
        start.wait()
        results.append(weighted(made))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert set(results) == {weighted(made)}


def test_processes_that_compile_at_once_get_the_same(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(SOURCE, encoding="utf-8")
    code = "import sums, numpy; print(sums.holds(numpy.arange(9), 8), sums.__file__)"
    surroundings = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=surroundings, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert {each.communicate()[0] for each in running} == {f"True {tmp_path / 'sums.py'}\n"}
    assert [path.suffix for path in (tmp_path / "__pycache__").glob("sums.holds*")] == [".kernel"]


def test_the_first_plan_of_a_process_imports_no_compiler() -> None:
    code = (
        "import sys; from planner.cli.main import main\n"
        "main('plan --model llama-3.1-8b --cluster dgx-h100 --devices 8 --global-batch-size 64 --sequence-length 8192 "
        "--backend megatron --no-store -o json'.split())\n"
        "print(sorted(set(sys.modules) & {'numba', 'llvmlite.binding'}), file=sys.stderr)"
    )
    run = [sys.executable, "-c", code]
    for _ in range(2):  # the first one may compile
        done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "['llvmlite.binding']"


def test_kernels_say_what_they_are() -> None:
    from solver.selection.messages import send

    assert isinstance(send, Kernel)
    assert (send.__doc__ or "").startswith("Message from the rows")
