"""models/pictures.py in torch, in `channels_last`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models import pictures as counterpart
from models.in_torch import Trained, dense_bytes
from models.in_torch.images import kernel, pictures_of
from models.in_torch.parts import Parameters, compiled_if
from models.parts import BATCHES, labelled
from models.pictures import LEVELS, NOISE, PAIRS

if TYPE_CHECKING:
    from collections.abc import Callable

    from models.in_torch import Tensor, Torch


def _norm(torch: Torch, made: Parameters, channels: int) -> Callable[[Tensor], Tensor]:
    scale, offset = made.bias(channels, 1.0), made.bias(channels)

    def normalized(y: Tensor) -> Tensor:
        return torch.nn.functional.batch_norm(y, None, None, scale, offset, training=True, eps=1e-3)

    return normalized


def separable(torch: Torch, compiled: bool) -> Trained:
    functional = torch.nn.functional
    made = Parameters(torch, np.random.default_rng(16))
    first, first_norm, rows = kernel(torch, made, [3, 3, 3, 32], (2 / 27) ** 0.5), _norm(torch, made, 32), 32
    blocks: list[Any] = []
    for columns, stride in counterpart.BLOCKS:
        # [3, 3, rows, 1] as [rows, 1, 3, 3]
        depthwise = made.weight([3, 3, rows, 1], (2 / 9) ** 0.5, lambda value: value.transpose(2, 3, 0, 1))
        a = _norm(torch, made, rows)
        pointwise = kernel(torch, made, [1, 1, rows, columns], (2 / rows) ** 0.5)
        blocks.append((stride, depthwise, a, pointwise, _norm(torch, made, columns)))
        rows = columns
    logits = made.dense(rows, 10)

    def loss(x: Tensor, t: Tensor) -> Tensor:
        y = functional.relu6(first_norm(functional.conv2d(x, first, padding=1)))
        for stride, depthwise, a, pointwise, b in blocks:
            if stride == 2:
                y = functional.pad(y, (0, 1, 0, 1))
            y = functional.conv2d(y, depthwise, stride=stride, padding=0 if stride == 2 else 1, groups=y.shape[1])
            y = functional.relu6(b(functional.conv2d(functional.relu6(a(y)), pointwise)))
        return functional.cross_entropy(functional.linear(y.mean((2, 3)), *logits), t)

    data = labelled(made.choose, 32, [32, 32, 3], 10)
    return Trained(
        compiled_if(torch, compiled, loss),
        torch.optim.SGD(made.all, 0.002, momentum=0.9),
        [(pictures_of(2 * images - 1), labels.astype(np.int64)) for images, labels in data],
        moved=dense_bytes(made.all, 1),
    )


def unet(torch: Torch, compiled: bool) -> Trained:
    functional = torch.nn.functional
    made = Parameters(torch, np.random.default_rng(17))

    def two(rows: int, columns: int) -> list[tuple[Tensor, Tensor]]:
        return [
            (kernel(torch, made, [3, 3, inputs, columns], (2 / (9 * inputs)) ** 0.5), made.bias(columns))
            for inputs in (rows, columns)
        ]

    down = [two(rows, columns) for rows, columns in zip((3, *LEVELS), LEVELS, strict=False)]
    up, rows = [], LEVELS[-1]
    for columns in reversed(LEVELS[:-1]):
        # [2, 2, out, in] as [in, out, 2, 2]
        risen = kernel(torch, made, [2, 2, columns, rows], (1 / rows) ** 0.5), made.bias(columns)
        up.append((risen, two(2 * columns, columns)))
        rows = columns
    mask = kernel(torch, made, [1, 1, rows, 1], (1 / rows) ** 0.5), made.bias(1)

    def twice(y: Tensor, layers: Any) -> Tensor:
        for layer in layers:
            y = functional.relu(functional.conv2d(y, *layer, padding=1))
        return y

    def loss(x: Tensor, t: Tensor) -> Tensor:
        y, skips = x, []
        for layers in down[:-1]:
            y = twice(y, layers)
            skips.append(y)
            y = functional.max_pool2d(y, 2)
        y = twice(y, down[-1])
        for risen, layers in up:
            y = twice(torch.cat([skips.pop(), functional.conv_transpose2d(y, *risen, stride=2)], 1), layers)
        return functional.binary_cross_entropy_with_logits(functional.conv2d(y, *mask), t)

    return Trained(
        compiled_if(torch, compiled, loss),
        torch.optim.Adam(made.all, 0.001),
        [tuple(map(pictures_of, batch)) for batch in counterpart.blots(made.choose)],
        moved=dense_bytes(made.all, 2),
    )


def dcgan(torch: Torch, compiled: bool) -> Trained:
    functional = torch.nn.functional
    made = Parameters(torch, np.random.default_rng(18))
    # rows of a dense layer from and to [7, 7, 64] in TensorFlow's order
    first = made.weight([NOISE, 7 * 7 * 64], 0.05)
    norms = _norm(torch, made, 64), _norm(torch, made, 32)
    up0, up1 = kernel(torch, made, [5, 5, 32, 64], 0.05), kernel(torch, made, [5, 5, 1, 32], 0.05)
    maker = list(made.all)
    made.all.clear()
    down0 = kernel(torch, made, [5, 5, 1, 32], 0.05), made.bias(32)
    down1 = kernel(torch, made, [5, 5, 32, 64], 0.05), made.bias(64)
    last = made.weight([7 * 7 * 64, 1], 0.05, np.transpose), made.bias(1)
    judge = list(made.all)

    def picture(noise: Tensor) -> Tensor:
        y = (noise @ first).view(PAIRS, 7, 7, 64).permute(0, 3, 1, 2)
        y = functional.relu(norms[0](y))
        # SAME of an even size: a row and a column more at the end than at the start
        y = functional.conv_transpose2d(y, up0, stride=2, padding=1)[:, :, :14, :14]
        y = functional.relu(norms[1](y))
        return torch.tanh(functional.conv_transpose2d(y, up1, stride=2, padding=1)[:, :, :28, :28])

    def judged(pictures: Tensor) -> Tensor:
        y = functional.conv2d(functional.pad(pictures, (1, 2, 1, 2)), down0[0], down0[1], stride=2)
        y = functional.leaky_relu(y, 0.2)
        y = functional.conv2d(functional.pad(y, (1, 2, 1, 2)), down1[0], down1[1], stride=2)
        y = functional.leaky_relu(y, 0.2)
        return functional.linear(y.permute(0, 2, 3, 1).reshape(PAIRS, -1), *last)

    def loss_of(logits: Tensor, value: float) -> Tensor:
        return functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, value))

    def judge_loss(noise: Tensor, real: Tensor) -> Tensor:
        with torch.no_grad():
            made_up = picture(noise)
        return loss_of(judged(real), 1.0) + loss_of(judged(made_up), 0.0)

    def maker_loss(noise: Tensor) -> Tensor:
        return loss_of(judged(picture(noise)), 1.0)

    judge_adam, maker_adam = (torch.optim.Adam(each, 0.0002, betas=(0.5, 0.999)) for each in (judge, maker))
    judge_step, maker_step = (compiled_if(torch, compiled, each) for each in (judge_loss, maker_loss))

    def play(train: object, number: int) -> float:
        noise, real = map(torch.from_numpy, batches[number % BATCHES])
        judge_adam.zero_grad(set_to_none=True)
        loss = judge_step(noise, real)
        loss.backward()
        judge_adam.step()
        maker_adam.zero_grad(set_to_none=True)
        maker_step(noise).backward()
        maker_adam.step()
        return float(loss.item())

    batches = [(noise, pictures_of(real)) for noise, real in counterpart.pairs(made.choose)]
    return Trained(judge_step, judge_adam, (), moved=dense_bytes([*judge, *maker], 2), play=play)
