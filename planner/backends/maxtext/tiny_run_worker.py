"""Starts MaxText's own trainer with first weights that the way of cutting the model does not change.

    python tiny_run_worker.py -u -m maxtext.trainers.pre_train.train maxtext.yml WORDS...

MaxText draws the weights of a pipeline's stages and repeats from other random keys than those of a scan over layers
(maxtext 0.2.5 layers/pipeline.py:674-690), so that the two train different models.  Here a weight's key is made of its
own shape: equal layers start equal, whatever holds them.  Everything else is MaxText's and JAX's.
"""

from __future__ import annotations

import importlib
import runpy
import sys
import zlib
from collections.abc import Callable
from typing import Any


def first_weights_by_shape() -> None:
    """The initializers from which MaxText makes random weights ignore the key that they are given."""
    # Our own Python need not have JAX.
    jax = importlib.import_module("jax")
    for name in ("variance_scaling", "normal"):
        setattr(jax.nn.initializers, name, _by_shape(jax, getattr(jax.nn.initializers, name)))


def _by_shape(jax: Any, initializer: Callable[..., Any]) -> Callable[..., Any]:
    def made(*arguments: Any, **named: Any) -> Callable[..., Any]:
        draw = initializer(*arguments, **named)

        def drawn(_: Any, shape: Any, *rest: Any, **more: Any) -> Any:
            seed = zlib.crc32(repr(tuple(map(int, shape))).encode())
            return draw(jax.random.key(seed, impl="threefry2x32"), shape, *rest, **more)

        return drawn

    return made


if __name__ == "__main__":
    words = sys.argv[1:]
    place = words.index("-m") + 1
    sys.argv = words[place:]
    first_weights_by_shape()
    runpy.run_module(words[place], run_name="__main__", alter_sys=True)
