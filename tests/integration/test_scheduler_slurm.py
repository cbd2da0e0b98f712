"""The Slurm example: real scripts, a real service; only srun, scontrol and sbatch are stood in for."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.backends.emission.write import changed_files, read_manifest
from planner.store import open_store
from tests.board_in_memory import MemoryBoard
from tests.listening_service import listening
from tests.scheduler_examples import FOLDER, environment, run_script, small_question, write_program

PLAN_JOB = "slurm/plan_job.py"
LUA = next((found for name in ("lua", "lua5.4", "lua5.3", "luajit") if (found := shutil.which(name))), None)
HARNESS = """
slurm = {SUCCESS = 0, ERROR = -1, NO_VAL = 4294967294, log_info = function(...) end, log_user = function(...) end}
dofile(arg[1])
local job = {comment = arg[2], min_nodes = tonumber(arg[3]), max_nodes = tonumber(arg[4])}
print(slurm_job_submit(job, {}, 0), math.tointeger(job.min_nodes), math.tointeger(job.max_nodes))
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('service') / 'plans.db'}"


@pytest.fixture(scope="module")
def address(database: str) -> Iterator[str]:
    with listening(database, MemoryBoard(database)) as found:
        yield found


@pytest.fixture
def question(tmp_path: Path) -> Path:
    file = tmp_path / "question.json"
    file.write_text(json.dumps(small_question()), encoding="utf-8")
    return file


def test_a_question_in_the_words_of_version_1_is_still_read(address: str, question: Path, tmp_path: Path) -> None:
    old = {**small_question(constraints={"target": "megatron"}), "framework": "tuned"}
    file = tmp_path / "old.json"
    file.write_text(json.dumps(old), encoding="utf-8")
    words = ("--nodes", "1", "--budget", "60", "--least-efficiency", "0")
    ran = [run_script(PLAN_JOB, "nodes", str(each), *words, address=address) for each in (file, question)]
    assert [(each.returncode, each.stdout) for each in ran] == [(0, "1\n")] * 2, ran[0].stderr


@pytest.mark.slow
def test_a_job_gets_the_nodes_that_it_is_worth(address: str, question: Path) -> None:
    words = ("nodes", str(question), "--nodes", "1,2,4", "--budget", "60")
    answers = {}
    for rule in (("--least-efficiency", "0"), ("--least-efficiency", "1"), ("--fewest",)):
        ran = run_script(PLAN_JOB, *words, *rule, address=address)
        assert ran.returncode == 0, ran.stderr
        answers[rule[-1]] = ran.stdout
    assert answers == {"0": "4\n", "1": "1\n", "--fewest": "1\n"}


@pytest.mark.parametrize(
    ("words", "changes", "code", "said"),
    [
        (("--nodes", "0-3"), {}, 2, "no list"),
        (("--nodes", "1-999"), {}, 2, "no list"),
        (("--nodes", "1"), {"model": "no-such-model"}, 5, "no-such-model"),
        (("--nodes", "1"), {"colour": 1, "workload": {"global_batch_size": 0}}, 2, "global_batch_size"),
        (("--nodes", "1", "--fewest"), {"constraints": {"min_tokens_per_s": 1e15}}, 5, "target is missed"),
        (("--nodes", "1"), {"constraints": {"pins": {"pp": 64}}}, 5, "fits"),
    ],
)
def test_what_cannot_be_is_one_error(
    address: str, tmp_path: Path, words: tuple[str, ...], changes: dict[str, object], code: int, said: str
) -> None:
    file = tmp_path / "question.json"
    file.write_text(json.dumps(small_question(**changes)), encoding="utf-8")
    ran = run_script(PLAN_JOB, "nodes", str(file), "--budget", "60", *words, address=address)
    assert (ran.returncode, ran.stdout) == (code, ""), ran.stderr
    assert said in ran.stderr
    assert ran.stderr.startswith("error[")
    assert "Traceback" not in ran.stderr


@pytest.mark.slow
def test_an_allocation_gets_launch_files_once(address: str, database: str, question: Path, tmp_path: Path) -> None:
    words = ("launch", str(question), "--out", str(tmp_path / "plan"))
    inside = {"SLURM_JOB_ID": "4711", "SLURM_JOB_NUM_NODES": "2"}
    first = run_script(PLAN_JOB, *words, address=address, extra=inside)
    assert first.returncode == 0, first.stderr
    again = run_script(PLAN_JOB, *words, address=address, extra=inside)
    assert again.stdout == first.stdout
    folder = tmp_path / "plan"
    manifest = read_manifest(folder)
    assert changed_files(folder, manifest) == ()
    assert (manifest["launcher"], manifest["backend"]) == ("slurm", "megatron")
    assert "#SBATCH --nodes=2" in (folder / "job.sbatch").read_text()
    with open_store(database) as store:
        assert store.get_plan(first.stdout.strip()).chosen().world_size == 16
    # Requeued on other nodes: another start is another request.
    fewer = {**inside, "SLURM_JOB_NUM_NODES": "1", "SLURM_RESTART_COUNT": "1"}
    other = run_script(PLAN_JOB, "launch", str(question), "--out", str(tmp_path / "1"), address=address, extra=fewer)
    assert other.returncode == 0, other.stderr
    assert "#SBATCH --nodes=1" in (tmp_path / "1" / "job.sbatch").read_text()
    assert run_script(PLAN_JOB, "launch", str(question), "--out", "x", address=address).returncode == 2


def test_the_batch_script_plans_and_starts(address: str, question: Path, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    write_program(tools / "scontrol", "printf 'n1\\nn2\\n'")
    write_program(tools / "srun", 'echo "srun $*"; echo "master $MASTER_ADDR"; test -f "$PLAN_DIR/launch.sh"')
    inside = {
        **{"SLURM_JOB_ID": "8", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "n[1-2]"},
        **{"SLURM_SUBMIT_DIR": str(tmp_path), "QUESTION": str(question), "PLAN_JOB": str(FOLDER / PLAN_JOB)},
        "PATH": f"{tools}:/usr/bin:/bin",
    }
    ran = run_script("slurm/train.sbatch", address=address, extra=inside, program="bash")
    assert ran.returncode == 0, ran.stderr
    assert "srun --kill-on-bad-exit=1" in ran.stdout
    assert "master n1" in ran.stdout
    assert (tmp_path / "plan-8-0" / "manifest.json").is_file()


def test_submit_asks_and_hands_the_job_to_sbatch(address: str, question: Path, tmp_path: Path) -> None:
    write_program(tmp_path / "bin" / "sbatch", 'echo "$QUESTION"; printf "%s\\n" "$@"')
    extra = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "NODES": "1,2"}
    ran = run_script("slurm/submit.sh", str(question), "--partition=x y", address=address, extra=extra, program="bash")
    assert ran.returncode == 0, ran.stderr
    said, nodes, partition, script = ran.stdout.splitlines()
    assert (said, partition) == (str(question), "--partition=x y")
    assert nodes in {"--nodes=1", "--nodes=2"}
    assert script.endswith("train.sbatch")


@pytest.mark.skipif(LUA is None, reason="no Lua interpreter is installed")
def test_the_plugin_sets_the_nodes_and_never_holds_a_job_up(address: str, question: Path, tmp_path: Path) -> None:
    harness = tmp_path / "harness.lua"
    harness.write_text(HARNESS)

    def submitted(comment: str, least: str, most: str, **extra: str) -> str:
        variables = {"MESHWRIGHT_PLAN_JOB": str(FOLDER / "slurm" / "plan_job.sh"), "MESHWRIGHT_TIMEOUT_S": "120"}
        python = {"MESHWRIGHT_PYTHON": environment(address)["PYTHON"], "MESHWRIGHT_ENVIRONMENT": "/nothing"}
        done = subprocess.run(
            [LUA or "lua", str(harness), str(FOLDER / "slurm" / "job_submit.lua"), comment, least, most],
            capture_output=True, text=True, env=environment(address, {**variables, **python, **extra}), check=True,
        )  # fmt: skip
        return " ".join(done.stdout.split())

    assert submitted(f"meshwright:{question}", "2", "2") == "0 2 2"
    assert submitted(f"meshwright:{question}", "1", "2") in {"0 1 1", "0 2 2"}
    for comment in ("", "my run", f"meshwright:{question}; touch /tmp/x", "meshwright:/no/such/file"):
        assert submitted(comment, "1", "2") == "0 1 2"
    assert submitted(f"meshwright:{question}", "1", "2", MESHWRIGHT_SERVER="http://127.0.0.1:9") == "0 1 2"
