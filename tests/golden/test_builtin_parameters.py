"""Total parameters of every built-in model; the published safetensors totals of the hub where a model is on it.

Those of the hybrids and of deepseek-v3.2: transformers 5.23.0's own modules, built on the meta device.
"""

from __future__ import annotations

import pytest

from planner.model.builtin import builtin_model, builtin_models, builtin_source
from planner.model.parameters import active_parameters, total_parameters

TOTAL = {
    "bloom-176b": 176_247_271_424,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v3": 671_026_404_352,
    "deepseek-v3.2": 671_877_929_216,
    "gemma-2-27b": 27_227_128_320,
    "gemma-3-27b": 27_009_346_304,
    "glm-4.5": 352_797_814_784,
    "glm-4.5-air": 106_852_245_504,
    "gpt-1t": 1_008_038_758_400,
    "gpt-22b": 22_074_273_792,
    "gpt-530b": 529_600_819_200,
    "gpt-neox-20b": 20_554_567_680,
    "gpt-oss-120b": 116_829_156_672,
    "gpt-oss-20b": 20_914_757_184,
    "gpt2-xl": 1_557_611_200,
    "gpt3-175b": 174_615_846_912,
    "kimi-k2": 1_026_408_209_408,
    "kimi-linear-48b-a3b": 49_133_074_464,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-2-7b": 6_738_415_616,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "llava-1.5-7b": 7_063_427_072,
    "mistral-7b": 7_241_732_096,
    "mixtral-8x22b": 140_620_634_112,
    "mixtral-8x7b": 46_702_792_704,
    "mpt-30b": 29_957_200_896,
    "nemotron-3-nano-30b-a3b": 31_577_937_344,
    "nemotron-3-super-120b-a12b": 120_668_687_360,
    "nemotron-h-8b": 8_100_852_736,
    "olmo-2-13b": 13_716_198_400,
    "opt-66b": 65_719_701_504,
    "phi-4": 14_659_507_200,
    "qwen2.5-72b": 72_706_203_648,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-vl-7b": 8_292_166_656,
    "qwen3-235b-a22b": 235_093_634_560,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-32b": 32_762_123_264,
    "qwen3-8b": 8_190_735_360,
    "qwen3-next-80b-a3b": 79_674_391_296,
    "t5-11b": 11_307_321_344,
    "wan-2.1-14b": 14_288_491_584,
}

ACTIVE_B = {  # as the models' own reports state them, in 1e9, rounded as there
    "mixtral-8x7b": (12.9, 0.05),  # arXiv 2401.04088: 13 B
    "mixtral-8x22b": (39.0, 0.5),
    "deepseek-v2": (21.0, 0.5),  # arXiv 2405.04434
    "deepseek-v3": (37.0, 0.6),  # arXiv 2412.19437
    "qwen3-235b-a22b": (22.0, 0.5),
    "qwen3-30b-a3b": (3.3, 0.1),
    "kimi-k2": (32.0, 1.0),
    "nemotron-3-nano-30b-a3b": (3.6, 0.1),
    "qwen3-next-80b-a3b": (3.9, 0.1),
    "gpt-oss-120b": (5.1, 0.7),  # the model card leaves the token table out
}


def test_every_builtin_model_is_listed() -> None:
    assert set(builtin_models()) == set(TOTAL)


@pytest.mark.parametrize("name", sorted(TOTAL))
def test_total_parameters(name: str) -> None:
    assert total_parameters(builtin_model(name)) == TOTAL[name]


@pytest.mark.parametrize("name", sorted(ACTIVE_B))
def test_active_parameters_are_those_of_the_report(name: str) -> None:
    expected, tolerance = ACTIVE_B[name]
    assert active_parameters(builtin_model(name)) / 1e9 == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("name", sorted(TOTAL))
def test_every_number_has_a_source(name: str) -> None:
    assert len(builtin_source(name)) > 20
