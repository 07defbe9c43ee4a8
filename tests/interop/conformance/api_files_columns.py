"""Which tests of feature columns are no public behaviour: of the classes behind columns, and of layers of Keras.

Read by api_files.py.
"""

from __future__ import annotations

from files import Exclusion

_KERAS = "the layers of Keras for feature columns"
_CLASSES = "the methods of the classes behind columns, which TensorFlow does not export"
_MARK = "the mark by which TensorFlow tells its old columns from its new ones: there is one kind here"
_V2 = "shared embeddings of TensorFlow 2"
_UNDERSCORE = "functions and methods of contrib.layers' columns that begin with an underscore"

#: Reason → class of tests → its tests, without "test_".
_TESTS: dict[str, dict[str, str]] = {
    _KERAS: {
        "BucketizedColumnTest": "linear_model_one_input_value linear_model_two_input_values",
        "CrossedColumnTest": "linear_model linear_model_with_weights",
        "EmbeddingColumnTest": "dense_features dense_features_not_trainable linear_model",
        "HashedCategoricalColumnTest": "linear_model",
        "IdentityCategoricalColumnTest": "linear_model",
        "IndicatorColumnTest": "dense_features linear_model",
        "LinearModelTest": """
            column_order dense_and_sparse_bias dense_and_sparse_column dense_bias dense_multi_column
            dense_multi_dimension dense_multi_dimension_multi_output dense_multi_output dense_reshaping
            dense_trainable_default dense_trainable_false does_not_support_dict_columns fit_and_predict
            multiple_linear_models not_dict_input_features raises_if_duplicate_name
            raises_if_empty_feature_columns raises_if_shape_mismatch runtime_batch_size_matches
            runtime_batch_size_mismatch should_be_dense_or_categorical_column should_be_feature_column
            sparse_bias sparse_combiner sparse_combiner_sqrtn sparse_combiner_with_negative_weights
            sparse_multi_output sparse_multi_rank sparse_trainable_default sparse_trainable_false
            static_batch_size_mismatch subset_of_static_batch_size_mismatch variable_names
            with_1d_sparse_tensor with_1d_unknown_shape_sparse_tensor with_rank_0_feature
        """,
        "NumericColumnTest": "linear_model",
        "VocabularyFileCategoricalColumnTest": "linear_model",
        "VocabularyListCategoricalColumnTest": "linear_model",
        "WeightedCategoricalColumnTest": """
            linear_model linear_model_mismatched_dense_shape linear_model_mismatched_dense_values
            linear_model_mismatched_shape
        """,
    },
    _CLASSES: {
        "BucketizedColumnTest": """
            get_dense_tensor_one_input_value get_dense_tensor_two_input_values
            get_sparse_tensors_one_input_value get_sparse_tensors_two_input_values serialization
            sparse_tensor_input_not_supported transform_feature
        """,
        "CrossedColumnTest": """
            get_sparse_tensors get_sparse_tensors_simple old_linear_model_with_weights serialization
            transform_feature
        """,
        "EmbeddingColumnTest": """
            get_dense_tensor get_dense_tensor_3d get_dense_tensor_old_categorical
            get_dense_tensor_placeholder_inputs get_dense_tensor_restore_from_ckpt
            serialization_with_custom_initializer serialization_with_default_initializer
            transform_feature
        """,
        "HashedCategoricalColumnTest": """
            dtype_should_match_with_tensor get_sparse_tensors get_sparse_tensors_dense_input
            int32_64_is_compatible ints_should_be_hashed serialization strings_should_be_hashed
            tensor_dtype_should_be_string_or_integer
        """,
        "IdentityCategoricalColumnTest": """
            get_sparse_tensors get_sparse_tensors_dense_input get_sparse_tensors_with_default_value
            get_sparse_tensors_with_default_value_and_placeholder_inputs
            get_sparse_tensors_with_inputs_too_big get_sparse_tensors_with_inputs_too_small
            invalid_input_dtype serialization transform_feature
        """,
        "IndicatorColumnTest": """
            1D_shape_succeeds 2D_shape_succeeds multi_hot multi_hot2 serialization transform
            transform_with_missing_value_in_categorical_column
            transform_with_missing_value_in_weighted_column transform_with_weighted_column
        """,
        "InputLayerTest": "retrieving_input",
        "LazyColumnTest": """
            does_not_pollute_given_features_dict error_if_feature_is_not_found
            expand_dim_rank_1_sparse_tensor_empty_batch key_should_be_string_or_feature_colum
            not_supported_feature_column returns_transform_output transformations_called_once
        """,
        "NumericColumnTest": """
            get_dense_tensor normalizer_fn_transform_feature serialization sparse_tensor_not_supported
        """,
        "OldLinearModelTest": "dense_and_sparse_column should_be_dense_or_categorical_column",
        "TransformFeaturesTest": "column_order",
        "VocabularyFileCategoricalColumnTest": """
            get_sparse_tensors get_sparse_tensors_default_value_in_vocabulary
            get_sparse_tensors_dense_input get_sparse_tensors_int32 get_sparse_tensors_int32_dense_input
            get_sparse_tensors_int32_with_oov_buckets get_sparse_tensors_small_vocabulary_size
            get_sparse_tensors_with_oov_buckets invalid_input_dtype_int32 invalid_input_dtype_string
            invalid_vocabulary_file serialization too_large_vocabulary_size transform_feature
        """,
        "VocabularyListCategoricalColumnTest": """
            get_sparse_tensors get_sparse_tensors_default_value_in_vocabulary
            get_sparse_tensors_dense_input get_sparse_tensors_int32 get_sparse_tensors_int32_dense_input
            get_sparse_tensors_int32_with_oov_buckets get_sparse_tensors_with_oov_buckets
            invalid_input_dtype_int32 invalid_input_dtype_string serialization transform_feature
        """,
        "WeightedCategoricalColumnTest": """
            invalid_input_dtype missing_weights serialization transform_features
            transform_features_dense_input transform_features_dense_weights
        """,
    },
    _V2: {
        "OldLinearModelTest": "linear_model_v2_shared_embedding_all_other_v1",
        "SharedEmbeddingColumnTest": """
            all_constructor_args deep_copy defaults dense_features dense_features_no_trainable
            get_dense_tensor get_dense_tensor_placeholder_inputs incompatible_column_type
            invalid_initializer linear_model parse_example serialization transform_feature
            weighted_categorical_column_ok
        """,
    },
}

#: Reason → tests of sequence_feature_column_test, in TensorFlow's core and in its contrib.
_OF_SEQUENCES = {
    _KERAS: "DenseFeaturesTest.* SequenceFeaturesTest.*",
    _CLASSES: """
        *ColumnTest.test_get_sequence_dense_tensor* *ColumnTest.test_sequence_length* *.test_get_sparse_tensors*
        SequenceNumericColumnTest.test_get_dense_tensor_multi_dim* *.test_serialization
        SequenceNumericColumnTest.test_parents
    """,
}
_SEQUENCES = (
    "tensorflow/python/feature_column/sequence_feature_column_test.py",
    "tensorflow/contrib/feature_column/python/feature_column/sequence_feature_column_test.py",
)

#: File of contrib.layers → class of tests → its tests that are of no public behaviour, without "test".
_OF_LAYERS: dict[str, dict[str, str]] = {
    "feature_column": {
        "FeatureColumnTest": """
            BucketizedColumnRequiresRealValuedColumnDimension CreateFeatureSpec_ExperimentalColumns
            CreateFeatureSpec_RealValuedColumnWithDefaultValue CreateSequenceFeatureSpec
            IntegerizedOneHotWeightedSparseColumnShape MakePlaceHolderTensorsForBaseFeatures
            OneHotColumnWithSparseColumnWithHashKeys OneHotReshaping RealValuedColumnDensification
            RealValuedColumnReshaping RealValuedVarLenColumn RealValuedVarLenColumnDtypes SparseColumnAcceptsDenseScalar
            SparseColumnSingleBucket
        """,
    },
    "feature_column_ops": {
        "CreateInputLayersForDNNsTest": """
            RealValuedColumnDense RealValuedColumnTypeConversion SparseTensorRealValuedColumn
        """,
        "SequenceInputFromFeatureColumnTest": "RealValuedVarLenColumn",
        "TransformerTest": "*",
        "WeightedSumTest": "MulticlassWithRealValuedColumnHavingMultiDimensionsAndSparse",
    },
}

EXCLUDED = (
    *(
        Exclusion("tensorflow/python/feature_column/feature_column_v2_test.py", test, reason)
        for test, reason in (
            ("*.test_is_v2_column*", _MARK),
            ("IndicatorColumnTest.test_indicator_column", _MARK),
            ("VocabularyFileCategoricalColumnTest.test_get_sparse_tensors_none_vocabulary_size", _CLASSES),
        )
    ),
    Exclusion(_SEQUENCES[1], "SequenceNumericColumnTest.test_defaults", "a private attribute of TensorFlow's columns"),
    *(
        Exclusion(path, test, reason)
        for path in _SEQUENCES
        for reason, tests in _OF_SEQUENCES.items()
        for test in tests.split()
    ),
    *(
        Exclusion("tensorflow/python/feature_column/feature_column_v2_test.py", f"{case}.test_{test}", reason)
        for reason, cases in _TESTS.items()
        for case, tests in cases.items()
        for test in tests.split()
    ),
    *(
        Exclusion(f"tensorflow/contrib/layers/python/layers/{stem}_test.py", f"{case}.test{test}", _UNDERSCORE)
        for stem, cases in _OF_LAYERS.items()
        for case, tests in cases.items()
        for test in tests.split()
    ),
)
