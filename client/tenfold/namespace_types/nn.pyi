# Written by `make stubs` from the table of tf.nn in namespaces.py.

from tenfold.ops import rnn_cell
from tenfold.ops.array_blocks import depth_to_space
from tenfold.ops.array_blocks import space_to_batch
from tenfold.ops.array_blocks import space_to_depth
from tenfold.ops.candidate_sampling import all_candidate_sampler
from tenfold.ops.candidate_sampling import compute_accidental_hits
from tenfold.ops.candidate_sampling import fixed_unigram_candidate_sampler
from tenfold.ops.candidate_sampling import learned_unigram_candidate_sampler
from tenfold.ops.candidate_sampling import log_uniform_candidate_sampler
from tenfold.ops.candidate_sampling import uniform_candidate_sampler
from tenfold.ops.elementwise import sigmoid
from tenfold.ops.elementwise import tanh
from tenfold.ops.embedding import embedding_lookup
from tenfold.ops.embedding import embedding_lookup_sparse
from tenfold.ops.embedding import safe_embedding_lookup_sparse
from tenfold.ops.embedding_groups import group_embedding_lookup
from tenfold.ops.embedding_groups import group_embedding_lookup_sparse
from tenfold.ops.generated_ops import depthwise_conv2d_native
from tenfold.ops.generated_ops import depthwise_conv2d_native_backprop_filter
from tenfold.ops.generated_ops import depthwise_conv2d_native_backprop_filter as depthwise_conv2d_backprop_filter
from tenfold.ops.generated_ops import depthwise_conv2d_native_backprop_input
from tenfold.ops.generated_ops import depthwise_conv2d_native_backprop_input as depthwise_conv2d_backprop_input
from tenfold.ops.generated_ops import fractional_avg_pool
from tenfold.ops.generated_ops import fractional_max_pool
from tenfold.ops.nn import bias_add
from tenfold.ops.nn import compute_average_loss
from tenfold.ops.nn import crelu
from tenfold.ops.nn import dropout
from tenfold.ops.nn import elu
from tenfold.ops.nn import in_top_k
from tenfold.ops.nn import leaky_relu
from tenfold.ops.nn import log_softmax
from tenfold.ops.nn import relu
from tenfold.ops.nn import relu6
from tenfold.ops.nn import relu_layer
from tenfold.ops.nn import scale_regularization_loss
from tenfold.ops.nn import selu
from tenfold.ops.nn import softmax
from tenfold.ops.nn import softplus
from tenfold.ops.nn import softsign
from tenfold.ops.nn import swish
from tenfold.ops.nn import top_k
from tenfold.ops.nn import xw_plus_b
from tenfold.ops.nn import zero_fraction
from tenfold.ops.nn_conv import atrous_conv2d
from tenfold.ops.nn_conv import atrous_conv2d_transpose
from tenfold.ops.nn_conv import conv1d
from tenfold.ops.nn_conv import conv1d_transpose
from tenfold.ops.nn_conv import conv2d
from tenfold.ops.nn_conv import conv2d_backprop_filter
from tenfold.ops.nn_conv import conv2d_backprop_input
from tenfold.ops.nn_conv import conv2d_transpose
from tenfold.ops.nn_conv import conv3d
from tenfold.ops.nn_conv import conv3d_backprop_filter
from tenfold.ops.nn_conv import conv3d_backprop_filter as conv3d_backprop_filter_v2
from tenfold.ops.nn_conv import conv3d_transpose
from tenfold.ops.nn_conv import conv_transpose
from tenfold.ops.nn_conv import convolution
from tenfold.ops.nn_conv import depthwise_conv2d
from tenfold.ops.nn_conv import separable_conv2d
from tenfold.ops.nn_conv import with_space_to_batch
from tenfold.ops.nn_ctc import collapse_repeated
from tenfold.ops.nn_ctc import ctc_beam_search_decoder
from tenfold.ops.nn_ctc import ctc_beam_search_decoder_v2
from tenfold.ops.nn_ctc import ctc_greedy_decoder
from tenfold.ops.nn_ctc import ctc_loss
from tenfold.ops.nn_ctc import ctc_loss_v2
from tenfold.ops.nn_ctc import ctc_unique_labels
from tenfold.ops.nn_losses import l2_loss
from tenfold.ops.nn_losses import log_poisson_loss
from tenfold.ops.nn_losses import sigmoid_cross_entropy_with_logits
from tenfold.ops.nn_losses import softmax_cross_entropy_with_logits
from tenfold.ops.nn_losses import softmax_cross_entropy_with_logits_v2
from tenfold.ops.nn_losses import sparse_softmax_cross_entropy_with_logits
from tenfold.ops.nn_losses import weighted_cross_entropy_with_logits
from tenfold.ops.nn_norm import batch_norm_with_global_normalization
from tenfold.ops.nn_norm import batch_normalization
from tenfold.ops.nn_norm import fused_batch_norm
from tenfold.ops.nn_norm import l2_normalize
from tenfold.ops.nn_norm import local_response_normalization
from tenfold.ops.nn_norm import lrn
from tenfold.ops.nn_norm import moments
from tenfold.ops.nn_norm import normalize_moments
from tenfold.ops.nn_norm import sufficient_statistics
from tenfold.ops.nn_norm import weighted_moments
from tenfold.ops.nn_pool import avg_pool
from tenfold.ops.nn_pool import avg_pool1d
from tenfold.ops.nn_pool import avg_pool2d
from tenfold.ops.nn_pool import avg_pool3d
from tenfold.ops.nn_pool import avg_pool_v2
from tenfold.ops.nn_pool import dilation2d
from tenfold.ops.nn_pool import erosion2d
from tenfold.ops.nn_pool import max_pool
from tenfold.ops.nn_pool import max_pool1d
from tenfold.ops.nn_pool import max_pool2d
from tenfold.ops.nn_pool import max_pool3d
from tenfold.ops.nn_pool import max_pool_v2
from tenfold.ops.nn_pool import max_pool_with_argmax
from tenfold.ops.nn_pool import pool
from tenfold.ops.rnn import bidirectional_dynamic_rnn
from tenfold.ops.rnn import dynamic_rnn
from tenfold.ops.rnn import raw_rnn
from tenfold.ops.rnn_static import static_bidirectional_rnn
from tenfold.ops.rnn_static import static_rnn
from tenfold.ops.rnn_static import static_state_saving_rnn
from tenfold.ops.sampled_losses import nce_loss
from tenfold.ops.sampled_losses import sampled_softmax_loss

__all__ = [
    "all_candidate_sampler",
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "avg_pool_v2",
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "bias_add",
    "bidirectional_dynamic_rnn",
    "collapse_repeated",
    "compute_accidental_hits",
    "compute_average_loss",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "conv3d",
    "conv3d_backprop_filter",
    "conv3d_backprop_filter_v2",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "crelu",
    "ctc_beam_search_decoder",
    "ctc_beam_search_decoder_v2",
    "ctc_greedy_decoder",
    "ctc_loss",
    "ctc_loss_v2",
    "ctc_unique_labels",
    "depth_to_space",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "depthwise_conv2d_native",
    "depthwise_conv2d_native_backprop_filter",
    "depthwise_conv2d_native_backprop_input",
    "dilation2d",
    "dropout",
    "dynamic_rnn",
    "elu",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "erosion2d",
    "fixed_unigram_candidate_sampler",
    "fractional_avg_pool",
    "fractional_max_pool",
    "fused_batch_norm",
    "group_embedding_lookup",
    "group_embedding_lookup_sparse",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "learned_unigram_candidate_sampler",
    "local_response_normalization",
    "log_poisson_loss",
    "log_softmax",
    "log_uniform_candidate_sampler",
    "lrn",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_v2",
    "max_pool_with_argmax",
    "moments",
    "nce_loss",
    "normalize_moments",
    "pool",
    "raw_rnn",
    "relu",
    "relu6",
    "relu_layer",
    "rnn_cell",
    "safe_embedding_lookup_sparse",
    "sampled_softmax_loss",
    "scale_regularization_loss",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "softplus",
    "softsign",
    "space_to_batch",
    "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits",
    "static_bidirectional_rnn",
    "static_rnn",
    "static_state_saving_rnn",
    "sufficient_statistics",
    "swish",
    "tanh",
    "top_k",
    "uniform_candidate_sampler",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "with_space_to_batch",
    "xw_plus_b",
    "zero_fraction",
]
