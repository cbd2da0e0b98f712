"""How the script calls each class of diffusion transformer: its ``forward`` and the pipeline that uses it.

Sources: diffusers 0.42.1 ``models/transformers/`` and pipelines/wan, hunyuan_video, cosmos, cogvideo, ltx, flux,
stable_diffusion_3, qwenimage, pixart_alpha, aura_flow.
"""

from __future__ import annotations

CALLS: dict[str, tuple[str, int, str]] = {
    "AuraFlowTransformer2DModel": (
        """    return model(
        hidden_states=latents, encoder_hidden_states=text, timestep=level.flatten(), return_dict=False
    )[0]
""",
        1,
        'config["joint_attention_dim"]',
    ),
    "CogVideoXTransformer3DModel": (
        """    rotary, ofs = None, None
    if config["use_rotary_positional_embeddings"]:
        from diffusers.models.embeddings import get_3d_rotary_pos_embed

        corners, sides = ((0, 0), (rows, columns)), (rows, columns)
        rotary = get_3d_rotary_pos_embed(
            config["attention_head_dim"], corners, sides, frames, device=latents.device
        )
    if config["ofs_embed_dim"]:
        ofs = torch.full((len(text),), 2.0, device=text.device)
    return model(
        hidden_states=latents,
        encoder_hidden_states=text,
        timestep=(1000.0 * level.flatten()).long(),
        ofs=ofs,
        image_rotary_emb=rotary,
        return_dict=False,
    )[0]
""",
        2,
        'config["text_embed_dim"]',
    ),
    "CosmosTransformer3DModel": (
        """    return model(
        hidden_states=latents,
        timestep=level.flatten(),
        encoder_hidden_states=text,
        fps=24,  # YOUR frames a second
        padding_mask=latents.new_zeros(1, 1, *latents.shape[-2:]),  # YOUR mask of padding
        return_dict=False,
    )[0]
""",
        1,
        'config["text_embed_dim"]',
    ),
    "FluxTransformer2DModel": (
        """    places = torch.zeros(rows, columns, 3, device=latents.device)
    places[..., 1] += torch.arange(rows, device=latents.device)[:, None]
    places[..., 2] += torch.arange(columns, device=latents.device)
    return model(
        hidden_states=latents,
        encoder_hidden_states=text,
        pooled_projections=text.new_zeros(len(text), config["pooled_projection_dim"]),  # YOUR pooled text
        timestep=level.flatten().to(latents.dtype),
        img_ids=places.reshape(-1, 3),
        txt_ids=torch.zeros(text.shape[1], 3, device=text.device),
        guidance=torch.ones(len(text), device=text.device) if config["guidance_embeds"] else None,  # YOUR guidance
        return_dict=False,
    )[0]
""",
        2,
        'config["joint_attention_dim"]',
    ),
    "HunyuanVideoTransformer3DModel": (
        """    return model(
        hidden_states=latents,
        timestep=(1000.0 * level.flatten()).long(),
        encoder_hidden_states=text,
        encoder_attention_mask=torch.ones(text.shape[:2], device=text.device),  # YOUR mask of padded text
        pooled_projections=text.new_zeros(len(text), config["pooled_projection_dim"]),  # YOUR pooled text
        guidance=torch.ones(len(text), device=text.device) if config["guidance_embeds"] else None,  # YOUR guidance
        return_dict=False,
    )[0]
""",
        1,
        'config["text_embed_dim"]',
    ),
    "LTXVideoTransformer3DModel": (
        """    return model(
        hidden_states=latents,
        encoder_hidden_states=text,
        timestep=(1000.0 * level.flatten()).long(),
        encoder_attention_mask=torch.ones(text.shape[:2], device=text.device),  # YOUR mask of padded text
        num_frames=frames,
        height=rows,
        width=columns,
        return_dict=False,
    )[0]
""",
        2,
        'config["caption_channels"]',
    ),
    "PixArtTransformer2DModel": (
        """    pixels = torch.tensor([[float(latents.shape[-2]), float(latents.shape[-1])]], device=text.device)
    conditions = {"resolution": (8.0 * pixels).expand(len(text), 2), "aspect_ratio": pixels[:, :1] / pixels[:, 1:]}
    conditions["aspect_ratio"] = conditions["aspect_ratio"].expand(len(text), 1)
    return model(
        hidden_states=latents,
        encoder_hidden_states=text,
        timestep=(1000.0 * level.flatten()).long(),
        added_cond_kwargs=conditions,
        return_dict=False,
    )[0]
""",
        1,
        'config["caption_channels"] or config["cross_attention_dim"]',
    ),
    "QwenImageTransformer2DModel": (
        """    return model(
        hidden_states=latents,
        encoder_hidden_states=text,
        timestep=level.flatten().to(latents.dtype),
        img_shapes=[[(frames, rows, columns)]] * len(latents),
        return_dict=False,
    )[0]
""",
        2,
        'config["joint_attention_dim"]',
    ),
    "SD3Transformer2DModel": (
        """    return model(
        hidden_states=latents,
        encoder_hidden_states=text,
        pooled_projections=text.new_zeros(len(text), config["pooled_projection_dim"]),  # YOUR pooled text
        timestep=(1000.0 * level.flatten()).long(),
        return_dict=False,
    )[0]
""",
        1,
        'config["joint_attention_dim"]',
    ),
    "WanTransformer3DModel": (
        """    picture, width = None, config["image_dim"]
    if width:  # YOUR states of the picture; 512 tokens of text stand beside them
        text, picture = text[:, :512], text.new_zeros(len(text), text.shape[1] - 512, width)
    return model(
        hidden_states=latents,
        timestep=(1000.0 * level.flatten()).long(),
        encoder_hidden_states=text,
        encoder_hidden_states_image=picture,
        return_dict=False,
    )[0]
""",
        1,
        'config["text_dim"]',
    ),
}
"""Class -> how it is called, the dimension of channels, and how wide text states are."""
