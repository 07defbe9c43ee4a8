"""Bodies of kernels that draw numbers of a Philox stream: the CPU's numbers, see philox.py and cpu/random.py.

A thread makes a block, four words, and what is made of it. Logarithm, sine and cosine of float32 normals are computed
in double and rounded, as on the CPU, so that the streams are the same but for a last place now and then.
"""

from __future__ import annotations

import inspect
import math
import sys
from typing import Any

import numpy as np
from numba import cuda

from tenfold_kernels import scalar_philox
from tenfold_kernels.cuda._code.bodies import device_function, text_of
from tenfold_kernels.cuda._code.device import device
from tenfold_kernels.cuda._code.elementwise import NAMES
from tenfold_kernels.cuda._runtime import is_simulated

_block = device_function(scalar_philox.block)
_SHIFT = np.uint64(32)
_MANTISSA_SINGLE, _STEP_SINGLE = np.uint64(0x7FFFFF), np.float32(2.0**-23)
_MASK, _MANTISSA_DOUBLE, _STEP_DOUBLE = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFF), 2.0**-52
_LEAST_SINGLE, _LEAST_DOUBLE = np.float32(1e-7), 1e-7
_MINUS_TWO_SINGLE, _TWO_SINGLE = np.float32(-2), np.float32(2)
_CIRCLE = 2.0 * math.pi
_exp = NAMES["exp"]


@device_function
def _single(word):  # type: ignore[no-untyped-def]
    # float32 in [0, 1) of 23 bits
    return np.float32(word & _MANTISSA_SINGLE) * _STEP_SINGLE


@device_function
def _double(pair):  # type: ignore[no-untyped-def]
    # float64 in [0, 1) of 20 bits of the first word over 32 of the second
    return np.float64((pair & _MANTISSA_DOUBLE) << _SHIFT | pair >> _SHIFT) * _STEP_DOUBLE


@device_function
def _normal_singles(pair):  # type: ignore[no-untyped-def]
    first = _single(pair)
    if first < _LEAST_SINGLE:
        first = _LEAST_SINGLE
    angle = np.float64(np.float32(_CIRCLE * np.float64(_single(pair >> _SHIFT))))
    radius = math.sqrt(_MINUS_TWO_SINGLE * np.float32(math.log(np.float64(first))))
    return np.float32(math.sin(angle)) * radius, np.float32(math.cos(angle)) * radius


@device_function
def _normal_doubles(first, second):  # type: ignore[no-untyped-def]
    size = _double(first)
    if size < _LEAST_DOUBLE:
        size = _LEAST_DOUBLE
    angle = _CIRCLE * _double(second)
    radius = math.sqrt(-2.0 * math.log(size))
    return math.sin(angle) * radius, math.cos(angle) * radius


def uniform_float32(groups, n, key, low, high, out):  # type: ignore[no-untyped-def]
    for g in range(cuda.grid(1), groups, cuda.gridsize(1)):
        first, second = _block(key, low, high, g)
        at = 4 * g
        out[at] = _single(first)
        if at + 1 < n:
            out[at + 1] = _single(first >> _SHIFT)
        if at + 2 < n:
            out[at + 2] = _single(second)
        if at + 3 < n:
            out[at + 3] = _single(second >> _SHIFT)


def uniform_float64(groups, n, key, low, high, out):  # type: ignore[no-untyped-def]
    for g in range(cuda.grid(1), groups, cuda.gridsize(1)):
        first, second = _block(key, low, high, g)
        at = 2 * g
        out[at] = _double(first)
        if at + 1 < n:
            out[at + 1] = _double(second)


def normal_float32(groups, n, key, low, high, out):  # type: ignore[no-untyped-def]
    for g in range(cuda.grid(1), groups, cuda.gridsize(1)):
        first, second = _block(key, low, high, g)
        at = 4 * g
        y0, y1 = _normal_singles(first)
        y2, y3 = _normal_singles(second)
        out[at] = y0
        if at + 1 < n:
            out[at + 1] = y1
        if at + 2 < n:
            out[at + 2] = y2
        if at + 3 < n:
            out[at + 3] = y3


def normal_float64(groups, n, key, low, high, out):  # type: ignore[no-untyped-def]
    for g in range(cuda.grid(1), groups, cuda.gridsize(1)):
        first, second = _block(key, low, high, g)
        at = 2 * g
        y0, y1 = _normal_doubles(first, second)
        out[at] = y0
        if at + 1 < n:
            out[at + 1] = y1


def truncated_float32(groups, n, key, low, high, out):  # type: ignore[no-untyped-def]
    # every group of outputs draws from its own run of 256 blocks until it has four normals inside ±2
    for g in range(cuda.grid(1), groups, cuda.gridsize(1)):
        at = 4 * g
        end = at + 4
        index = 256 * g
        while at < end:
            first, second = _block(key, low, high, index)
            y0, y1 = _normal_singles(first)
            y2, y3 = _normal_singles(second)
            for w in range(4):
                y = (y0 if w == 0 else y1) if w < 2 else (y2 if w == 2 else y3)
                if abs(y) < _TWO_SINGLE and at < end:
                    if at < n:
                        out[at] = y
                    at += 1
            index += 1


def truncated_float64(groups, n, key, low, high, out):  # type: ignore[no-untyped-def]
    for g in range(cuda.grid(1), groups, cuda.gridsize(1)):
        at = 2 * g
        end = at + 2
        index = 128 * g
        while at < end:
            first, second = _block(key, low, high, index)
            y0, y1 = _normal_doubles(first, second)
            for w in range(2):
                y = y0 if w == 0 else y1
                if abs(y) < 2.0 and at < end:
                    if at < n:
                        out[at] = y
                    at += 1
            index += 1


def ints(groups, n, key, low, high, span, base, out):  # type: ignore[no-untyped-def]
    # 64 bits, modulo `span` and from `base` on, as two's complement wraps; all of them for a span of 0
    for g in range(cuda.grid(1), groups, cuda.gridsize(1)):
        first, second = _block(key, low, high, g)
        if span > np.uint64(0):
            first = first % span + base
            second = second % span + base
        at = 2 * g
        out[at] = first
        if at + 1 < n:
            out[at + 1] = second


def weigh(rows, classes, logits, sums):  # type: ignore[no-untyped-def]
    # the sums of exp(logit) up to each class, but for a factor a row; 0 for what is not finite
    for r in range(cuda.grid(1), rows, cuda.gridsize(1)):
        begin = r * classes
        top = -math.inf
        for c in range(begin, begin + classes):
            x = np.float64(logits[c])
            if x - x == 0.0 and x > top:
                top = x
        total = 0.0
        for c in range(begin, begin + classes):
            x = np.float64(logits[c])
            if x - x == 0.0:
                total += _exp(x - top)
            sums[c] = total


def pick(n, samples, classes, key, low, high, sums, out):  # type: ignore[no-untyped-def]
    # the first class whose sum is beyond a part of the whole that is drawn for each sample
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        begin = (i // samples) * classes
        first, second = _block(key, low, high, i // 2)
        drawn = _double(first if i % 2 == 0 else second) * sums[begin + classes - 1]
        least = 0
        most = classes
        while least < most:
            middle = (least + most) // 2
            if sums[begin + middle] <= drawn:
                least = middle + 1
            else:
                most = middle
        out[i] = least


KERNELS = {
    ("uniform", "float32"): uniform_float32,
    ("uniform", "float64"): uniform_float64,
    ("normal", "float32"): normal_float32,
    ("normal", "float64"): normal_float64,
    ("truncated", "float32"): truncated_float32,
    ("truncated", "float64"): truncated_float64,
}
def _recorded(body):  # type: ignore[no-untyped-def]
    # the same, which reads key and counter where they are
    draw = body if is_simulated() else device(body)

    def run(groups, n, position, out):  # type: ignore[no-untyped-def]
        draw(groups, n, position[0], position[1], position[2], out)

    run.__name__ = f"{body.__name__}_recorded"
    return run


RECORDED = {key: _recorded(body) for key, body in KERNELS.items()}  # type: ignore[no-untyped-call]
_each: Any
for _each in (*KERNELS.values(), *RECORDED.values(), ints, weigh, pick):
    # what its compiled form is kept under: the block is in another file
    _each.generated_text = _each.__name__ + inspect.getsource(sys.modules[__name__]) + text_of(scalar_philox.block)
