"""Op definitions: random numbers and samplers.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_nn as w
from tenfold_core.opdefs import shape_fns_reshape as h
from tenfold_core.opdefs import shape_fns_text as t
from tenfold_core.opdefs.table import family

op = family("random")

op(
    "ComputeAccidentalHits",
    "true_classes: int64, sampled_candidates: int64",
    "indices: int32, ids: int64, weights: float",
    "num_true: int",
    "seed: int = 0",
    "seed2: int = 0",
    shape=w.accidental_hits,
)
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
    shape=t.candidates,
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
    shape=h.multinomial,
    sized_by="num_samples",
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
    shape=h.random_shape,
    sized_by="shape",
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
    shape=t.shape_and_parameters,
    sized_by="shape",
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
    shape=t.shape_and_parameters,
    sized_by="shape",
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
    shape=h.random_shape,
    sized_by="shape",
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
    shape=h.random_shape,
    sized_by="shape",
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
    shape=h.random_shape,
    sized_by="shape",
)
op(
    "StatelessRandomNormal",
    "shape: T, seed: Tseed",
    "output: dtype",
    "dtype: {half_floats} = float",
    "T: {index} = int32",
    "Tseed: {index} = int64",
    shape=h.random_shape,
    sized_by="shape",
)
op(
    "StatelessRandomUniform",
    "shape: T, seed: Tseed",
    "output: dtype",
    "dtype: {half_floats} = float",
    "T: {index} = int32",
    "Tseed: {index} = int64",
    shape=h.random_shape,
    sized_by="shape",
)
op(
    "StatelessTruncatedNormal",
    "shape: T, seed: Tseed",
    "output: dtype",
    "dtype: {half_floats} = float",
    "T: {index} = int32",
    "Tseed: {index} = int64",
    shape=h.random_shape,
    sized_by="shape",
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
    shape=h.random_shape,
    sized_by="shape",
)
op(
    "RandomPoisson",
    "shape: S, rate: dtype",
    "output: dtype",
    "seed: int = 0",
    "seed2: int = 0",
    "S: {index}",
    "dtype: {half, float, double}",
    stateful=True,
    shape=t.shape_and_parameters,
    sized_by="shape",
)
op(
    "RandomGammaGrad",
    "alpha: T, sample: T",
    "output: T",
    "T: {float, double}",
    shape=t.broadcast,
)
op(
    "StatelessRandomUniformInt",
    "shape: T, seed: Tseed, minval: dtype, maxval: dtype",
    "output: dtype",
    "dtype: {index}",
    "T: {index}",
    "Tseed: {index} = int64",
    shape=h.random_shape,
    sized_by="shape",
)
op(
    "StatelessRandomUniformFullInt",
    "shape: T, seed: Tseed",
    "output: dtype",
    "dtype: {int32, int64, uint32, uint64} = uint64",
    "T: {index} = int32",
    "Tseed: {int32, int64, uint32, uint64} = int64",
    shape=h.random_shape,
    sized_by="shape",
)
op(
    "StatelessMultinomial",
    "logits: T, num_samples: int32, seed: Tseed",
    "output: output_dtype",
    "T: {real}",
    "Tseed: {index} = int64",
    "output_dtype: {index} = int64",
    shape=t.multinomial,
    sized_by="num_samples",
)
op(
    "StatelessRandomNormalV2",
    "shape: Tshape, key: uint64, counter: uint64, alg: int32",
    "output: dtype",
    "dtype: {half_floats} = float",
    "Tshape: {index} = int32",
    shape=h.random_shape,
    sized_by="shape",
)
op(
    "StatelessRandomUniformV2",
    "shape: Tshape, key: uint64, counter: uint64, alg: int32",
    "output: dtype",
    "dtype: {half_floats} = float",
    "Tshape: {index} = int32",
    shape=h.random_shape,
    sized_by="shape",
)
op(
    "StatelessTruncatedNormalV2",
    "shape: Tshape, key: uint64, counter: uint64, alg: int32",
    "output: dtype",
    "dtype: {half_floats} = float",
    "Tshape: {index} = int32",
    shape=h.random_shape,
    sized_by="shape",
)
op(
    "StatelessRandomUniformIntV2",
    "shape: Tshape, key: uint64, counter: uint64, alg: int32, minval: dtype, maxval: dtype",
    "output: dtype",
    "dtype: {int32, int64, uint32, uint64}",
    "Tshape: {index} = int32",
    shape=h.random_shape,
    sized_by="shape",
)
op(
    "StatelessRandomUniformFullIntV2",
    "shape: Tshape, key: uint64, counter: uint64, alg: int32",
    "output: dtype",
    "dtype: {int32, int64, uint32, uint64} = uint64",
    "Tshape: {index} = int32",
    shape=h.random_shape,
    sized_by="shape",
)
op(
    "StatelessRandomGetKeyCounter",
    "seed: Tseed",
    "key: uint64, counter: uint64",
    "Tseed: {index} = int64",
    shape=t.key_and_counter,
)
op(
    "StatelessRandomGetAlg",
    "",
    "alg: int32",
    stateful=True,
    shape=t.scalar,
)
op(
    "StatelessRandomGetKeyCounterAlg",
    "seed: Tseed",
    "key: uint64, counter: uint64, alg: int32",
    "Tseed: {index} = int64",
    shape=t.key_and_counter,
)
op(
    "StatelessRandomGammaV2",
    "shape: T, seed: Tseed, alpha: dtype",
    "output: dtype",
    "dtype: {half, float, double}",
    "T: {index}",
    "Tseed: {index} = int64",
    shape=h.random_shape,
    sized_by="shape",
)
op(
    "StatelessRandomPoisson",
    "shape: T, seed: Tseed, lam: Rtype",
    "output: dtype",
    "Rtype: {half, float, double, int32, int64}",
    "dtype: {half, float, double, int32, int64}",
    "T: {index}",
    "Tseed: {index} = int64",
    shape=h.random_shape,
    sized_by="shape",
)
op(
    "StatelessParameterizedTruncatedNormal",
    "shape: S, seed: Tseed, means: dtype, stddevs: dtype, minvals: dtype, maxvals: dtype",
    "output: dtype",
    "S: {index}",
    "Tseed: {index} = int64",
    "dtype: {half, float, double}",
    shape=h.random_shape,
    sized_by="shape",
)
op(
    "StatelessShuffle",
    "value: T, key: uint64, counter: uint64, alg: int32",
    "output: T",
    "T: type",
    shape=t.unchanged,
)
op(
    "UniformCandidateSampler",
    "true_classes: int64",
    "sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float",
    "num_true: int >= 1",
    "num_sampled: int >= 1",
    "unique: bool",
    "range_max: int >= 1",
    "seed: int = 0",
    "seed2: int = 0",
    stateful=True,
    shape=t.candidates,
)
op(
    "LearnedUnigramCandidateSampler",
    "true_classes: int64",
    "sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float",
    "num_true: int >= 1",
    "num_sampled: int >= 1",
    "unique: bool",
    "range_max: int >= 1",
    "seed: int = 0",
    "seed2: int = 0",
    stateful=True,
    shape=t.candidates,
)
op(
    "FixedUnigramCandidateSampler",
    "true_classes: int64",
    "sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float",
    "num_true: int >= 1",
    "num_sampled: int >= 1",
    "unique: bool",
    "range_max: int >= 1",
    "vocab_file: string = ''",
    "distortion: float = 1.0",
    "num_reserved_ids: int = 0",
    "num_shards: int >= 1 = 1",
    "shard: int >= 0 = 0",
    "unigrams: list(float) = []",
    "seed: int = 0",
    "seed2: int = 0",
    stateful=True,
    shape=t.candidates,
)
op(
    "ThreadUnsafeUnigramCandidateSampler",
    "true_classes: int64",
    "sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float",
    "num_true: int >= 1",
    "num_sampled: int >= 1",
    "unique: bool",
    "range_max: int >= 1",
    "seed: int = 0",
    "seed2: int = 0",
    stateful=True,
    shape=t.candidates,
)
op(
    "AllCandidateSampler",
    "true_classes: int64",
    "sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float",
    "num_true: int >= 1",
    "num_sampled: int >= 1",
    "unique: bool",
    "seed: int = 0",
    "seed2: int = 0",
    stateful=True,
    shape=t.candidates,
)
op(
    "RandomCrop",
    "image: T, size: int64",
    "output: T",
    "T: {uint8, int8, int16, int32, int64, float, double}",
    "seed: int = 0",
    "seed2: int = 0",
    stateful=True,
)
op(
    "StatelessRandomGammaV3",
    "shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype",
    "output: dtype",
    "dtype: {half, float, double}",
    "shape_dtype: {index} = int32",
    shape=h.random_shape,
    sized_by="shape",
)
