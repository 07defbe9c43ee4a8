"""Which test files of TensorFlow 1.15 are run on Tenfold's client, and which of their tests are no public behaviour.

Read by api.py and api_report.py; files.py is the table of the files that are run over the wire.
"""

from __future__ import annotations

import api_contrib_files
import api_files_columns
import api_files_data
import api_files_drawn
import api_files_rnn
from files import Exclusion

_P = "tensorflow/python"
_T = f"{_P}/training"
_K = f"{_P}/kernel_tests"


def _named(folder: str, stems: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{stem}_test.py" for stem in stems.split())


#: The training API: held to 85 %.
REQUIRED = (
    *_named(
        _T,
        """
        server_lib server_lib_multiple_containers server_lib_same_variables_clear
        server_lib_same_variables_clear_container server_lib_same_variables_no_clear server_lib_sparse_job
        device_setter sync_replicas_optimizer monitored_session basic_session_run_hooks session_manager supervisor
        coordinator queue_runner saver checkpoint_management checkpoint_utils training_util optimizer
        gradient_descent momentum adagrad adagrad_da adadelta adam rmsprop ftrl proximal_gradient_descent
        proximal_adagrad learning_rate_decay moving_averages slot_creator input basic_loops
        """,
    ),
    *_named(f"{_P}/summary", "summary"),
    *_named(f"{_P}/summary/writer", "writer"),
    *_named(
        f"{_P}/distribute/cluster_resolver",
        "cluster_resolver tfconfig_cluster_resolver slurm_cluster_resolver",
    ),
)

FURTHER = (
    *api_contrib_files.FILES,
    *api_files_rnn.FILES,
    *api_files_drawn.FILES,
    *_named(f"{_P}/client", "session session_partial_run session_list_devices timeline"),
    *_named(
        _K,
        """
        variables variable_scope partitioned_variables control_flow_ops_py clip_ops embedding_ops session_ops
        summary_v1_ops summary_v1_image_op summary_v1_audio_op summary_v1_tensor_op
        """,
    ),
    *_named(
        _K, "decode_bmp_op decode_image_op decode_png_op draw_bounding_box_op attention_ops extract_image_patches_op"
    ),
    *_named(_T, "training_ops warm_starting_util"),
    *_named(f"{_P}/framework", "graph_util"),
    *_named(f"{_P}/ops", "gradient_checker image_ops image_grad"),
    *_named(f"{_P}/summary", "plugin_asset"),
    *_named(
        f"{_K}/signal",
        "dct_ops mel_ops mfcc_ops reconstruction_ops shape_ops spectral_ops window_ops",
    ),
    *_named(f"{_P}/saved_model", "loader saved_model signature_def_utils simple_save utils"),
)

#: Of the repository tensorflow/estimator, at its branch r1.15.
ESTIMATOR = _named(
    "tensorflow_estimator/python/estimator",
    """
    estimator model_fn run_config training exporter extenders early_stopping util hooks/hooks export/export
    inputs/numpy_io inputs/pandas_io inputs/queues/feeding_functions inputs/queues/feeding_queue_runner
    """,
)

_HEAD = "tensorflow_estimator/python/estimator/head"
#: The heads of tf.estimator: BinaryClassHead and kin.
HEADS = _named(_HEAD, "base_head binary_class_head multi_class_head multi_head multi_label_head regression_head")

_CANNED = "tensorflow_estimator/python/estimator/canned"
_LEARN = "tensorflow/contrib/learn/python/learn"
#: Canned estimators with their heads, feature columns, and contrib.learn.
MODELS = (
    *_named(_CANNED, "head optimizers parsing_utils linear_optimizer/python/sdca"),
    *_named(f"{_CANNED}/linear_optimizer/python/utils", "sdca_ops sharded_mutable_dense_hashtable"),
    "tensorflow/contrib/linear_optimizer/python/kernel_tests/sdca_ops_test.py",
    *(
        f"{_CANNED}/v1/{stem}_v1.py"
        for stem in (
            *("baseline_test", "baseline_estimator_test", "linear_test", "linear_estimator_test", "dnn_test_fc_v2"),
            *("dnn_estimator_test", "dnn_linear_combined_test", "dnn_linear_combined_estimator_test"),
        )
    ),
    *_named("tensorflow_estimator/contrib/estimator/python/estimator", "head multi_head logit_fns"),
    *_named(f"{_P}/feature_column", "feature_column_v2 sequence_feature_column"),
    "tensorflow/contrib/feature_column/python/feature_column/sequence_feature_column_test.py",
    *_named("tensorflow/contrib/layers/python/layers", "feature_column feature_column_ops"),
    *_named(
        _LEARN,
        """
        datasets/base datasets/load_csv datasets/synthetic estimators/dnn estimators/dnn_linear_combined
        estimators/estimator estimators/estimator_input estimators/estimators estimators/head estimators/linear
        estimators/logistic_regressor estimators/model_fn estimators/multioutput estimators/nonlinear
        estimators/regression estimators/run_config estimators/stability estimators/svm experiment export_strategy
        learn_io/data_feeder learn_io/graph_io learn_io/io learn_io/pandas_io learn_runner metric_spec monitors
        ops/ops preprocessing/tests/categorical preprocessing/tests/categorical_vocabulary preprocessing/tests/text
        utils/gc utils/input_fn_utils utils/saved_model_export_utils
        """,
    ),
)

ALL = (*REQUIRED, *FURTHER, *ESTIMATOR, *HEADS, *MODELS, *api_files_data.DATA)

#: Files that a test file imports from beside itself.
BESIDE = {
    **api_contrib_files.BESIDE,
    f"{_T}/saver_test.py": (f"{_T}/saver_test_utils.py",),
    f"{_P}/saved_model/saved_model_test.py": (f"{_T}/saver_test_utils.py",),
    f"{_CANNED}/head_test.py": (f"{_CANNED}/v1/dnn_testing_utils_v1.py",),
    **dict.fromkeys(HEADS, (f"{_HEAD}/head_utils.py", f"{_CANNED}/dnn_testing_utils.py")),
    **{
        f"{_CANNED}/v1/{stem}_v1.py": (f"{_CANNED}/v1/{kind}_testing_utils_v1.py",)
        for stem, kind in (
            *(("linear_test", "linear"), ("dnn_test_fc_v2", "dnn"), ("dnn_estimator_test", "dnn")),
            ("linear_estimator_test", "linear"),
        )
    },
    **dict.fromkeys(
        (f"{_CANNED}/v1/dnn_linear_combined_test_v1.py", f"{_CANNED}/v1/dnn_linear_combined_estimator_test_v1.py"),
        (f"{_CANNED}/v1/dnn_testing_utils_v1.py", f"{_CANNED}/v1/linear_testing_utils_v1.py"),
    ),
    **{
        path: (
            f"{_LEARN}/estimators/test_data.py",
            f"{_LEARN}/estimators/estimator_test_utils.py",
            f"{_LEARN}/datasets/data/boston_house_prices.csv",
            f"{_LEARN}/datasets/data/iris.csv",
        )
        for path in MODELS
        if path.startswith(_LEARN)
    },
    **dict.fromkeys(api_files_data.DATA, api_files_data.BASES),
    "tensorflow_estimator/python/estimator/estimator_test.py": (f"{_T}/saver_test_utils.py",),
}

_EAGER = "the object-based checkpoints of TensorFlow 2 (tf.train.Checkpoint), which are not served"
_STRATEGY = "distribution strategies and their coordinator"
_PRIVATE = "a private attribute of TensorFlow's implementation"
_KERAS = "builds its program with Keras"
_C_API = "calls TensorFlow's C interface"
_EAGER_STORE = "variables of eager execution"
_FUNCTION = "functions of TensorFlow 2"
_RAGGED = "ragged tensors"
_XLA = "the contexts of the XLA compiler"
_OPTIMIZER = "calls TensorFlow's graph optimizer"
_SPEC = "type specifications of TensorFlow 2"
_RESOURCE = "the class Variable of TensorFlow 2, which is a resource variable"
_DOWNLOADS = "downloads a data set, which is left to the program's user"
_PYTHON_3 = "fails in TensorFlow 1.15 itself under Python 3, where a summary's bytes are not text"
_TRANSFORMS = "TensorFlow's tool for rewriting graphs is not served"
_BUNDLES = "session bundles, the exports before SavedModel, which nothing reads now"
_DEBUGGER = "the TensorFlow debugger is not served"


def _left_out(file: str, reason: str, *tests: str) -> tuple[Exclusion, ...]:
    return tuple(Exclusion(f"{_P}/{file}_test.py", test, reason) for test in tests)


#: Reason → tests of control flow that are no part of the training API.
_CONTROL_FLOW = {
    _FUNCTION: (
        "testCondAccessTrueBranchTensorInFalseBranchRaises",
        "testCondAutoControlDeps",
        "testCondGrad_MultiGather",
        "testCondMismatchedIndexedSlices",
        "testCondPredicateTensor",
        "testCondPruning",
        "testFunctionInWhile",
        "testNestedResourceAccess",
        "testSwitchCaseAccessBranch1TensorInBranch4Raises",
        "testWhileCondGrad_ResourceVarInFunctionCall",
        "testWhileGradInControlDeps",
        "testWhileGrad_ResourceVarIn*",
        "testWhileOutputShapeWithShapeInvariants*",
    ),
    _RAGGED: ("testCondRaggedTensor", "testWhileShapeInferenceRaggedTensor*"),
    _XLA: (
        "testInvalidMaximumIterationsFromSiblingContextWhileLoopInXLAContext",
        "testInvalidMaximumIterationsWhileLoopGradientInXLAContext",
        "testNestedWhileLoopWithMaxItersFromOuterContextInXLAContext",
        "testSingleNestedMaximumIterationsWhileLoopGradientInXLAContext",
        "testXLAGradInLoop",
    ),
    _PRIVATE: (
        "testRefEnter",
        "testRefIdentity",
        "testRefSwitch",
        "testSparseEnterExit",
        "testSparseIdentity",
    ),
    _RESOURCE: ("testWhileExternalControlDependencies*",),
    _SPEC: ("testWhileShapeInvariantTensorSpec", "testWhileShapeInvariantWrongTypeSpecType"),
}

EXCLUDED: tuple[Exclusion, ...] = (
    Exclusion(
        f"{_CANNED}/head_test.py",
        "CreateEstimatorSpecTest.test_head_override_tpu_estimator_spec",
        "specifications for TPUs, an internal class",
    ),
    *(
        Exclusion(f"{_HEAD}/base_head_test.py", f"CreateEstimatorSpecTest.{test}", reason)
        for test, reason in (
            ("test_head_override_tpu_estimator_spec", "specifications for TPUs, an internal class"),
            ("test_optimizer_v2_variable_name", _KERAS),
            ("test_head_with_invalid_optimizer", "refuses optimizers that are not Keras': decision 0099"),
        )
    ),
    Exclusion(f"{_HEAD}/multi_class_head_test.py", "MultiClassHead.test_train_create_loss*", _PRIVATE),
    Exclusion(f"{_HEAD}/multi_head_test.py", "MultiHeadTest.test_train_one_head_with_optimizer", _KERAS),
    Exclusion(
        f"{_LEARN}/estimators/estimator_test.py",
        "EstimatorTest.test_export_savedmodel_with_graph_transforms",
        _TRANSFORMS,
    ),
    Exclusion(f"{_LEARN}/estimators/estimator_test.py", "EstimatorTest.test_export_returns_exported_dirname", _BUNDLES),
    Exclusion(f"{_LEARN}/estimators/estimator_test.py", "EstimatorTest.testSummaryWritingWithSummaryProto", _PYTHON_3),
    Exclusion(f"{_LEARN}/datasets/base_test.py", "BaseTest.testUrlretrieve*", _DOWNLOADS),
    Exclusion(f"{_LEARN}/learn_io/graph_io_test.py", "GraphIOTest.test_get_file_names_errors", _PRIVATE),
    Exclusion(f"{_LEARN}/learn_io/graph_io_test.py", "GraphIOTest.test_keyed_features_filter", _PRIVATE),
    *(
        Exclusion(f"{_LEARN}/estimators/{stem}_test.py", f"{case}.{test}", reason)
        for stem, case, test, reason in (
            ("dnn", "DNNClassifierTest", "testExport", _BUNDLES),
            ("linear", "LinearClassifierTest", "testExport", _BUNDLES),
            ("dnn_linear_combined", "DNNLinearCombinedClassifierTest", "testExport", _BUNDLES),
            ("dnn_linear_combined", "DNNLinearCombinedRegressorTest", "testExport", _BUNDLES),
        )
    ),
    *api_files_data.EXCLUDED,
    *api_files_rnn.EXCLUDED,
    *api_files_drawn.EXCLUDED,
    *api_contrib_files.EXCLUDED,
    *api_files_columns.EXCLUDED,
    *_left_out(
        "ops/image_ops",
        "a function of TensorFlow's implementation that begins with an underscore",
        "VerifyCompatibleImageShapesTest.*",
    ),
    *_left_out(
        "ops/image_ops",
        "makes an array of the shape None, which NumPy refuses",
        "CentralCropTest.testErrorOnInvalidShapes",
    ),
    *_left_out("ops/image_grad", "gradient tapes of eager execution", "ScaleAndTranslateOpTest.testIdentityGrads"),
    *(
        row
        for reason, tests in _CONTROL_FLOW.items()
        for row in _left_out("kernel_tests/control_flow_ops_py", reason, *(f"ControlFlowTest.{t}" for t in tests))
    ),
    *_left_out("training/checkpoint_management", _EAGER, "CheckpointManagerTest.*"),
    *_left_out(
        "training/checkpoint_management",
        "counts on its own argument being changed",
        "CheckpointStateTest.testAllModelCheckpointPaths",
    ),
    *_left_out(
        "training/checkpoint_utils", _EAGER, "CheckpointIteratorTest.testReturnsSingleCheckpointIfOneCheckpointFound"
    ),
    *_left_out("training/input", _PRIVATE, "DictHelperTest.*"),
    *_left_out("training/monitored_session", _STRATEGY, "MonitoredTrainingSessionWithDistributeCoordinatorTest.*"),
    *_left_out(
        "training/monitored_session",
        _DEBUGGER,
        "MonitoredSessionTest.test_merge_caller_and_hook_run_options",
        "MonitoredSessionTest.test_merge_run_options_from_hooks",
    ),
    *_left_out(
        "training/monitored_session",
        "names the files of TensorFlow's implementation",
        "CoordinatedSessionTest.test_propagates_exception_trace",
    ),
    *_left_out("training/saver", _PRIVATE, "MetaGraphTest.testAddCollectionDefFails"),
    *_left_out("training/saver", _KERAS, "TrackableCompatibilityTests.testLoadFromObjectBased*"),
    *_left_out(
        "training/saver",
        _EAGER,
        "TrackableCompatibilityTests.testMoreComplexSaveableReturned",
        "TrackableCompatibilityTests.testNotSaveableButIsTrackable",
    ),
    *_left_out(
        "client/session",
        _PRIVATE,
        "SessionTest.testErrorBasedOn",
        "SessionTest.testNonInteractiveSessionNesting",
        "SessionTest.testNotEntered",
    ),
    *_left_out("client/session", _OPTIMIZER, "SessionTest.testOptimizerOptions"),
    *_left_out("client/session_list_devices", _C_API, "SessionListDevicesTest.testInvalidDeviceNumber"),
    *_left_out(
        "framework/graph_util",
        _OPTIMIZER,
        "ConvertVariablesToConstantsTest.testWithInlinedFunctions",
    ),
    *_left_out(
        "framework/graph_util",
        _KERAS,
        "ConvertVariablesToConstantsTest.testKerasBatchNorm",
        "ConvertVariablesToConstantsTest.testLSTM",
        "ConvertVariablesToConstantsTest.testWithEmbeddings",
    ),
    *_left_out("kernel_tests/embedding_ops", _PRIVATE, "EmbeddingLookupTest.testTransform"),
    *_left_out(
        "kernel_tests/session_ops",
        "counts on a handle sharing a variable's memory",
        "SessionOpsTest.testFeedHandleToVariableDirectly",
    ),
    *_left_out(
        "kernel_tests/variable_scope", _EAGER_STORE, "VariableScopeTest.testEagerVariablesStoreAddsToCollections"
    ),
    *_left_out(
        "kernel_tests/variable_scope", _PRIVATE, "VariableScopeWithCustomGetterTest.testVariableCreatorNestingError"
    ),
    *_left_out("saved_model/saved_model", _RAGGED, "SavedModelTest.testSignatureDefValidationSucceedsWithRagged"),
    *_left_out("saved_model/utils", _RAGGED, "UtilsTest.testBuildTensorInfoRagged"),
    *_left_out("saved_model/utils", _FUNCTION, "UtilsTest.testBuildTensorInfoDefunOp"),
    *_left_out("kernel_tests/signal/shape_ops", _OPTIMIZER, "FrameTest.test_constant_folding"),
    *_left_out("kernel_tests/signal/window_ops", _OPTIMIZER, "WindowOpsTest.test_constant_folding"),
    *_left_out("kernel_tests/signal/mel_ops", _OPTIMIZER, "LinearToMelTest.test_constant_folding"),
    *_left_out(
        "saved_model/saved_model",
        "an op of TensorFlow's own test library",
        "SavedModelTest.testInconsistentConsumerDefaultAttrs",
    ),
    *_left_out(
        "saved_model/saved_model",
        "reads a SavedModel of TensorFlow's repository",
        "SavedModelTest.testMaybeSavedModelDir",
    ),
    *_left_out("training/warm_starting_util", _EAGER, "WarmStartingUtilTest.testWarmStartFromObjectBasedCheckpoint"),
    *_left_out("kernel_tests/variables", _PRIVATE, "VariablesTestCase.testCyclicInitializer"),
    *_left_out("kernel_tests/variables", _RESOURCE, "VariablesTestCase.testAssignDifferentShapesAllowed"),
    *_left_out("kernel_tests/variables", _STRATEGY, "VariablesTestCase.testDistributeStrategy"),
    *_left_out(
        "kernel_tests/variables",
        "names of TensorFlow 2 for the same values",
        "AggregationModesTest.testV1V2Equal",
        "VariablesTestCase.testSynchronizationAndAggregationSaved",
    ),
    *_left_out(
        "kernel_tests/variables",
        _FUNCTION,
        "VariablesTestCase.testVariableNamesPreserveNameScopesWithDefun",
    ),
)

_V2 = "the class for TensorFlow 2"

#: Stem → reason → tests of tf.estimator that are no public behaviour of graph mode.
_OF_ESTIMATOR: dict[str, dict[str, tuple[str, ...]]] = {
    "estimator": {
        _KERAS: (
            "EstimatorEvaluateTest.test_evaluate_from_checkpoint",
            "EstimatorEvaluateTest.test_global_step_is_reported",
            "EstimatorEvaluateTest.test_global_step_metric_raises_error",
            "EstimatorEvaluateTest.test_hooks_are_used",
            "EstimatorEvaluateTest.test_no_checkpoint_uses_init",
            "EstimatorEvaluateTest.test_no_checkpoint_uses_init_with_warm_starting",
            "EstimatorEvaluateTest.test_scores",
            "EstimatorEvaluateTest.test_steps0_raises_error",
            "EstimatorEvaluateTest.test_steps_negative_raises_error",
            "EstimatorExportTest.test_export_all_saved_models_metric_operation",
            "EstimatorExportTest.test_export_all_saved_models_name_collision",
            "EstimatorExportTest.test_export_all_saved_models_proto_roundtrip_*",
            "EstimatorIntegrationTest.test_complete_flow_with_a_simple_linear_model",
        ),
        _STRATEGY: (
            "EstimatorExportTest.test_scaffold_is_used_for_local_init",
            "EstimatorInputContextTest.*",
            "EstimatorTrainTest.test_hooks_with_distributed_collective_ops",
        ),
        _V2: ("EstimatorExportTest.test_export_saved_model_symbol_deprecated",),
    },
    "model_fn": {
        _KERAS: (
            "EstimatorSpecEvalTest.testAllArgumentsSet",
            "EstimatorSpecEvalTest.testEvalMetricOpsFromDifferentGraphWithMetricObject",
            "EstimatorSpecEvalTest.testEvalMetricOpsWithoutUpdates",
            "EstimatorSpecEvalTest.testMetricVariablesAddedToCollections",
            "EstimatorSpecInferTest.testAllArgumentsSet",
            "EstimatorSpecTrainTest.testAllArgumentsSet",
        )
    },
    "export/export": {
        _PRIVATE: (
            "ServingInputReceiverTest.test_feature_labeled_tensor",
            "SupervisedInputReceiverTest.test_feature_labeled_tensor",
        )
    },
    "extenders": {
        _KERAS: (
            "AddMetricsTest.test_all_args_are_optional",
            "AddMetricsTest.test_overrides_existing_metrics",
            "AddMetricsTest.test_should_add_metrics",
        )
    },
    "hooks/hooks": {
        _KERAS: (
            "InMemoryEvaluatorHookTest.test_raise_error_with_custom_init_fn_in_eval",
            "InMemoryEvaluatorHookTest.test_raise_error_with_custom_saver_in_eval",
            "InMemoryEvaluatorHookTest.test_raise_error_with_saveables_other_than_global_variables",
            "InMemoryEvaluatorHookTest.test_runs_eval_metrics",
            "InMemoryEvaluatorHookTest.test_uses_latest_variable_value",
        )
    },
    "inputs/numpy_io": {_PRIVATE: ("FeatureColumnIntegrationTest.test_linear_model_impl_numpy_input_fn",)},
    "inputs/queues/feeding_functions": {_PRIVATE: ("_FeedingFunctionsTestCase.testFillArray*",)},
}
EXCLUDED += (
    Exclusion(f"{_CANNED}/v1/linear_test_v1.py", "LinearLogitFnV2Test.test_compute_fraction_of_zero_v2", _KERAS),
    *(
        Exclusion(path, f"{kind}HeadForEstimator.{test}", _KERAS)
        for path in HEADS[1:]
        for kind in ("BinaryClass", "MultiClass", "Multi", "MultiLabel", "Regression")
        for test in ("test_invalid_trainable_variables", "test_lookup_tables_in_graph", "test_train_with_optimizer")
    ),
)
EXCLUDED += tuple(
    Exclusion(f"tensorflow_estimator/python/estimator/{stem}_test.py", test, why)
    for stem, reasons in _OF_ESTIMATOR.items()
    for why, tests in reasons.items()
    for test in tests
)


def resolve(name: str) -> str:
    """The path of a file named by its path, its name or its stem. Raises KeyError with what there is."""
    for path in ALL:
        if name == path or name.removesuffix(".py").removesuffix("_test") == path.rsplit("/", 1)[-1].removesuffix(
            "_test.py"
        ):
            return path
    if "/" in name:
        return name
    raise KeyError(f"no test file {name!r}; give its path in TensorFlow's repository or a stem of api_files.py")


def kept_as(path: str) -> str:
    """The name under which the outcomes of a file are kept; files of several folders have one stem."""
    stem = path.rsplit("/", 1)[-1].removesuffix(".py")
    same = [other for other in ALL if other.rsplit("/", 1)[-1].removesuffix(".py") == stem]
    return stem if same[:1] in ([path], []) else path.removesuffix(".py").replace("/", ".")
