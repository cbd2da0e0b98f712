"""Families that are known and not read, by the mechanism that a ``ModelSpec`` does not hold."""

from __future__ import annotations

from planner.model.hf_config.mechanisms import DSA, HYPER, SSM

_ENCODER_DECODER = "an encoder beside the decoder, with cross-attention"
_ENCODER = "token types and a transform before the head, as encoders of the BERT kind have"
_VISION = "a vision tower or projector of a kind that is not read"
_AUDIO = "an audio tower"

_BY_MECHANISM: dict[str, str] = {
    DSA: "dots3_note mistral_large4",
    f"{HYPER} and {DSA}": "glm5_next qwen4_exp",
    "block-sparse attention": "minimax_m3_vl",
    SSM: "nemotron_h_omni",
    "short convolutions": "lfm2_vl lfm3_vl",
    "inputs of every layer, and key-values shared between layers": "gemma3n gemma4 gemma4_assistant"
    " gemma4_unified gemma4_unified_assistant",
    "rotary positions by kind of layer, of which the class has no defaults": "cohere_compass",
    "attention residuals and short convolutions": "inkling2",
    "short convolutions beside attention and experts": "inkling_mm_model",
    "experts on a latent width, and gates on the residuals": "muse_spark",
    "a gate on the output of attention": "muse_glimmer step3p7",
    "blocks of bytes with towers of their own": "blt",
    "cross-attention to another modality": "idefics evolla mllama",
    "denoising over a canvas": "diffusion_gemma",
    "hashed or segment-wise attention": "reformer xlnet",
    _ENCODER: "bert bert-generation big_bird camembert data2vec-text electra ernie megatron-bert rembert roberta"
    " roberta-prelayernorm roc_bert roformer xlm xlm-roberta xlm-roberta-xl xmod",
    _ENCODER_DECODER: "bart bigbird_pegasus blenderbot blenderbot-small encoder-decoder florence2 fsmt led longt5"
    " m2m_100 marian mbart mt5 mvp nllb-moe pegasus pegasus_x pix2struct plbart prophetnet seamless_m4t seamless_m4t_v2"
    " switch_transformers t5 t5gemma t5gemma2 trocr udop umt5 vision-encoder-decoder whisper",
    _AUDIO: "audioflamingo3 fun_asr_nano glmasr granite_speech granite_speech_plus kyutai_speech_to_text moshi"
    " moss_transcribe_diarize musicflamingo musicgen musicgen_melody nemo_speechlm phi4_multimodal qwen2_5_omni"
    " qwen2_5_omni_thinker qwen2_audio qwen3_asr qwen3_omni_moe qwen3_omni_moe_thinker vibevoice_asr voxtral"
    " voxtral_realtime",
    _VISION: "aria aya_vision blip blip-2 chameleon cosmos3_edge cosmos3_omni deepseek_ocr2 deepseek_vl_hybrid emu3"
    " ernie4_5_vl_moe exaone4_5 fast_vlm fuyu git glm_ocr got_ocr2 granite4_vision granite_docling"
    " hunyuan_vl idefics2 instructblip instructblipvideo janus kosmos-2 kosmos-2.5 minicpm_ocr"
    " minicpmv4_6 minicpmv4_7 molmo2 ovis2 paddleocr_vl perception_lm pi0"
    " pp_chart2table pp_formulanet unlimited_ocr video_llama_3 video_llava vipllava",
}

UNMODELLED: dict[str, str] = {name: words for words, names in _BY_MECHANISM.items() for name in names.split()}
"""``model_type`` -> what it has that cannot be described."""
