"""What cuda_speed.py measures, in torch: eager, and compiled where that makes a difference. Needs torch with CUDA.

Products of float32 are not rounded to TF32, as Tenfold's are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cuda_models
import torch  # type: ignore[import-not-found, unused-ignore]
from torch.nn import functional as F  # type: ignore[import-not-found, unused-ignore]

if TYPE_CHECKING:
    from collections.abc import Callable

    from cuda_speed import Sizes

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False


def _tensor(value: Any, trained: bool = False) -> Any:
    return torch.tensor(value, device="cuda", requires_grad=trained)


def seconds_of_row(
    name: str, sizes: Sizes, seconds_of: Callable[..., float], miss: Callable[[str], None]
) -> dict[str, float]:
    """Side → seconds of a step, for the row of that name. `miss` is told of each side that failed, and why."""
    if not torch.cuda.is_available():
        return {}
    found = {}
    for side, make in (_model_sides(name) if name in cuda_models.SIZES else _sides(name, sizes)).items():
        try:
            # what a step before has kept may be what this one wants
            torch.cuda.empty_cache()
            found[side] = seconds_of(make(), torch.cuda.synchronize, sizes.steps, sizes.rounds)
        except Exception as error:  # a compiler that is missing, memory that is out: the other sides are measured
            miss(f"{name}, {side}: {type(error).__name__}: {error}".partition("\n")[0])
    return found


def _sides(name: str, sizes: Sizes) -> dict[str, Callable[[], Callable[[], Any]]]:
    steps = {
        "copy": _copy,
        "fused Adam": _adam,
        "softmax cross-entropy": _cross_entropy,
        "matrix product": _product,
    }
    make = steps.get(name, _small_kernels)
    found = {"torch eager": lambda: make(sizes)}
    if make is _cross_entropy:
        found["torch compile"] = lambda: make(sizes, torch.compile)
    return found


def _copy(sizes: Sizes) -> Callable[[], Any]:
    source = torch.ones(sizes.copy_bytes, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def _adam(sizes: Sizes) -> Callable[[], Any]:
    weights = torch.full((sizes.adam,), 0.1, device="cuda", requires_grad=True)
    weights.grad = torch.full_like(weights, 0.01)
    return torch.optim.Adam([weights], 1e-3, fused=True).step  # type: ignore[no-any-return]


def _cross_entropy(sizes: Sizes, compiled: Callable[[Any], Any] = lambda run: run) -> Callable[[], Any]:
    logits = torch.randn(*sizes.softmax, device="cuda", requires_grad=True)
    labels = torch.full(sizes.softmax, 1 / sizes.softmax[1], device="cuda")
    loss = compiled(lambda: F.cross_entropy(logits, labels, reduction="sum"))

    def step() -> Any:
        return torch.autograd.grad(loss(), logits)

    return step


def _product(sizes: Sizes) -> Callable[[], Any]:
    a, b = (torch.randn(sizes.matrix, sizes.matrix, device="cuda") for _ in range(2))
    return lambda: a @ b


def _small_kernels(sizes: Sizes) -> Callable[[], Any]:
    weights = torch.eye(8, device="cuda")
    state = torch.ones(8, sizes.vector // 8, device="cuda")

    def step() -> None:
        value = state
        for _ in range(sizes.chain):
            value = weights @ value
        state.copy_(value)

    return step


def _model_sides(name: str) -> dict[str, Callable[[], Callable[[], Any]]]:
    sizes = cuda_models.SIZES[name][0]

    def training(compiled: Callable[[Any], Any]) -> Callable[[], None]:
        forward, parameters = {"mlp": _mlp, "cnn": _cnn, "lstm": _lstm}[name](**sizes)
        run, targets = compiled(forward), _tensor(cuda_models.labels(sizes["batch"], sizes["classes"]))
        optimizers = {
            "mlp": lambda: torch.optim.Adam(parameters, 1e-3, fused=True),
            "cnn": lambda: torch.optim.SGD(parameters, 1e-2, momentum=0.9, fused=True),
            "lstm": lambda: torch.optim.SGD(parameters, 1e-2, fused=True),
        }
        optimizer = optimizers[name]()

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(run(), targets).backward()
            optimizer.step()

        return step

    return {
        "torch eager": lambda: training(lambda run: run),
        "torch compile": lambda: training(lambda run: torch.compile(run, mode="reduce-overhead")),
    }


def _mlp(batch: int, inputs: int, hidden: int, classes: int) -> tuple[Callable[[], Any], list[Any]]:
    value = _tensor(cuda_models.constant(batch, inputs))
    shapes = ((inputs, hidden), (hidden,), (hidden, hidden), (hidden,), (hidden, classes), (classes,))
    w = [_tensor(cuda_models.constant(*shape), True) for shape in shapes]

    def forward() -> Any:
        first = torch.relu(value @ w[0] + w[1])
        return torch.relu(first @ w[2] + w[3]) @ w[4] + w[5]

    return forward, w


def _cnn(batch: int, size: int, channels: int, classes: int) -> tuple[Callable[[], Any], list[Any]]:
    images = _tensor(cuda_models.constant(batch, size, size, 3)).permute(0, 3, 1, 2)
    images = images.contiguous(memory_format=torch.channels_last)
    flat = channels * (size // 4) ** 2
    shapes = ((channels, 3, 3, 3), (channels,), (channels, channels, 3, 3), (channels,), (flat, classes))
    w = [_tensor(cuda_models.constant(*shape), True) for shape in shapes]

    def forward() -> Any:
        value = F.max_pool2d(torch.relu(F.conv2d(images, w[0], w[1], padding=1)), 2)
        value = F.max_pool2d(torch.relu(F.conv2d(value, w[2], w[3], padding=1)), 2)
        return value.reshape(batch, flat) @ w[4]

    return forward, w


def _lstm(batch: int, steps: int, units: int, classes: int) -> tuple[Callable[[], Any], list[Any]]:
    inputs = _tensor(cuda_models.constant(steps, batch, units))
    w = [_tensor(cuda_models.constant(*s), True) for s in ((2 * units, 4 * units), (4 * units,), (units, classes))]

    def forward() -> Any:
        state = output = torch.zeros(batch, units, device="cuda")
        for step in range(steps):
            i, j, f, o = torch.chunk(torch.cat([inputs[step], output], 1) @ w[0] + w[1], 4, 1)
            state = state * torch.sigmoid(f) + torch.sigmoid(i) * torch.tanh(j)
            output = torch.tanh(state) * torch.sigmoid(o)
        return output @ w[2]

    return forward, w
