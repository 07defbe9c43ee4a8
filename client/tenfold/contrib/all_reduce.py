"""`tf.contrib.all_reduce`: what several devices hold, reduced, for each of them, by way of pieces on many devices.

tf_cnn_benchmarks and its like share gradients so. A tensor is cut into as many pieces as there are places; each piece
is reduced at its place, and every device joins what comes back. The functions differ in the places and in the order of
reducing, which is TensorFlow's; a ring's subchunks, several at once for several wires, are one here. Follows TensorFlow
1.15's distribute/all_reduce.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tenfold as tf
from tenfold.contrib import nccl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Binary = Callable[[Any, Any], Any]
    Unary = Callable[[Any], Any] | None

__all__ = [
    "build_nccl_all_reduce",
    "build_nccl_then_recursive_hd",
    "build_nccl_then_ring",
    "build_nccl_then_shuffle",
    "build_recursive_hd_all_reduce",
    "build_ring_all_reduce",
    "build_shuffle_all_reduce",
    "build_shuffle_then_ring",
    "build_shuffle_then_shuffle",
]


def build_ring_all_reduce(
    input_tensors: Sequence[Any],
    num_workers: int,
    num_subchunks: int,
    gpu_perm: Sequence[int],
    red_op: Binary,
    un_op: Unary = None,
) -> list[Any]:
    """The tensors, of one shape, reduced by `red_op(a, b)`: each piece goes once around the ring of devices.

    `gpu_perm` orders the devices of each of `num_workers` tasks. Raises ValueError for fewer than two tensors, more
    `num_subchunks` than a task has devices, shapes that differ or are not known.
    """
    if len(input_tensors) < 2:
        raise ValueError("input_tensors must be length 2 or longer")
    if num_subchunks > len(gpu_perm):
        raise ValueError(f"num_subchunks {num_subchunks} must be <= num_gpus {len(gpu_perm)}")
    if len(input_tensors) != num_workers * len(gpu_perm):
        raise ValueError(
            f"{len(input_tensors)} input_tensors are not one for each of {len(gpu_perm)} devices of {num_workers} tasks"
        )
    ring = [worker * len(gpu_perm) + device for worker in range(num_workers) for device in gpu_perm]

    def around(pieces: Sequence[Any], number: int) -> Any:
        """Begins behind the piece's place in the ring and ends there."""
        order = [ring[(number + 1 + step) % len(ring)] for step in range(len(ring))]
        total = pieces[order[0]]
        for device in order[1:]:
            with tf.device(input_tensors[device].device):
                total = red_op(total, pieces[device])
        return total

    return _in_pieces(input_tensors, [input_tensors[device].device for device in ring], around, un_op)


def build_recursive_hd_all_reduce(input_tensors: Sequence[Any], red_op: Binary, un_op: Unary = None) -> list[Any]:
    """The tensors reduced by `red_op(a, b)`, pair by pair and pairs of pairs.

    Raises ValueError unless they are a power of two.
    """
    count = len(input_tensors)
    if count == 0 or count & (count - 1):
        raise ValueError("num_devices must be a power of 2")

    def by_pairs(pieces: Sequence[Any], number: int) -> Any:
        left = list(pieces)
        while len(left) > 1:
            left = [red_op(left[each], left[each + 1]) for each in range(0, len(left), 2)]
        return left[0]

    return _in_pieces(input_tensors, [each.device for each in input_tensors], by_pairs, un_op)


def build_shuffle_all_reduce(
    input_tensors: Sequence[Any], gather_devices: Sequence[str], red_op: Callable[[list[Any]], Any], un_op: Unary = None
) -> list[Any]:
    """The tensors reduced by `red_op` of a list, such as `tf.add_n`: a piece on each of `gather_devices`."""
    return _in_pieces(input_tensors, gather_devices, lambda pieces, number: red_op(list(pieces)), un_op)


def build_nccl_all_reduce(input_tensors: Sequence[Any], red_op: Binary, un_op: Unary = None) -> list[Any]:
    """The tensors' sum, on each device. Raises ValueError for another `red_op` than `tf.add`."""
    if red_op is not tf.add:
        raise ValueError("red_op not supported by NCCL all-reduce: ", red_op)
    return _with_unary(nccl.all_sum(input_tensors), un_op)


def build_nccl_then_ring(input_tensors: Sequence[Any], subdiv: int, red_op: Binary, un_op: Unary = None) -> list[Any]:
    """Summed within each task, and by a ring across the tasks."""
    return _within_tasks_first(input_tensors, _add_all(red_op), _ring_of_tasks(subdiv, red_op, un_op))


def build_nccl_then_recursive_hd(input_tensors: Sequence[Any], red_op: Binary, un_op: Unary = None) -> list[Any]:
    """Summed within each task, and by pairs across the tasks."""
    return _within_tasks_first(
        input_tensors, _add_all(red_op), lambda tensors: build_recursive_hd_all_reduce(tensors, red_op, un_op)
    )


def build_nccl_then_shuffle(
    input_tensors: Sequence[Any],
    gather_devices: Sequence[str],
    nccl_red_op: Binary,
    shuffle_red_op: Callable[[list[Any]], Any],
    un_op: Unary = None,
) -> list[Any]:
    """Summed within each task, and in pieces on `gather_devices` across the tasks."""
    return _within_tasks_first(
        input_tensors,
        _add_all(nccl_red_op),
        lambda tensors: build_shuffle_all_reduce(tensors, gather_devices, shuffle_red_op, un_op),
    )


def build_shuffle_then_ring(
    input_tensors: Sequence[Any],
    gather_devices: Sequence[str],
    subdiv: int,
    red_n_op: Callable[[list[Any]], Any],
    red_op: Binary,
    un_op: Unary = None,
) -> list[Any]:
    """Reduced by `red_n_op` of a list on a device for each task, and by a ring of these."""
    return _within_tasks_first(input_tensors, red_n_op, _ring_of_tasks(subdiv, red_op, un_op), gather_devices)


def build_shuffle_then_shuffle(
    input_tensors: Sequence[Any],
    first_gather_devices: Sequence[str],
    second_gather_devices: Sequence[str],
    red_op: Callable[[list[Any]], Any],
    un_op: Unary = None,
) -> list[Any]:
    """Reduced on a device for each task, and in pieces on `second_gather_devices`."""

    def across(tensors: Sequence[Any]) -> list[Any]:
        if len(tensors) == 1:
            return _with_unary(tensors, un_op)
        return build_shuffle_all_reduce(tensors, second_gather_devices, red_op, un_op)

    return _within_tasks_first(input_tensors, red_op, across, first_gather_devices)


def _in_pieces(
    tensors: Sequence[Any], places: Sequence[str], reduce: Callable[[Sequence[Any], int], Any], un_op: Unary
) -> list[Any]:
    """`reduce` of the n-th pieces of all tensors on the n-th place, and all of them joined for each tensor."""
    shape = _common_shape(tensors)
    size = shape.num_elements()
    sizes = [size // len(places)] * (len(places) - 1)
    sizes.append(size - sum(sizes))
    pieces = []
    for tensor in tensors:
        with tf.colocate_with(tensor):
            pieces.append(tf.split(tf.reshape(tensor, [-1]), sizes))
    reduced = []
    for number, place in enumerate(places):
        with tf.device(place):
            total = reduce([each[number] for each in pieces], number)
            reduced.append(un_op(total) if un_op else total)
    outputs = []
    for tensor in tensors:
        with tf.device(tensor.device):
            outputs.append(tf.reshape(tf.concat(reduced, 0), shape))
    return outputs


def _within_tasks_first(
    tensors: Sequence[Any],
    within: Callable[[list[Any]], Any],
    across: Callable[[list[Any]], list[Any]],
    places: Sequence[str] | None = None,
) -> list[Any]:
    """The tensors of each task reduced by `within`, at its place or its first device, those by `across`."""
    _common_shape(tensors)
    by_task: dict[tuple[Any, ...], list[int]] = {}
    for number, tensor in enumerate(tensors):
        spec = tf.DeviceSpec.from_string(tensor.device)
        if spec.task is None:
            raise ValueError(f"the device of {tensor.name} names no task: {tensor.device!r}")
        by_task.setdefault((spec.job or "localhost", spec.replica or 0, spec.task), []).append(number)
    if places is not None and len(places) != len(by_task):
        raise ValueError("For shuffle hybrid, gather_devices must contain one device per worker. ")
    of_tasks = []
    for task, numbers in enumerate(by_task.values()):
        with tf.device(tensors[numbers[0]].device if places is None else places[task]):
            of_tasks.append(within([tensors[number] for number in numbers]))
    outputs: list[Any] = [None] * len(tensors)
    for numbers, total in zip(by_task.values(), across(of_tasks), strict=True):
        for number in numbers:
            with tf.device(tensors[number].device):
                outputs[number] = tf.identity(total)
    return outputs


def _ring_of_tasks(subdiv: int, red_op: Binary, un_op: Unary) -> Callable[[Sequence[Any]], list[Any]]:
    def across(tensors: Sequence[Any]) -> list[Any]:
        if len(tensors) == 1:
            return _with_unary(tensors, un_op)
        return build_ring_all_reduce(tensors, len(tensors), subdiv, [0], red_op, un_op)

    return across


def _add_all(red_op: Binary) -> Callable[[list[Any]], Any]:
    if red_op is not tf.add:
        raise ValueError("red_op not supported by NCCL all-reduce: ", red_op)
    return nccl.reduce_sum


def _with_unary(tensors: Sequence[Any], un_op: Unary) -> list[Any]:
    if un_op is None:
        return list(tensors)
    outputs = []
    for tensor in tensors:
        with tf.colocate_with(tensor):
            outputs.append(un_op(tensor))
    return outputs


def _common_shape(tensors: Sequence[Any]) -> Any:
    if not tensors:
        raise ValueError("tensors cannot be empty")
    shape = tensors[0].shape
    for tensor in tensors:
        shape = shape.merge_with(tensor.shape)
    if not shape.is_fully_defined():
        raise ValueError("Tensors must have statically known shape.")
    return shape
