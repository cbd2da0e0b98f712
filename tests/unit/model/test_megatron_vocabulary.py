from __future__ import annotations

import pytest

from planner.model.megatron_args import LaunchJob, megatron_job
from profiles.validation import FindingsInvalid

MODEL = "--num-layers 2 --hidden-size 96 --num-attention-heads 4 --seq-length 8 --position-embedding-type rope "


def read(more: str, vocab_size: int | None = None) -> LaunchJob:
    return megatron_job(MODEL + more, "x", "args", vocab_size=vocab_size)


@pytest.mark.parametrize(
    ("more", "padded"),
    [
        ("--vocab-size 1000", 1024),
        ("--vocab-size 1000 --no-pad-vocab-size", 1000),
        ("--vocab-size 1000 --tensor-model-parallel-size 4", 1024),
        ("--vocab-size 1025 --tensor-model-parallel-size 4", 1536),
        ("--vocab-size 1000 --make-vocab-size-divisible-by 100", 1000),
        ("--tokenizer-type NullTokenizer --vocab-size 1024", 1024),
        ("--padded-vocab-size 151936 --make-vocab-size-divisible-by 1", 151936),
        ("--tokenizer-type TikTokenizer --tokenizer-model x.json", 131072),
        ("--tokenizer-type GPT2BPETokenizer --vocab-file v.json --merge-file m.txt", 50304),
        ("--vocab-file $3 --merge-file $4", 50304),
        ("--tokenizer-type Llama2Tokenizer --tokenizer-model $TOKENIZER", 32000),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-3.1-8B", 128256),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model /data/Meta-Llama-3-70B/", 128256),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-2-7b-hf", 32000),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model mistralai/Mixtral-8x7B-v0.1", 32000),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model Qwen/Qwen2-7B", 151680),
        ("--tokenizer-type HuggingFaceTokenizer --tokenizer-model Qwen/Qwen2.5-7B-Instruct", 151680),
        (
            "--tokenizer-type HuggingFaceTokenizer --tokenizer-model Qwen/Qwen3-8B --make-vocab-size-divisible-by 1187",
            151936,
        ),
        (
            "--tokenizer-type HuggingFaceTokenizer --tokenizer-model deepseek-ai/DeepSeek-V3"
            " --make-vocab-size-divisible-by 3232",
            129280,
        ),
    ],
)
def test_the_vocabulary_is_padded_as_megatron_pads_it(more: str, padded: int) -> None:
    job = read(more)
    assert job.model.vocab_size == padded == job.vocabulary.padded
    assert job.vocabulary.told


@pytest.mark.parametrize(
    "more",
    [
        "",
        "--tokenizer-type HuggingFaceTokenizer --tokenizer-model $MODEL_DIR",
        "--tokenizer-type HuggingFaceTokenizer --tokenizer-model deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
        "--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-4-Scout-17B-16E",
        "--tokenizer-type HuggingFaceTokenizer --tokenizer-model mistralai/Mixtral-8x7B-v0.3",
        "--tokenizer-type HuggingFaceTokenizer --tokenizer-model Qwen/Qwen2-VL-7B",
        "--tokenizer-type NullTokenizer",
    ],
)
def test_a_vocabulary_that_nothing_tells_is_asked_for_by_its_flag(more: str) -> None:
    with pytest.raises(FindingsInvalid) as raised:
        read(more)
    assert [finding.pointer for finding in raised.value.findings] == ["/--vocab-size"]
    assert read(more, 1000).model.vocab_size == 1024


def test_the_caller_wins_and_the_answer_says_so() -> None:
    job = read("--vocab-size 5000 --tensor-model-parallel-size 2", 1000)
    assert job.model.vocab_size == 1024
    assert job.vocabulary.told == "--vocab-size 1,000 as you say, not the script's 5,000, padded to 1,024"
    assert read("--padded-vocab-size 151936", 1000).vocabulary.told.startswith(
        "--vocab-size 1,000 as you say, not the script's 151,936"
    )
    assert "not the script" not in read("--vocab-size 1000", 1000).vocabulary.told
    assert "not the script" not in read("", 1000).vocabulary.told


def test_a_size_from_a_table_is_told_with_its_source() -> None:
    told = read("--tokenizer-type HuggingFaceTokenizer --tokenizer-model Qwen/Qwen3-8B").vocabulary.told
    assert told.startswith("151,669 of the Qwen3 tokenizer (tokenizer.json")
    assert told.endswith("padded to 151,680")
