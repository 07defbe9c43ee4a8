"""models/images.py in torch. Pictures are NCHW, in memory NHWC (`channels_last`), which is faster on a CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

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


def resnet20(torch: Torch, compiled: bool) -> Trained:
    functional = torch.nn.functional
    made = Parameters(torch, np.random.default_rng(6))
    kernels: list[Tensor] = []

    def convolution(size: int, rows: int, columns: int) -> Tensor:
        kernels.append(kernel(torch, made, [size, size, rows, columns], (2.0 / (size * size * rows)) ** 0.5))
        return kernels[-1]

    def norm(channels: int) -> tuple[Tensor, ...]:
        moving = torch.zeros(channels), torch.ones(channels)
        return (*moving, made.bias(channels, 1.0), made.bias(channels))

    def normalized(y: Tensor, of: tuple[Tensor, ...]) -> Tensor:
        return functional.batch_norm(y, *of, training=True, momentum=0.1, eps=1e-3)

    def convolve(y: Tensor, kernel: Tensor, stride: int) -> Tensor:
        if kernel.shape[2] == 1:
            return functional.conv2d(y, kernel, stride=stride)
        if stride == 1:
            return functional.conv2d(y, kernel, padding=1)
        return functional.conv2d(functional.pad(y, (0, 1, 0, 1)), kernel, stride=2)

    first, first_norm = convolution(3, 3, 16), norm(16)
    blocks: list[Any] = []
    rows = 16
    for stage, columns in enumerate((16, 32, 64)):
        for block in range(3):
            shortcut = None if rows == columns else convolution(1, rows, columns)
            a, a_norm = convolution(3, rows, columns), norm(columns)
            b, b_norm = convolution(3, columns, columns), norm(columns)
            blocks.append((2 if stage and not block else 1, shortcut, a, a_norm, b, b_norm))
            rows = columns
    logits = made.dense(64, 10)

    def loss(x: Tensor, t: Tensor) -> Tensor:
        y = functional.relu(normalized(convolve(x, first, 1), first_norm))
        for stride, shortcut, a, a_norm, b, b_norm in blocks:
            kept = y if shortcut is None else convolve(y, shortcut, stride)
            y = functional.relu(normalized(convolve(y, a, stride), a_norm))
            y = functional.relu(normalized(convolve(y, b, 1), b_norm) + kept)
        decays = torch.stack([(each * each).sum() for each in kernels]).sum() * (0.5 * 1e-4)
        return functional.cross_entropy(functional.linear(y.mean((2, 3)), *logits), t) + decays

    return Trained(
        compiled_if(torch, compiled, loss),
        torch.optim.SGD(made.all, 0.002, momentum=0.9),
        _batches(labelled(made.choose, 32, [32, 32, 3], 10)),
        moved=dense_bytes(made.all, 1),
    )
