"""``train_accelerate.py`` as it trains a diffusion transformer: what differs from the script of decoders.

Samples are latents with noise, text states and a noise level; the loss is that of flow matching (Lipman et al., arXiv
2210.02747, equation 23, with straight paths): the model predicts noise minus latents.
"""

from __future__ import annotations

from planner.backends.accelerate.denoiser_calls import CALLS
from planner.backends.accelerate.script_pieces import with_pieces, with_spans

_SAMPLES = '''class Samples:
    """Sample ``index`` -> (noisy latents, what the model shall predict, text states, noise level).

    Replace by YOUR latents, which a VAE makes, YOUR text states, which a text encoder makes, and YOUR noise levels.
    """

    def __init__(self, sample, text_width):
        self.shape, self.text = sample["shape"], (sample["text_tokens"], text_width)

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        noise, size = torch.randn(self.shape, generator=generator), torch.randn(1, generator=generator)
        latents = size * torch.linspace(-1.0, 1.0, noise.numel()).reshape(self.shape)
        level, text = torch.rand(1, generator=generator), torch.randn(self.text, generator=generator)
        return (1.0 - level) * latents + level * noise, noise - latents, text, level


'''
_PREDICT = '''def predict(model, config, sample, latents, text, level):
    """What the model says of a micro-batch of noisy latents."""
    frames, rows, columns = sample["grid"]
    latents, text = (each.to(next(model.parameters()).dtype) for each in (latents, text))
@CALL@

def denoising_loss(predicted, target):
    """Mean squared error in fp32, over the channels that both have."""
    width = min(predicted.shape[@AXIS@], target.shape[@AXIS@])
    predicted, target = (each.narrow(@AXIS@, 0, width).float() for each in (predicted, target))
    return torch.nn.functional.mse_loss(predicted, target)


'''
_SPLIT = '''def split_tokens(model, accelerator, ranks):
    """Each of ``ranks`` neighbours holds a part of the tokens, and around attention a part of the heads (Ulysses)."""
    device, sizes = accelerator.device.type, (accelerator.num_processes // ranks, 1, ranks)
    mesh = torch.distributed.init_device_mesh(device, sizes, mesh_dim_names=("data", "ring", "ulysses"))
    if device == "cuda":  # torch's own choice runs attention a second time in the backward pass
        model.set_attention_backend("_native_flash")
    model.enable_parallelism(config=diffusers.ContextParallelConfig(ulysses_degree=ranks, mesh=mesh))


'''
_BUILD = '''def build(plan, accelerator, seed):
    """The model, with the plan's layers recomputed."""
'''
_BUILT = """    model_class = getattr(diffusers, values.pop("_class_name"))
    through_deepspeed = accelerator.distributed_type == DistributedType.DEEPSPEED
    held = getattr(torch, plan["dtype"]) if through_deepspeed else torch.float32
    if os.environ.get("MODEL_PATH"):
        model = model_class.from_pretrained(os.environ["MODEL_PATH"], torch_dtype=held)
    else:
        model = model_class.from_config(values)
        initialise(model, seed, contextlib.nullcontext)
        for parameter in model.parameters():  # tables of positions stay as the class makes them
            parameter.data = parameter.data.to(held)
"""
_RECOMPUTED = """    names = ("blocks", "joint_transformer_blocks", "transformer_blocks", "single_transformer_blocks")
    layers = [layer for name in names for layer in getattr(model, name, ())]
    model._no_split_modules = sorted({type(layer).__name__ for layer in layers})  # what FSDP2 shards together
    if wanted:
        for index, layer in enumerate(layers):
            layer.recomputed = index in wanted

        def recompute(layer, *inputs):
            if not layer.recomputed:
                return layer(*inputs)
            return torch.utils.checkpoint.checkpoint(layer, *inputs, use_reentrant=False)

        model.enable_gradient_checkpointing(recompute)
"""
_ENDLESS = '''    """Endless micro-batches of what a sample holds; a step's samples do not depend on the mesh."""
'''
_STEP = """            noisy, target, text, level = (tensor.to(accelerator.device) for tensor in next(batches))
            with accelerator.accumulate(model):
                loss = denoising_loss(predict(model, config, plan["sample"], noisy, text, level), target)
"""
_SPANS: tuple[tuple[str, str, str], ...] = (
    ("class Samples:\n", "def training_of(plan):\n", _SAMPLES),
    ('    """Endless (tokens, next tokens)', "    pairs = training_of(plan)", _ENDLESS),
    ("    pairs = training_of(plan)", "    size, count = plan[", ""),
    (
        "            if pairs:",
        "        step += 1\n",
        "            yield [torch.stack(each) for each in zip(*batch, strict=True)]\n",
    ),
    ("def reference_of(plan", "def build(plan, accelerator", ""),
    ("def quantised(training", "def build(plan, accelerator", _PREDICT),
    ("def build(plan, accelerator, seed", '    values, training = read("model_config.json")', _BUILD),
    ("    frozen = training[", "    wanted = {\n", _BUILT),
    ("    if wanted:\n", "    model.train()\n", _RECOMPUTED),
    ("    vocab_size, reference =", "    model, optimizer = accelerator", "    config = dict(model.config)\n"),
    ("            tokens, following = (", "                accelerator.backward(loss)", _STEP),
)
_PIECES: tuple[tuple[str, str], ...] = (
    (
        "  model_config.json        the model as a transformers config\n",
        "  model_config.json        the model as a diffusers config\n",
    ),
    ("  adapter_config.json      only when adapters learn: PEFT's own file\n", ""),
    ("from transformers import AutoConfig, AutoModelForCausalLM\n", ""),
    (
        "import torch\nfrom accelerate import Accelerator\n",
        "import diffusers\nimport torch\nimport torch.utils.checkpoint\nfrom accelerate import Accelerator\n",
    ),
    (
        '    values, training = read("model_config.json"), training_of(plan)\n',
        '    values = read("model_config.json")\n',
    ),
    (
        '    samples = Samples(vocab_size, plan["sequence_length"])\n',
        '    samples = Samples(plan["sample"], @TEXT_WIDTH@)\n',
    ),
)


_UNUSED: tuple[tuple[str, str], ...] = (
    (
        "from accelerate.utils import DistributedType, GradientAccumulationPlugin\n",
        "from accelerate.utils import DistributedDataParallelKwargs, DistributedType, GradientAccumulationPlugin\n",
    ),
    (
        "    accelerator = Accelerator(gradient_accumulation_plugin=accumulation)\n",
        """    # The last layer's weights behind its text reach no loss, and DDP would wait for their gradients.
    unused = DistributedDataParallelKwargs(find_unused_parameters=True)
    accelerator = Accelerator(gradient_accumulation_plugin=accumulation, kwargs_handlers=[unused])
""",
    ),
)


_CONTEXT: tuple[tuple[str, str], ...] = (
    ("def build(plan, accelerator, seed", _SPLIT + "def build(plan, accelerator, seed"),
    (
        "    config = dict(model.config)\n",
        """    config = dict(model.config)
    split_tokens(model, accelerator, mesh["sequence"])
""",
    ),
    (
        "                accelerator.backward(loss)\n",
        """                # Ranks of a sample have its loss and a part of the gradient each; FSDP2 averages over all.
                accelerator.backward(mesh["sequence"] * loss)
""",
    ),
)


def of_denoiser(script: str, class_name: str, unused_under_ddp: bool = False, context_parallelism: bool = False) -> str:
    """The script of decoders, changed for a class of ``CALLS``.

    ``context_parallelism``: ranks share a sample's tokens.
    ``unused_under_ddp``: DDP reduces gradients and some weights get none.  It stops at the second backward pass unless
    it looks for them (torch 2.13 nn/parallel/distributed.py, ``find_unused_parameters``).  Raises ValueError as
    ``with_pieces``.
    """
    call, axis, width = CALLS[class_name]
    more = (*(_UNUSED if unused_under_ddp else ()), *(_CONTEXT if context_parallelism else ()))
    changed = with_pieces(with_spans(script, _SPANS), (*_PIECES, *more))
    numbers = (("@CALL@", call), ("@AXIS@", str(axis)), ("@TEXT_WIDTH@", width))
    for mark, instead in numbers:
        changed = changed.replace(mark, instead)
    return changed
