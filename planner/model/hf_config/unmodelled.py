"""Families that are known and not read, by the mechanism that a ``ModelSpec`` does not hold."""

from __future__ import annotations

from planner.model.hf_config.mechanisms import DSA, HYPER, LINEAR, SSM

_ENCODER_DECODER = "an encoder beside the decoder, with cross-attention"
_VISION = "a vision tower or projector of a kind that is not read"
_AUDIO = "an audio tower"

_BY_MECHANISM: dict[str, str] = {
    DSA: "axk2 dots3_note dots3_note_text mistral_large4",
    f"{HYPER} and {DSA}": "deepseek_v4 glm5_next hy_v4 qwen4_exp qwen4_exp_text",
    "block-sparse attention": "minimax_m3_vl minimax_m3_vl_text",
    f"linear attention ({LINEAR})": "bailing_hybrid",
    SSM: "nemotron_h_omni zamba zamba2",
    "recurrent layers": "recurrent_gemma rwkv xlstm",
    "short convolutions": "lfm2_vl lfm3 lfm3_vl",
    "attention beside a convolution": "zaya",
    "inputs of every layer, and key-values shared between layers": "gemma3n gemma3n_text gemma4 gemma4_assistant"
    " gemma4_text gemma4_unified gemma4_unified_assistant gemma4_unified_text",
    "rotary positions by kind of layer, of which the class has no defaults": "cohere_compass cohere_compass_text",
    "attention residuals and short convolutions": "inkling2 inkling2_text",
    "short convolutions beside attention and experts": "inkling_mm_model inkling_text",
    "experts on a latent width, and gates on the residuals": "muse_spark",
    "experts that compute nothing, and two attentions a layer": "longcat_flash",
    "a gate on the output of attention": "afmoe beam hrm_text laguna muse_glimmer step3p7",
    "activations with learned parameters (xIELU)": "apertus",
    "norms inside attention and MLP": "bitnet",
    "differential attention": "diffllama",
    "a mask that is computed from the values": "doge",
    "attention made of experts": "jetmoe",
    "a third norm in the layers with experts": "axk1",
    "numbers of key-value heads that differ between kinds of layers": "mimo_v2_flash",
    "blocks of bytes with towers of their own": "blt",
    "cross-attention to another modality": "evolla",
    "denoising over a canvas": "diffusion_gemma",
    "hashed or segment-wise attention": "reformer xlnet",
    "sizes in nested objects that are not read": "dbrx",
    "relative position biases": "cpmant",
    "attention within blocks and to global tokens": "led longt5 pegasus_x",
    "streams of several predicted tokens": "prophetnet",
    _ENCODER_DECODER: "encoder-decoder florence2 pix2struct seamless_m4t seamless_m4t_v2 t5gemma2 trocr udop"
    " vision-encoder-decoder",
    _AUDIO: "fun_asr_nano kyutai_speech_to_text"
    " musicgen musicgen_melody nemo_speechlm phi4_multimodal qwen2_5_omni"
    " qwen3_omni_moe vibevoice_asr "
    " voxtral_realtime",
    _VISION: "aria aya_vision blip blip-2 chameleon cosmos3_edge cosmos3_omni deepseek_ocr2 deepseek_vl_hybrid emu3"
    " ernie4_5_vl_moe exaone4_5 fast_vlm fuyu git glm_ocr got_ocr2 granite4_vision granite_docling"
    " hunyuan_vl idefics2 instructblip instructblipvideo janus kosmos-2 kosmos-2.5 minicpm_ocr"
    " minicpmv4_6 minicpmv4_7 molmo2 ovis2 paddleocr_vl perception_lm pi0"
    " pp_chart2table pp_formulanet unlimited_ocr video_llama_3 video_llava vipllava",
}

UNMODELLED: dict[str, str] = {name: words for words, names in _BY_MECHANISM.items() for name in names.split()}
"""``model_type`` -> what it has that cannot be described."""
