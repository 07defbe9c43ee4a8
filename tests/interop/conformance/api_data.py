"""Names that TensorFlow's test files of tf.data ask for: classes behind the methods, combinations of modes.

Read by api_extras.py. The classes are functions here: what a test makes by `MapDataset(…)` is a Dataset all the same.
"""

from __future__ import annotations

import functools
import unittest
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import api_stand_ins
import api_test_util

from tenfold.data import (
    applied,
    dataset,
    iterators,
    mapping,
    node,
    optionals,
    options,
    readers,
    seeds,
    sources,
    transforms,
)
from tenfold.data.stats_aggregator import StatsAggregator
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import tensor_op
from tenfold.ops.type_specs import TensorSpec
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable


def _made(function: Callable[..., node.DatasetNode]) -> Any:
    @functools.wraps(function)
    def make(*args: Any, **named: Any) -> dataset.Dataset:
        return dataset.Dataset(function(*args, **named))

    return staticmethod(make)


class _Unary(dataset.Dataset):
    """A class of a test's own over one dataset."""

    def __init__(self, input_dataset: Any, variant_tensor: Any) -> None:
        super().__init__(node.DatasetNode(variant_tensor, input_dataset.element_spec, (input_dataset,)))


class DatasetOps:
    """Of data/ops/dataset_ops."""

    DatasetV1 = DatasetV2 = DatasetV1Adapter = dataset.Dataset
    UnaryUnchangedStructureDataset = UnaryDataset = _Unary
    get_legacy_output_types = staticmethod(dataset.get_output_types)
    get_legacy_output_shapes = staticmethod(dataset.get_output_shapes)
    get_legacy_output_classes = staticmethod(dataset.get_output_classes)
    MapDataset = _made(
        lambda source, f, use_inter_op_parallelism=True, preserve_cardinality=False: mapping.mapped(
            source, f, None, use_inter_op_parallelism, preserve_cardinality
        )
    )
    ParallelMapDataset = _made(mapping.mapped)
    PrefetchDataset = _made(transforms.prefetched)
    _VariantDataset = _made(node.DatasetNode)
    _GeneratorDataset = _made(sources.generator_dataset)
    _OptimizeDataset = _made(applied.optimized)
    from_variant = _VariantDataset

    @staticmethod
    def _ModelDataset(source: Any) -> Any:
        return dataset.Dataset(
            node.node_of("ModelDataset", source.element_spec, (source,), input_dataset=source._variant_tensor)
        )

    @staticmethod
    def to_variant(source: Any) -> Any:
        return source._variant_tensor

    @staticmethod
    def wrap_dataset_variant(variant: Any) -> Any:
        return tensor_op("WrapDatasetVariant", input_handle=variant)

    @staticmethod
    def unwrap_dataset_variant(variant: Any) -> Any:
        return tensor_op("UnwrapDatasetVariant", input_handle=variant)


class DataOptions:
    """Of data/util/options."""

    @staticmethod
    def create_option(name: str, ty: Any, docstring: str, default_factory: Callable[[], Any] = lambda: None) -> Any:
        return options._option(name, ty, docstring, default_factory)


class IteratorOps:
    """Of data/ops/iterator_ops."""

    IteratorBase = iterators.Iterator
    get_next_as_optional = staticmethod(optionals.get_next_as_optional)


class OptionalOps:
    """Of data/ops/optional_ops."""

    _OptionalImpl = optionals.Optional


class Readers:
    """Of data/ops/readers."""

    TFRecordDatasetV1 = TFRecordDatasetV2 = _TFRecordDataset = readers.TFRecordDataset
    TextLineDatasetV1 = TextLineDatasetV2 = readers.TextLineDataset
    FixedLengthRecordDatasetV1 = FixedLengthRecordDatasetV2 = readers.FixedLengthRecordDataset
    ParallelInterleaveDataset = _made(mapping.parallel_interleaved)


class RandomSeed:
    """Of data/util/random_seed."""

    get_seed = staticmethod(seeds.get_seed)


class Optimization:
    """Of data/experimental/ops/optimization: rewritings, which these tests look for, are the runtime's own affair."""

    @staticmethod
    def assert_next(transformations: Any) -> Any:
        def apply(source: Any) -> Any:
            spec, variant = source.element_spec, source._variant_tensor
            return dataset.Dataset(
                node.node_of(
                    "AssertNextDataset", spec, (source,), input_dataset=variant, transformations=transformations
                )
            )

        return apply

    @staticmethod
    def optimize(optimizations: Any = None) -> Any:
        return lambda source: dataset.Dataset(applied.optimized(source, optimizations))

    @staticmethod
    def model() -> Any:
        return lambda source: DatasetOps._ModelDataset(source)

    @staticmethod
    def non_serializable() -> Any:
        return lambda source: dataset.Dataset(
            node.node_of("NonSerializableDataset", source.element_spec, (source,), input_dataset=source._variant_tensor)
        )


class Cardinality:
    """Of data/experimental/ops/cardinality."""

    INFINITE, UNKNOWN = -1, -2


class InterleaveOps:
    """Of data/experimental/ops/interleave_ops."""

    _DirectedInterleaveDataset = _made(transforms.directed)


class MatchingFiles:
    """Of data/experimental/ops/matching_files."""

    MatchingFilesDataset = _made(
        lambda patterns: node.DatasetNode(
            tensor_op("MatchingFilesDataset", patterns=convert_to_tensor(patterns, dtypes.string)),
            TensorSpec([], dtypes.string),
        )
    )


class Sleep:
    """Of data/experimental/ops/sleep."""

    @staticmethod
    def sleep(microseconds: Any) -> Any:
        return lambda source: dataset.Dataset(
            node.node_of(
                "SleepDataset",
                source.element_spec,
                (source,),
                input_dataset=source._variant_tensor,
                sleep_microseconds=microseconds,
            )
        )


class Tf2:
    """tensorflow.python.tf2: never on."""

    @staticmethod
    def enabled() -> bool:
        return False


class StatsAggregators:
    """Of data/experimental/ops/stats_aggregator."""

    StatsAggregatorV1 = StatsAggregator


class Ragged:
    """Of ops/ragged/ragged_tensor and ragged_tensor_value: no value is one."""

    class RaggedTensor:
        """No value is one."""

    class RaggedTensorSpec:
        """Nothing has one."""

        def __init__(self, *args: Any, **named: Any) -> None:
            pass

    class RaggedTensorValue:
        """No value is one."""

    @staticmethod
    def is_ragged(value: Any) -> bool:
        return False


class Combinations:
    """tensorflow.python.framework.combinations, of which only graph mode of version 1 is run."""

    @staticmethod
    def combine(**named: Any) -> list[Any]:
        found: list[Any] = [OrderedDict()]
        for key in sorted(named):
            values = named[key] if isinstance(named[key], list) else [named[key]]
            found = [OrderedDict([*each.items(), (key, value)]) for each in found for value in values]
        return found

    @staticmethod
    def times(*combined: Any) -> list[Any]:
        found: list[Any] = [OrderedDict()]
        for each in combined:
            found = [OrderedDict([*a.items(), *b.items()]) for a in found for b in each]
        return found

    class NamedObject:
        """A value with a name for the test's id; calls and attributes go to the value."""

        def __init__(self, name: str, obj: Any) -> None:
            self._name, self._obj = name, obj

        def __getattr__(self, name: str) -> Any:
            return getattr(self._obj, name)

        def __call__(self, *args: Any, **named: Any) -> Any:
            return self._obj(*args, **named)

        def __iter__(self) -> Any:
            return iter(self._obj)

        def __repr__(self) -> str:
            return self._name

    @staticmethod
    def generate(combined: Any) -> Any:
        def decorate(method: Any) -> Any:
            wanted = [
                {key: value for key, value in each.items() if key not in ("mode", "tf_api_version")}
                for each in combined
                if each.get("mode", "graph") == "graph" and each.get("tf_api_version", 1) == 1
            ]
            test = api_test_util._graph_half(method)
            if not wanted:
                return unittest.skip("runs eagerly, or behaviour of TensorFlow 2")(method)
            if wanted == [{}]:
                return test
            return api_stand_ins._Cases(test, [(f"_{number}", each) for number, each in enumerate(wanted)])

        return decorate
