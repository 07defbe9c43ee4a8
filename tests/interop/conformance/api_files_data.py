"""The test files of tf.data that are run on Tenfold's client, and which of their tests are no public behaviour.

Read by api_files.py, which has the table of all files.
"""

from __future__ import annotations

from files import Exclusion

_P = "tensorflow/python"


def _named(folder: str, stems: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{stem}_test.py" for stem in stems.split())


_D = f"{_P}/data/kernel_tests"
_DE = f"{_P}/data/experimental/kernel_tests"
_DS = f"{_DE}/serialization"

#: tf.data. Not here are files about what TensorFlow does not export: its rewritings of pipelines (optimization/*,
#: choose_fastest, map_defun_op), the datasets of its distribution strategies (auto_shard, rebatch, replicate),
#: make_tf_record, restructured, snapshot, eager iterators' clean-up (memory_cleanup), helpers in util.
DATA = (
    *_named(
        _D,
        """
        batch cache checkpoint concatenate dataset enumerate filter fixed_length_record_dataset flat_map from_generator
        from_sparse_tensor_slices from_tensor_slices from_tensors interleave iterator_cluster iterator list_files map
        multi_device_iterator optional options padded_batch prefetch range reduce repeat shard shuffle
        skip take text_line_dataset tf_record_dataset unbatch window zip
        """,
    ),
    *_named(f"{_P}/data/util", "nest options random_seed structure"),
    *_named(
        _DE,
        """
        bucket_by_sequence_length cardinality copy_to_device counter csv_dataset
        dense_to_sparse_batch directed_interleave_dataset get_single_element group_by_reducer group_by_window
        ignore_errors make_batched_features_dataset make_csv_dataset map_and_batch
        matching_files override_threadpool parallel_interleave parse_example_dataset prefetch_to_device
        prefetch_with_slack rejection_resample scan shuffle_and_repeat sleep sql_dataset
        stats_dataset_ops take_while tf_record_writer unique variant wrap_unwrap
        """,
    ),
    *_named(
        _DS,
        """
        batch_dataset_serialization cache_dataset_serialization
        checkpoint_input_pipeline_hook concatenate_dataset_serialization csv_dataset_serialization
        dataset_constructor_serialization filter_dataset_serialization
        fixed_length_record_dataset_serialization flat_map_dataset_serialization group_by_reducer_serialization
        group_by_window_serialization ignore_errors_serialization interleave_dataset_serialization
        map_and_batch_dataset_serialization map_dataset_serialization matching_files_dataset_serialization
        optimize_dataset_serialization
        padded_batch_dataset_serialization
        parallel_interleave_dataset_serialization parallel_map_dataset_serialization
        parse_example_dataset_serialization prefetch_dataset_serialization range_dataset_serialization
        sample_from_datasets_serialization scan_dataset_serialization sequence_dataset_serialization
        serialization_integration shard_dataset_serialization shuffle_and_repeat_dataset_serialization
        shuffle_dataset_serialization sql_dataset_serialization stats_dataset_serialization
        take_while_dataset_serialization textline_dataset_serialization tf_record_dataset_serialization
        unbatch_dataset_serialization unique_dataset_serialization zip_dataset_serialization
        """,
    ),
    *_named(
        "tensorflow/contrib/data/python/kernel_tests",
        "assert_element_shape lmdb_dataset_op reduce_dataset slide_dataset_op",
    ),
)

#: What these files import from beside themselves.
BASES = (
    f"{_D}/test_base.py",
    f"{_DE}/reader_dataset_ops_test_base.py",
    f"{_DE}/sql_dataset_test_base.py",
    f"{_DE}/stats_dataset_test_base.py",
    f"{_DS}/dataset_serialization_test_base.py",
)

#: Files whose `variables.Variable` must be a resource, as it is in TensorFlow's own modules: iterators see its changes.
WITH_RESOURCE_VARIABLES = ("cache_test.py",)

_RAGGED = "ragged tensors"
_FUNCTION = "functions of TensorFlow 2"
_V2 = "the Dataset of TensorFlow 2"
_DEFUN = "TensorFlow's Defun, an internal module"
_EAGER = "the object-based checkpoints of TensorFlow 2 (tf.train.Checkpoint), which are not served"
_PRIVATE = "a private attribute, or an argument of a private class, of TensorFlow's implementation"
_REWRITING = "how TensorFlow rewrites a pipeline before it runs, which it does not export"
_AGGREGATOR = "that a pipeline with a StatsAggregator cannot be saved, which it can here"
_LMDB = "reads an LMDB database, whose library trusts the pointers in a file"
_AUTOGRAPH = "AutoGraph, which rewrites Python code: decision 0093"

#: Reason → file → its tests.
_LEFT_OUT: dict[str, dict[str, str]] = {
    _RAGGED: {
        f"{_D}/batch": "BatchTest.testRagged*",
        f"{_D}/flat_map": "FlatMapTest.testRagged",
        f"{_D}/from_tensor_slices": (
            "FromTensorSlicesTest.testFromTensorSlicesMixedRagged FromTensorSlicesTest.testFromTensorSlicesRagged"
        ),
        f"{_D}/from_tensors": "FromTensorsTest.testFromTensorsMixedRagged FromTensorsTest.testFromTensorsRagged",
        f"{_D}/map": "MapTest.testRagged*",
        f"{_D}/unbatch": "UnbatchTest.testUnbatchDatasetWith*RaggedTensor",
        f"{_P}/data/util/nest": "NestTest.testFlattenRaggedValue NestTest.testIsSequence",
        f"{_P}/data/util/structure": "StructureTest.test*Ragged*",
    },
    _FUNCTION: {
        f"{_D}/dataset": "DatasetTest.testDatasetAsFunctionArgument DatasetTest.testLimitedRetracing",
        f"{_D}/optional": "OptionalTest.testFunctionBoundaries OptionalTest.testLimitedRetracing",
        f"{_D}/reduce": (
            "ReduceTest.testAutomaticControlDependencies ReduceTest.testDatasetSideEffect ReduceTest.testSideEffect"
        ),
        f"{_DE}/get_single_element": (
            "GetSingleElementTest.testAutomaticControlDependencies GetSingleElementTest.testSideEffect"
        ),
        f"{_DE}/tf_record_writer": "TFRecordWriterTest.testSideEffect",
    },
    _V2: {f"{_D}/map": "MapTest.testPreserveCardinality*"},
    _DEFUN: {
        f"{_D}/iterator": "IteratorTest.testRemoteIteratorUsingRemoteCallOp*",
        f"{_D}/iterator_cluster": "IteratorClusterTest.testRemoteIteratorUsingRemoteCallOp*",
    },
    _EAGER: {f"{_D}/checkpoint": "CheckpointTest.*"},
    _PRIVATE: {
        f"{_D}/dataset": (
            "DatasetTest.testAsSerializedGraph* DatasetTest.testFixedLengthRecordInputs DatasetTest.testTextLineInputs"
        ),
        f"{_D}/map": "MapTest.testNoInterOpParallelism*",
        f"{_DE}/override_threadpool": "OverrideThreadpoolTest.testMaxIntraOpParallelismAsGraphDefInternal",
        f"{_DE}/prefetch_with_slack": "PrefetchWithSlackTest.testPrefetchWithSlackOption",
    },
    _REWRITING: {f"{_D}/multi_device_iterator": "MultiDeviceIteratorTest.testOptimization"},
    _AGGREGATOR: {
        f"{_DS}/stats_dataset_serialization": (
            "StatsDatasetSerializationTest.test_set_stats_aggregator_not_support_checkpointing"
        )
    },
    _LMDB: {"tensorflow/contrib/data/python/kernel_tests/lmdb_dataset_op": "LMDBDatasetTest.testReadFromFile"},
    _AUTOGRAPH: {f"{_D}/prefetch": "PrefetchTest.testSkipEagerPrefetchCancellation"},
}

EXCLUDED = tuple(
    Exclusion(f"{file}_test.py", test, reason)
    for reason, files in _LEFT_OUT.items()
    for file, tests in files.items()
    for test in tests.split()
)
