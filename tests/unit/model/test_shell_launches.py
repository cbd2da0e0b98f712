from __future__ import annotations

import pytest

from planner.model.shell.launches import Given, Launch, launch_of
from planner.model.shell.scope import UNKNOWN
from planner.model.shell.tree import ShellSyntaxError

TAIL = "\ntorchrun pretrain_gpt.py --num-layers $L"


def flags(text: str, given: Given | None = None) -> dict[str, list[str]]:
    """Values of each flag of the first launch."""
    found: dict[str, list[str]] = {}
    values: list[str] = []
    for word in launch_of(text, given or Given({})).words:
        if word.startswith("--"):
            values = found.setdefault(word, [])
        else:
            values.append(word)
    return found


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        (': "${L:=$((4 * 9))}"', "36"),
        ("SIZE=70B\nif [ $SIZE = 7B ]; then L=32; elif [[ $SIZE == 70* ]]; then L=80; else exit 1; fi", "80"),
        ('A=2; if [ $A -gt 1 ] && [ "$A" != 3 ]; then L=5; else L=6; fi', "5"),
        ("declare -A D=([small]=12 [large]='96')\nSIZE=large\nL=${D[$SIZE]}", "96"),
        ("declare -A D\nD[x]=7\nL=${D[x]}", "7"),
        ("case gpt3-7b in\n llama*) L=1 ;;\n gpt3-7b | gpt3-8b) L=2 ;;\n *) L=3 ;;\nesac", "2"),
        ("f() { local n=$1; L=$((n + 1)); }\nf 10", "11"),
        ("L=0; for i in {1..4}; do L=$((L + i)); done", "10"),
        ("L=1; while (( L < 100 )); do L=$((L * 2)); done", "128"),
        ("N=61; PP=8; L=$(( (N + PP - 1) / PP * PP ))", "64"),
        ("TP=4; L=$(( $TP > 1 ? 3 : 2 ))", "3"),
        ("P=llama-3-70b.sh; P=${P%.sh}; P=${P##*-}; L=${P/b/}", "70"),
        ("L=$(echo 24)", "24"),
        ("read -r L REST <<< '18 x y'", "18"),
        ("read -r -d '' L <<EOT\n44\nEOT", "44"),
        ("set -- 9 8\nL=$2", "8"),
        ("X='L=13'; eval $X", "13"),
        ('if [ -z "$NOT_SET" ]; then L=3; else L=4; fi', "3"),
        ("if [ ! -d /data ]; then echo none; exit 1; fi\nL=21", "21"),
        ("cat > env.sh <<EOF\nL=17\nEOF\nsource env.sh", "17"),
    ],
)
def test_a_variable_is_followed_to_the_launch(text: str, layers: str) -> None:
    assert flags(text + TAIL)["--num-layers"] == [layers]


@pytest.mark.parametrize(
    "text",
    [
        'A=(--num-layers 4)\nCMD="torchrun pretrain_gpt.py ${A[@]}"\n'
        'srun --nodes 2 bash -c "$CMD --seed \\$SLURM_PROCID"',
        'A=("--num-layers 4" # with the model\'s depth\n  --swiglu)\ntorchrun pretrain_gpt.py ${A[@]}',
        "sbatch <<EOF\n#!/bin/bash\n#SBATCH --nodes=2\npython pretrain_gpt.py --num-layers 4\nEOF",
        'go() {\n  torchrun pretrain_gpt.py "$@" --num-layers 4\n}\ngo --bf16 | tee log',
        '[ -n "$DRY" ] || torchrun pretrain_gpt.py --num-layers 4',
    ],
)
def test_a_launch_is_found_where_scripts_hide_it(text: str) -> None:
    assert flags(text)["--num-layers"] == ["4"]


def test_arguments_are_parsed_as_the_script_does() -> None:
    script = (
        "while [[ $# -gt 0 ]]; do\n  case $1 in\n    --layers) L=$2; shift 2 ;;\n    -h|--help) exit 0 ;;\n"
        '    *) echo "unknown $1"; exit 1 ;;\n  esac\ndone'
    )
    assert flags(script + TAIL, Given({}, ("--layers", "6")))["--num-layers"] == ["6"]
    stopped = launch_of(script + TAIL, Given({}, ("--layer", "6")))
    assert (stopped.count, stopped.stopped_at) == (0, 5)


def test_set_decides_what_the_text_leaves_open() -> None:
    script = "if [ $SIZE = 7B ]; then\n  L=32\nelse\n  L=80\nfi" + TAIL
    open_launch = launch_of(script)
    assert open_launch.words[-1] == f"{UNKNOWN}$L{UNKNOWN}"
    assert [(each.line, each.say) for each in open_launch.undecided] == [(1, "--set SIZE=VALUE")]
    assert flags(script, Given({"SIZE": "7B"}))["--num-layers"] == ["32"]


def test_arguments_that_only_an_open_condition_adds_are_left_out_and_listed() -> None:
    launch = launch_of("L=2\nA=(--bf16)\nif [ $F = 1 ]; then A+=(--fp8-format hybrid); fi" + TAIL + " ${A[@]}")
    assert launch.skipped == ("--fp8-format", "hybrid")
    assert [each.line for each in launch.undecided] == [3]
    assert "--fp8-format" not in launch.words


def test_what_was_taken_as_not_set_is_told() -> None:
    launch = launch_of("L=${LAYERS:-8}" + TAIL)
    assert dict(launch.taken_as_unset) == {"LAYERS": 1}
    assert launch.words[-1] == "8"


def test_slurm_directives_set_the_variables_of_the_job() -> None:
    script = "#!/bin/bash\n#SBATCH --nodes=16\n#SBATCH --gpus-per-node=8\nL=$((SLURM_NNODES * 2))" + TAIL
    assert flags(script)["--num-layers"] == ["32"]
    assert flags(script, Given({"SLURM_NNODES": "4"}))["--num-layers"] == ["8"]


def test_the_first_of_several_launches_is_read() -> None:
    launch = launch_of("for L in 2 4 6; do torchrun pretrain_gpt.py --num-layers $L; done")
    assert (launch.count, launch.words[-1]) == (3, "2")


def test_a_sourced_file_is_read_where_it_can_be_had() -> None:
    script = "source conf/model.sh" + TAIL
    files = {"conf/model.sh": "L=40"}
    assert flags(script, Given({}, opener=files.get))["--num-layers"] == ["40"]
    missing: Launch = launch_of(script)
    assert missing.undecided[0].what == "source conf/model.sh"


def test_an_unclosed_quote_is_named_with_its_line() -> None:
    with pytest.raises(ShellSyntaxError) as refused:
        launch_of("A=1\nB='x\n")
    assert (refused.value.what, refused.value.line) == ("the quote ' is not closed", 2)


def test_endless_scripts_end() -> None:
    with pytest.raises(ShellSyntaxError):
        launch_of("while true; do L=$L; done")
    with pytest.raises(ShellSyntaxError):
        launch_of("f() { f; }; f")
