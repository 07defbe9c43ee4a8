"""models/images.py in torch. Pictures are NCHW, in memory NHWC (`channels_last`), which is faster on a CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models.images import BOTTLENECKS
from models.in_torch import Trained, dense_bytes
from models.in_torch.parts import Parameters, compiled_if
from models.parts import labelled

if TYPE_CHECKING:
    from models.in_torch import Tensor, Torch


def kernel(torch: Torch, made: Parameters, shape: list[int], scale: float) -> Tensor:
    """A kernel of TensorFlow's [height, width, in, out] as [out, in, height, width]."""
    made.weight(shape, scale, lambda value: value.transpose(3, 2, 0, 1))
    made.all[-1] = made.all[-1].detach().to(memory_format=torch.channels_last).requires_grad_()
    return made.all[-1]


def pictures_of(images: Any) -> Any:
    """NCHW by its axes, NHWC in memory."""
    return np.ascontiguousarray(images, np.float32).transpose(0, 3, 1, 2)


def _batches(data: Any) -> list[tuple[Any, Any]]:
    """With labels as int64."""
    return [(pictures_of(2 * images - 1), labels.astype(np.int64)) for images, labels in data]


def tutorial(torch: Torch, compiled: bool) -> Trained:
    functional = torch.nn.functional
    made = Parameters(torch, np.random.default_rng(4))
    conv1, bias1 = kernel(torch, made, [5, 5, 3, 64], 0.05), made.bias(64)
    conv2, bias2 = kernel(torch, made, [5, 5, 64, 64], 0.05), made.bias(64, 0.1)
    # rows of the first dense layer in TensorFlow's order: height, width, channel
    w3, b3 = made.weight([6 * 6 * 64, 384], 0.04, np.transpose), made.bias(384, 0.1)
    w4, b4 = made.weight([384, 192], 0.04, np.transpose), made.bias(192, 0.1)
    w, b = made.weight([192, 10], 1 / 192.0, np.transpose), made.bias(10)

    def pool(y: Tensor) -> Tensor:
        # SAME of an even size pads the end alone
        return functional.max_pool2d(functional.pad(y, (0, 1, 0, 1), value=float("-inf")), 3, 2)

    def normal(y: Tensor) -> Tensor:
        return functional.local_response_norm(y, 9, alpha=0.001, beta=0.75, k=1.0)

    def loss(x: Tensor, t: Tensor) -> Tensor:
        y = normal(pool(functional.relu(functional.conv2d(x, conv1, bias1, padding=2))))
        y = pool(normal(functional.relu(functional.conv2d(y, conv2, bias2, padding=2))))
        y = y.permute(0, 2, 3, 1).reshape(128, 6 * 6 * 64)
        y = functional.relu(functional.linear(y, w3, b3))
        y = functional.relu(functional.linear(y, w4, b4))
        decays = 0.004 * 0.5 * ((w3 * w3).sum() + (w4 * w4).sum())
        return functional.cross_entropy(functional.linear(y, w, b), t) + decays

    averages = [each.detach().clone() for each in made.all]
    steps = 0

    def follow() -> None:
        nonlocal steps
        steps += 1
        kept = min(0.9999, (1 + steps) / (10 + steps))
        torch._foreach_lerp_(averages, [each.detach() for each in made.all], 1 - kept)

    return Trained(
        compiled_if(torch, compiled, loss),
        torch.optim.SGD(made.all, 0.1),
        _batches(labelled(made.choose, 128, [24, 24, 3], 10)),
        after=follow,
        moved=dense_bytes(made.all, 1),
    )


class _Layers:
    """Convolutions and batch norms, as models/images.py makes them."""

    def __init__(self, torch: Torch, made: Parameters) -> None:
        self._torch, self._functional, self._made = torch, torch.nn.functional, made
        self._kernels: list[Tensor] = []

    def convolution(self, size: int, rows: int, columns: int) -> Tensor:
        scale = (2.0 / (size * size * rows)) ** 0.5
        self._kernels.append(kernel(self._torch, self._made, [size, size, rows, columns], scale))
        return self._kernels[-1]

    def norm(self, channels: int) -> tuple[Tensor, ...]:
        moving = self._torch.zeros(channels), self._torch.ones(channels)
        return (*moving, self._made.bias(channels, 1.0), self._made.bias(channels))

    def both(self, size: int, rows: int, columns: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        return self.convolution(size, rows, columns), self.norm(columns)

    def convolve(self, y: Tensor, kernel: Tensor, stride: int = 1) -> Tensor:
        size = kernel.shape[2]
        if stride == 1 or size == 1:
            return self._functional.conv2d(y, kernel, stride=stride, padding=size // 2)
        # SAME of an even size pads the end by one more than the beginning
        less = (size - stride) // 2
        return self._functional.conv2d(self._functional.pad(y, (less, less + 1) * 2), kernel, stride=stride)

    def apply(self, y: Tensor, of: tuple[Tensor, tuple[Tensor, ...]], stride: int = 1) -> Tensor:
        """The convolution and its batch norm."""
        y = self.convolve(y, of[0], stride)
        return self._functional.batch_norm(y, *of[1], training=True, momentum=0.1, eps=1e-3)

    def decay(self) -> Tensor:
        return self._torch.stack([(each * each).sum() for each in self._kernels]).sum() * (0.5 * 1e-4)


def resnet20(torch: Torch, compiled: bool) -> Trained:
    functional = torch.nn.functional
    made = Parameters(torch, np.random.default_rng(6))
    layers = _Layers(torch, made)
    first = layers.both(3, 3, 16)
    blocks: list[Any] = []
    rows = 16
    for stage, columns in enumerate((16, 32, 64)):
        for block in range(3):
            shortcut = None if rows == columns else layers.convolution(1, rows, columns)
            a, b = layers.both(3, rows, columns), layers.both(3, columns, columns)
            blocks.append((2 if stage and not block else 1, shortcut, a, b))
            rows = columns
    logits = made.dense(64, 10)

    def loss(x: Tensor, t: Tensor) -> Tensor:
        y = functional.relu(layers.apply(x, first))
        for stride, shortcut, a, b in blocks:
            kept = y if shortcut is None else layers.convolve(y, shortcut, stride)
            y = functional.relu(layers.apply(y, a, stride))
            y = functional.relu(layers.apply(y, b) + kept)
        return functional.cross_entropy(functional.linear(y.mean((2, 3)), *logits), t) + layers.decay()

    return Trained(
        compiled_if(torch, compiled, loss),
        torch.optim.SGD(made.all, 0.002, momentum=0.9),
        _batches(labelled(made.choose, 32, [32, 32, 3], 10)),
        moved=dense_bytes(made.all, 1),
    )


def resnet50(torch: Torch, compiled: bool) -> Trained:
    functional = torch.nn.functional
    made = Parameters(torch, np.random.default_rng(18))
    layers = _Layers(torch, made)
    first = layers.both(7, 3, 64)
    blocks: list[Any] = []
    rows = 64
    for stage, (count, middle) in enumerate(BOTTLENECKS):
        for block in range(count):
            shortcut = None if block else layers.both(1, rows, 4 * middle)
            of = layers.both(1, rows, middle), layers.both(3, middle, middle), layers.both(1, middle, 4 * middle)
            blocks.append((2 if stage and not block else 1, shortcut, *of))
            rows = 4 * middle
    logits = made.dense(rows, 100)

    def loss(x: Tensor, t: Tensor) -> Tensor:
        y = functional.relu(layers.apply(x, first, 2))
        y = functional.max_pool2d(functional.pad(y, (0, 1, 0, 1), value=float("-inf")), 3, 2)
        for stride, shortcut, a, b, c in blocks:
            kept = y if shortcut is None else layers.apply(y, shortcut, stride)
            y = functional.relu(layers.apply(y, a))
            y = functional.relu(layers.apply(y, b, stride))
            y = functional.relu(layers.apply(y, c) + kept)
        return functional.cross_entropy(functional.linear(y.mean((2, 3)), *logits), t) + layers.decay()

    return Trained(
        compiled_if(torch, compiled, loss),
        torch.optim.SGD(made.all, 0.0005, momentum=0.9),
        _batches(labelled(made.choose, 8, [96, 96, 3], 100)),
        moved=dense_bytes(made.all, 1),
    )
