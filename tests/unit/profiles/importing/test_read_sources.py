"""Every file gets an answer: an import, or one clear error that names the file."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid, MeshwrightError, NotFound
from profiles.importing.format import ReadOptions
from profiles.importing.given_facts import GivenFacts
from profiles.importing.read_sources import BAD_ROWS_SHOWN, guarded, read_sources
from profiles.importing.source_file import SourceFile
from tests.importing import written
from tests.nccl_text import BAD, all_reduce_text

OSU = "# OSU MPI Bandwidth Test v6.2\n# Size      Bandwidth (MB/s)\n1    1.21\n2   2.32\n4   4.85\n"


@pytest.fixture
def nccl(tmp_path: Path) -> SourceFile:
    return written(tmp_path, "run.log", all_reduce_text())


def test_a_file_is_recognised_read_and_described(nccl: SourceFile) -> None:
    (result,) = read_sources([nccl])
    assert result.error is None
    assert result.imported is not None
    assert result.source is not None
    assert (result.source.format, result.source.kind, result.source.file_name) == ("nccl-tests", "imported", "run.log")
    assert result.source.file_sha256 == nccl.sha256
    assert result.source.file_bytes == len(all_reduce_text())
    assert result.imported.num_observations == 6


def test_paths_may_be_given_plainly_and_compressed(tmp_path: Path) -> None:
    path = tmp_path / "run.log.gz"
    path.write_bytes(gzip.compress(all_reduce_text().encode()))
    (result,) = read_sources([path])
    assert result.error is None
    assert result.imported is not None
    assert result.imported.num_observations == 6


def test_each_file_has_its_own_answer(nccl: SourceFile, tmp_path: Path) -> None:
    unknown = written(tmp_path, "notes.txt", "nothing to see here\n")
    results = read_sources([unknown, nccl, tmp_path / "absent.log", written(tmp_path, "osu.txt", OSU)])
    assert [type(result.error) for result in results] == [DocumentInvalid, type(None), NotFound, type(None)]
    assert [result.error.exit_code for result in results if result.error] == [2, 3]
    assert results[0].error is not None
    assert results[0].error.where == str(unknown.path)


def test_bad_rows_refuse_the_file_and_are_listed(tmp_path: Path) -> None:
    file = written(tmp_path, "osu.txt", OSU + "8  nan\n" * 25)
    (result,) = read_sources([file])
    assert isinstance(result.error, DocumentInvalid)
    assert result.error.where == str(file.path)
    lines = result.error.what.split("\n")
    assert lines[0] == "25 rows cannot be used"
    assert "line 6" in lines[1]
    assert len(lines) == 1 + BAD_ROWS_SHOWN + 1
    assert lines[-1] == "  ... and 5 more"
    assert result.error.hint == "repair the file, or import the 3 good rows with --keep-going"
    assert result.imported is not None
    assert len(result.imported.bad_rows) == 25


def test_keep_going_takes_the_good_rows(tmp_path: Path) -> None:
    (result,) = read_sources([written(tmp_path, "osu.txt", OSU + "8 -3\n")], keep_going=True)
    assert result.error is None
    assert result.imported is not None
    assert result.imported.num_observations == 3
    assert result.imported.bad_rows[0].where == "line 6"


def test_keep_going_needs_at_least_one_good_row(tmp_path: Path) -> None:
    (result,) = read_sources([written(tmp_path, "run.log", all_reduce_text(good="", bad=BAD))], keep_going=True)
    assert isinstance(result.error, DocumentInvalid)


def test_a_named_format_is_not_guessed(nccl: SourceFile) -> None:
    (result,) = read_sources([nccl], format_name="osu")
    assert isinstance(result.error, DocumentInvalid)
    assert result.format is not None
    assert result.format.name == "osu"
    with pytest.raises(NotFound, match="there is no format 'nccl-test'"):
        read_sources([nccl], format_name="nccl-test")


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    written(tmp_path, "results/b/run.log", all_reduce_text())
    written(tmp_path, "results/a.txt", OSU)
    written(tmp_path, "results/README", "what this is\n")
    written(tmp_path, "results/.hidden", all_reduce_text())
    results = read_sources([tmp_path / "results"])
    found = {result.files[0].name: result for result in results}
    assert set(found) == {"run.log", "a.txt", "README"}
    assert found["README"].passed_over
    assert [name for name, result in found.items() if result.error is None] == ["a.txt", "run.log"]


def test_a_folder_without_anything_known_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "results/README", "what this is\n")
    (result,) = read_sources([tmp_path / "results"])
    assert isinstance(result.error, DocumentInvalid)
    assert "no importer recognises anything in this folder" in result.error.what


def test_links_in_a_folder_are_not_followed(tmp_path: Path, nccl: SourceFile) -> None:
    written(tmp_path, "results/a.txt", OSU)
    (tmp_path / "results/link.log").symlink_to(nccl.path)
    assert [result.files[0].name for result in read_sources([tmp_path / "results"])] == ["a.txt"]


def test_the_device_that_the_user_names_is_the_device(tmp_path: Path) -> None:
    (result,) = read_sources(
        [written(tmp_path, "a.txt", OSU)], options=ReadOptions({"device": "NVIDIA H100 80GB HBM3"})
    )
    assert result.imported is not None
    assert {batch.environment.device for batch in result.imported.batches} == {"h100-sxm5-80gb"}
    (result,) = read_sources([tmp_path / "a.txt"], options=ReadOptions({"device": "my-own-card"}))
    assert result.imported is not None
    assert {batch.environment.device for batch in result.imported.batches} == {"my-own-card"}
    assert result.given == {"device": "my-own-card"}


def test_a_fact_that_nobody_asks_for_is_said(nccl: SourceFile) -> None:
    (result,) = read_sources([nccl], options=ReadOptions({"colour": "red", "device": "h200"}))
    assert result.source is not None
    assert [flag.what for flag in result.source.flags if flag.code == "option-not-used"] == [
        "'colour' was given, but this format takes no such fact"
    ]


def test_facts_remember_who_looked() -> None:
    facts = GivenFacts({"a": "1", "b": "2", "c": "3"})
    assert facts.get("a") == "1"
    assert "b" in facts
    assert facts.never_asked_for == ["c"]
    assert dict(facts) == {"a": "1", "b": "2", "c": "3"}
    assert facts.never_asked_for == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("ts"), "(KeyError: 'ts')"),
        (ValueError("bad\nsecond line"), "(ValueError: bad)"),
        (RecursionError(), "(RecursionError: no message)"),
        (MemoryError(), "(MemoryError: no message)"),
        (ZeroDivisionError("division by zero"), "(ZeroDivisionError: division by zero)"),
    ],
)
def test_no_exception_of_an_importer_becomes_a_traceback(tmp_path: Path, error: Exception, said: str) -> None:
    file = written(tmp_path, "x.log", "x")

    def broken() -> None:
        raise error

    with pytest.raises(DocumentInvalid) as caught:
        guarded([file], broken)
    assert caught.value.what == f"the file is damaged or of an unknown variant {said}"
    assert caught.value.where == str(file.path)
    assert "--format" in (caught.value.hint or "")


@pytest.mark.parametrize(("where", "expected"), [(None, "{}"), ("line 5", "{}: line 5"), ("{}:3", "{}:3")])
def test_errors_name_the_file(tmp_path: Path, where: str | None, expected: str) -> None:
    file = written(tmp_path, "x.log", "x")
    place = where.format(file.path) if where else None

    def refused() -> None:
        raise MeshwrightError("no", where=place)

    with pytest.raises(MeshwrightError) as caught:
        guarded([file], refused)
    assert caught.value.where == expected.format(file.path)


def test_a_package_that_is_missing_is_no_damage(tmp_path: Path) -> None:
    def missing() -> None:
        raise ModuleNotFoundError("No module named 'x'")

    with pytest.raises(ModuleNotFoundError):
        guarded([written(tmp_path, "x.log", "x")], missing)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.log", b"", "no importer"),
        ("run.pkl", b"whatever", "pickle"),
        ("renamed.log", pickle.dumps({"a": 1}), "pickle"),
        ("cut.log.gz", gzip.compress(all_reduce_text().encode())[:-200], "damaged"),
        ("noise.log.gz", b"\x1f\x8b" + bytes(range(256)), "damaged"),
        ("zeros.bin", b"\0" * 100_000, "no importer"),
        ("report.nsys-rep", b"\x01\x02", "Nsight Systems"),
        ("wide.csv", b",".join(b"%d" % column for column in range(1_000_000)) + b"\n", "no importer"),
    ],
)
@pytest.mark.parametrize("format_name", [None, "nccl-tests"])
def test_hostile_files_are_refused(
    tmp_path: Path, name: str, content: bytes, said: str, format_name: str | None
) -> None:
    (result,) = read_sources([written(tmp_path, name, content)], format_name=format_name)
    assert isinstance(result.error, DocumentInvalid)
    if format_name is None:
        assert said in result.error.what


def test_a_gzip_bomb_is_refused_while_it_unfolds(tmp_path: Path) -> None:
    path = tmp_path / "bomb.log.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(all_reduce_text().encode())
        for _ in range(300):
            file.write(b" " * (1 << 20))
    (result,) = read_sources([path])
    assert isinstance(result.error, DocumentInvalid)
    assert "bomb" in result.error.what
