"""A residual convolutional network with batch normalisation, as image libraries write it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class ResidualBlock(nn.Module):
    """Two convolutions, and a projection where the shape changes."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.act = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.shortcut = None
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Conv2d(channels_in, channels_out, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.act(self.bn1(self.conv1(x)))))
        y += x if self.shortcut is None else self.shortcut(x)
        made: Tensor = self.act(y)
        return made


class ResNet(nn.Module):
    """Stem, stages that halve the image, pooling, classes; returns the loss."""

    def __init__(self, width: int = 32, stages: int = 2, classes: int = 64, batch: int = 16, image: int = 32) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(2)
        )
        self.stages = nn.Sequential(
            *(ResidualBlock(width * max(2 ** (stage - 1), 1), width * 2**stage, 2) for stage in range(1, stages + 1))
        )
        self.head = nn.Linear(width * 2**stages, classes)
        self.batch, self.image, self.classes = batch, image, classes

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        pooled = functional.adaptive_avg_pool2d(self.stages(self.stem(x)), 1).flatten(1)
        return functional.cross_entropy(self.head(pooled).float(), labels)

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Images and classes."""
        return torch.empty(self.batch, 3, self.image, self.image), torch.zeros(self.batch, dtype=torch.int64)
