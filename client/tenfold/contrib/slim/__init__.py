"""`tf.contrib.slim`: contrib's layers, argument scopes, variables, losses, metrics under one name, and more.

Its own are training (learning.py), evaluation.py, queues.py, summaries.py, data and nets. Each name is loaded from its
module at its first use.
"""

from tenfold.contrib.lazy import lazy_names

_LAYERS = """
    GDN avg_pool2d avg_pool3d batch_norm bias_add conv1d conv2d conv2d_in_plane conv2d_transpose conv3d
    conv3d_transpose convolution convolution1d convolution2d convolution2d_in_plane convolution2d_transpose
    convolution3d convolution3d_transpose dense_to_sparse dropout elu flatten fully_connected gdn group_norm
    images_to_sequence instance_norm layer_norm legacy_fully_connected legacy_linear legacy_relu linear max_pool2d
    max_pool3d maxout one_hot_encoding pool relu relu6 repeat scale_gradient separable_conv2d separable_convolution2d
    sequence_to_images softmax spatial_softmax stack unit_norm bow_encoder embed_sequence embedding_lookup_unique
    safe_embedding_lookup_sparse optimize_loss adaptive_clipping_fn apply_regularization l1_l2_regularizer
    l1_regularizer l2_regularizer sum_regularizer summarize_activation summarize_activations summarize_biases
    summarize_collection summarize_tensor summarize_tensors summarize_variables summarize_weights utils
    variance_scaling_initializer xavier_initializer xavier_initializer_conv2d
"""
_FRAMEWORK = """
    VariableDeviceChooser add_arg_scope add_model_variable arg_scope arg_scope_func_key arg_scoped_arguments
    assert_global_step assert_or_get_global_step assign_from_checkpoint assign_from_checkpoint_fn assign_from_values
    assign_from_values_fn create_global_step current_arg_scope filter_variables get_global_step get_local_variables
    get_model_variables get_or_create_global_step get_trainable_variables get_unique_variable get_variable_full_name
    get_variables get_variables_by_name get_variables_by_suffix get_variables_to_restore global_variable has_arg_scope
    local_variable model_variable variable
"""
_OWN = "evaluation learning model_analyzer nets queues summaries"
_DATA = """
    data_decoder data_provider dataset dataset_data_provider parallel_reader prefetch_queue tfexample_decoder
"""

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "tenfold.contrib.layers": _LAYERS,
        "tenfold.contrib.framework": _FRAMEWORK,
        "": " ".join(
            [
                *("layers=tenfold.contrib.layers", "losses=tenfold.contrib.losses"),
                *("metrics=tenfold.contrib.metrics", f"data={__name__}.data"),
                *(f"{name}={__name__}.{name}" for name in _OWN.split()),
                *(f"{name}={__name__}.data.{name}" for name in _DATA.split()),
            ]
        ),
    },
)
