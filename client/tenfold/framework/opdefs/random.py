"""Op definitions: random numbers and samplers.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `framework/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold.framework.opdefs import shape_fns as s
from tenfold.framework.opdefs.table import family

op = family("random")

op(
    "LogUniformCandidateSampler",
    "true_classes: int64",
    "sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float",
    "num_true: int >= 1",
    "num_sampled: int >= 1",
    "unique: bool",
    "range_max: int >= 1",
    "seed: int = 0",
    "seed2: int = 0",
    stateful=True,
)
op(
    "Multinomial",
    "logits: T, num_samples: int32",
    "output: output_dtype",
    "seed: int = 0",
    "seed2: int = 0",
    "T: {real}",
    "output_dtype: {index} = int64",
    stateful=True,
    shape=s.multinomial,
)
op(
    "ParameterizedTruncatedNormal",
    "shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype",
    "output: dtype",
    "seed: int = 0",
    "seed2: int = 0",
    "dtype: {half_floats}",
    "T: {index}",
    stateful=True,
)
op(
    "RandomGamma",
    "shape: S, alpha: T",
    "output: T",
    "seed: int = 0",
    "seed2: int = 0",
    "S: {index}",
    "T: {half, float, double}",
    stateful=True,
)
op(
    "RandomPoissonV2",
    "shape: S, rate: R",
    "output: dtype",
    "seed: int = 0",
    "seed2: int = 0",
    "S: {index}",
    "R: {half, float, double, int32, int64} = double",
    "dtype: {half, float, double, int32, int64} = int64",
    stateful=True,
)
op(
    "RandomShuffle",
    "value: T",
    "output: T",
    "seed: int = 0",
    "seed2: int = 0",
    "T: type",
    stateful=True,
    shape=s.unchanged,
)
op(
    "RandomStandardNormal",
    "shape: T",
    "output: dtype",
    "seed: int = 0",
    "seed2: int = 0",
    "dtype: {half_floats}",
    "T: {index}",
    stateful=True,
    shape=s.random_shape,
)
op(
    "RandomUniform",
    "shape: T",
    "output: dtype",
    "seed: int = 0",
    "seed2: int = 0",
    "dtype: {half_floats}",
    "T: {index}",
    stateful=True,
    shape=s.random_shape,
)
op(
    "RandomUniformInt",
    "shape: T, minval: Tout, maxval: Tout",
    "output: Tout",
    "seed: int = 0",
    "seed2: int = 0",
    "Tout: {index}",
    "T: {index}",
    stateful=True,
    shape=s.random_shape,
)
op(
    "StatelessRandomNormal",
    "shape: T, seed: Tseed",
    "output: dtype",
    "dtype: {half_floats} = float",
    "T: {index} = int32",
    "Tseed: {index} = int64",
)
op(
    "StatelessRandomUniform",
    "shape: T, seed: Tseed",
    "output: dtype",
    "dtype: {half_floats} = float",
    "T: {index} = int32",
    "Tseed: {index} = int64",
)
op(
    "StatelessTruncatedNormal",
    "shape: T, seed: Tseed",
    "output: dtype",
    "dtype: {half_floats} = float",
    "T: {index} = int32",
    "Tseed: {index} = int64",
)
op(
    "TruncatedNormal",
    "shape: T",
    "output: dtype",
    "seed: int = 0",
    "seed2: int = 0",
    "dtype: {half_floats}",
    "T: {index}",
    stateful=True,
    shape=s.random_shape,
)
