"""The namespaces of TensorFlow 1.15 that gather functions of several modules: `tf.math`, `tf.linalg`, `tf.image`, ….

A table: namespace, module, names; `public=name` where the two differ. A row of module "tenfold" stands for names of
`tf` itself, a row of module "" for modules. `namespace("math")` gives an object that looks like a module and loads each
name at its first use. Namespaces with a module of their own (`tf.train`, `tf.layers`, …) are in `tenfold/__init__.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tenfold.lazy_module import LazyModule

_TABLE: dict[str, dict[str, str]] = {
    "audio": {
        "tenfold.ops.generated_ops": "decode_wav encode_wav",
    },
    "bitwise": {
        "tenfold.ops.generated_ops": "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift",
    },
    "debugging": {
        "tenfold": """
            Assert assert_equal assert_greater assert_greater_equal assert_integer assert_less
            assert_less_equal assert_near assert_negative assert_non_negative assert_non_positive
            assert_none_equal assert_positive assert_proper_iterable assert_rank assert_rank_at_least
            assert_rank_in assert_same_float_dtype assert_scalar assert_type check_numerics is_finite
            is_inf is_nan is_non_decreasing is_numeric_tensor is_strictly_increasing
        """,
        "tenfold.ops.numerics": "assert_all_finite=verify_tensor_all_finite",
    },
    "dtypes": {
        "tenfold": """
            DType QUANTIZED_DTYPES as_dtype as_string bfloat16 bool cast complex complex128 complex64 double float16
            float32 float64 half int16 int32 int64 int8 qint16 qint32 qint8 quint16 quint8 resource
            saturate_cast string uint16 uint32 uint64 uint8 variant
        """,
    },
    "image": {
        "tenfold": """
            extract_image_patches random_crop
        """,
        "tenfold.ops.array_blocks": "extract_patches",
        "tenfold.ops.image": """
            adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation convert_image_dtype
            grayscale_to_rgb per_image_standardization random_brightness random_contrast random_hue
            random_saturation rgb_to_grayscale rgb_to_yiq rgb_to_yuv yiq_to_rgb yuv_to_rgb
        """,
        "tenfold.ops.image_boxes": """
            combined_non_max_suppression crop_and_resize draw_bounding_boxes extract_glimpse
            non_max_suppression non_max_suppression_overlaps=non_max_suppression_with_overlaps
            non_max_suppression_padded non_max_suppression_with_scores sample_distorted_bounding_box
        """,
        "tenfold.ops.image_crop": """
            central_crop crop_to_bounding_box pad_to_bounding_box resize_image_with_crop_or_pad
            resize_with_crop_or_pad
        """,
        "tenfold.ops.image_files": "adjust_jpeg_quality decode_image is_jpeg random_jpeg_quality",
        "tenfold.ops.image_flip": """
            flip_left_right flip_up_down random_flip_left_right random_flip_up_down rot90 transpose
            transpose_image
        """,
        "tenfold.ops.image_quality": """
            image_gradients psnr sobel_edges ssim ssim_multiscale total_variation
        """,
        "tenfold.ops.image_resize": """
            ResizeMethod=ResizeMethodV1 resize resize_bicubic resize_bilinear resize_image_with_pad resize_images
            resize_nearest_neighbor
        """,
        "tenfold.ops.generated_ops": """
            decode_and_crop_jpeg decode_bmp decode_gif decode_jpeg decode_png encode_jpeg encode_png
            extract_jpeg_shape hsv_to_rgb resize_area rgb_to_hsv
        """,
    },
    "initializers": {
        "tenfold": """
            constant=constant_initializer global_variables=global_variables_initializer
            glorot_normal=glorot_normal_initializer glorot_uniform=glorot_uniform_initializer
            local_variables=local_variables_initializer ones=ones_initializer
            random_normal=random_normal_initializer random_uniform=random_uniform_initializer
            tables_initializer truncated_normal=truncated_normal_initializer
            variables=variables_initializer variance_scaling=variance_scaling_initializer
            zeros=zeros_initializer
        """,
        "tenfold.ops.init_ops": """
            he_normal he_uniform identity lecun_normal lecun_uniform orthogonal uniform_unit_scaling
        """,
    },
    "io": {
        "tenfold.ops.generated_ops": """
            decode_and_crop_jpeg decode_bmp decode_gif decode_jpeg decode_png encode_jpeg encode_png
            extract_jpeg_shape
        """,
        "tenfold.ops.image_files": "decode_image is_jpeg",
        "tenfold.python_io": "TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator",
        "tenfold.train": "write_graph",
        "tenfold": """
            FixedLenFeature FixedLenSequenceFeature PaddingFIFOQueue PriorityQueue QueueBase
            RandomShuffleQueue SparseFeature VarLenFeature decode_base64 decode_compressed decode_csv
            decode_json_example decode_raw deserialize_many_sparse encode_base64 matching_files
            parse_example parse_single_example parse_single_sequence_example
            parse_tensor read_file serialize_many_sparse
            serialize_sparse serialize_tensor write_file
        """,
        "tenfold.ops.parsing_sequences": "parse_sequence_example",
        "tenfold.train.input": "match_filenames_once",
        "": "gfile=tenfold.compat.python.io_gfile",
    },
    "linalg": {
        "tenfold": """
            band_part=matrix_band_part cholesky cholesky_solve cross det=matrix_determinant
            diag=matrix_diag diag_part=matrix_diag_part eigh=self_adjoint_eig
            eigvalsh=self_adjoint_eigvals einsum eye global_norm inv=matrix_inverse
            lstsq=matrix_solve_ls matmul matrix_transpose norm qr set_diag=matrix_set_diag
            solve=matrix_solve svd tensor_diag=diag tensor_diag_part=diag_part tensordot trace
            transpose=matrix_transpose triangular_solve=matrix_triangular_solve
        """,
        "tenfold.ops.linalg": "adjoint logdet matrix_rank matvec normalize pinv",
        "tenfold.ops.linear_operator": "LinearOperatorLowerTriangular",
        "tenfold.ops.nn_norm": "l2_normalize",
        "tenfold.ops.linalg_functions": "expm=matrix_exponential tridiagonal_matmul tridiagonal_solve",
        "tenfold.ops.generated_ops": "logm=matrix_logarithm lu slogdet=log_matrix_determinant sqrtm=matrix_square_root",
    },
    "lookup": {
        "tenfold.ops.lookup": """
            KeyValueTensorInitializer StaticHashTable StaticVocabularyTable TextFileIndex
            TextFileInitializer
        """,
    },
    "manip": {
        "tenfold": """
            batch_to_space_nd gather_nd reshape reverse roll scatter_nd space_to_batch_nd tile
        """,
    },
    "math": {
        "tenfold": """
            abs accumulate_n acos acosh add add_n angle argmax argmin asin asinh atan atan2 atanh
            betainc bincount ceil confusion_matrix conj cos cosh count_nonzero cumprod cumsum digamma
            divide divide_no_nan=div_no_nan equal erf erfc exp expm1 floor floordiv floormod greater
            greater_equal igamma igammac imag invert_permutation is_finite is_inf is_nan
            is_non_decreasing is_strictly_increasing lbeta less less_equal lgamma log log1p log_sigmoid
            logical_and logical_not logical_or logical_xor maximum minimum mod=floormod multiply
            negative not_equal polygamma pow real reciprocal reduce_all reduce_any reduce_logsumexp
            reduce_max reduce_mean reduce_min reduce_prod reduce_sum rint round rsqrt scalar_mul
            segment_max segment_mean segment_min segment_prod segment_sum sigmoid sign sin sinh sqrt
            square squared_difference subtract tan tanh truediv unsorted_segment_max
            unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n
            unsorted_segment_sum zeta
        """,
        "tenfold.ops.math": "reduce_euclidean_norm reduce_std reduce_variance xlogy",
        "tenfold.ops.math_special": """
            bessel_i0 bessel_i1 cumulative_logsumexp multiply_no_nan polyval reciprocal_no_nan
        """,
        "tenfold.ops.nn": "in_top_k log_softmax softmax softplus softsign top_k zero_fraction",
        "tenfold.ops.nn_norm": "l2_normalize",
        "tenfold.ops.generated_ops": "bessel_i0e bessel_i1e nextafter=next_after xdivy",
    },
    "nn": {
        "": "rnn_cell=tenfold.ops.rnn_cell",
        "tenfold.ops.array_blocks": "depth_to_space space_to_batch space_to_depth",
        "tenfold.ops.candidate_sampling": """
            all_candidate_sampler compute_accidental_hits fixed_unigram_candidate_sampler
            learned_unigram_candidate_sampler log_uniform_candidate_sampler uniform_candidate_sampler
        """,
        "tenfold.ops.elementwise": "sigmoid tanh",
        "tenfold.ops.embedding": "embedding_lookup embedding_lookup_sparse safe_embedding_lookup_sparse",
        "tenfold.ops.embedding_groups": "group_embedding_lookup group_embedding_lookup_sparse",
        "tenfold.ops.generated_ops": """
            depthwise_conv2d_backprop_filter=depthwise_conv2d_native_backprop_filter
            depthwise_conv2d_backprop_input=depthwise_conv2d_native_backprop_input
            depthwise_conv2d_native depthwise_conv2d_native_backprop_filter
            depthwise_conv2d_native_backprop_input fractional_avg_pool fractional_max_pool
        """,
        "tenfold.ops.nn": """
            bias_add compute_average_loss crelu dropout elu in_top_k leaky_relu log_softmax relu relu6
            relu_layer scale_regularization_loss selu softmax softplus softsign swish top_k xw_plus_b
            zero_fraction
        """,
        "tenfold.ops.nn_conv": """
            atrous_conv2d atrous_conv2d_transpose conv1d conv1d_transpose conv2d conv2d_backprop_filter
            conv2d_backprop_input conv2d_transpose conv3d conv3d_backprop_filter
            conv3d_backprop_filter_v2=conv3d_backprop_filter conv3d_transpose conv_transpose convolution
            depthwise_conv2d separable_conv2d with_space_to_batch
        """,
        "tenfold.ops.nn_ctc": """
            collapse_repeated ctc_beam_search_decoder ctc_beam_search_decoder_v2 ctc_greedy_decoder ctc_loss
            ctc_loss_v2 ctc_unique_labels
        """,
        "tenfold.ops.nn_losses": """
            l2_loss log_poisson_loss sigmoid_cross_entropy_with_logits softmax_cross_entropy_with_logits
            softmax_cross_entropy_with_logits_v2 sparse_softmax_cross_entropy_with_logits
            weighted_cross_entropy_with_logits
        """,
        "tenfold.ops.nn_norm": """
            batch_norm_with_global_normalization batch_normalization fused_batch_norm l2_normalize
            local_response_normalization lrn moments normalize_moments sufficient_statistics
            weighted_moments
        """,
        "tenfold.ops.nn_pool": """
            avg_pool avg_pool1d avg_pool2d avg_pool3d avg_pool_v2 dilation2d erosion2d max_pool
            max_pool1d max_pool2d max_pool3d max_pool_v2 max_pool_with_argmax pool
        """,
        "tenfold.ops.rnn": "bidirectional_dynamic_rnn dynamic_rnn raw_rnn",
        "tenfold.ops.rnn_static": "static_bidirectional_rnn static_rnn static_state_saving_rnn",
        "tenfold.ops.sampled_losses": "nce_loss sampled_softmax_loss",
    },
    "quantization": {
        "tenfold": """
            fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient
            fake_quant_with_min_max_vars fake_quant_with_min_max_vars_gradient
            fake_quant_with_min_max_vars_per_channel fake_quant_with_min_max_vars_per_channel_gradient
        """,
        "tenfold.ops.array_quantize": "quantize_and_dequantize",
    },
    "queue": {
        "tenfold": """
            FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue
        """,
    },
    "random": {
        "tenfold": """
            gamma=random_gamma get_seed multinomial normal=random_normal poisson=random_poisson
            set_random_seed shuffle=random_shuffle truncated_normal uniform=random_uniform
        """,
        "tenfold.ops.random": """
            all_candidate_sampler fixed_unigram_candidate_sampler learned_unigram_candidate_sampler
            categorical log_uniform_candidate_sampler uniform_candidate_sampler
        """,
        "tenfold.ops.random_stateless": """
            stateless_categorical stateless_multinomial
            stateless_normal=stateless_random_normal stateless_truncated_normal
            stateless_uniform=stateless_random_uniform
        """,
    },
    "signal": {
        "tenfold": """
            fft fft2d fft3d ifft ifft2d ifft3d
        """,
        "tenfold.ops.spectral": "irfft irfft2d irfft3d rfft rfft2d rfft3d",
        "tenfold.ops.spectral_frames": "frame inverse_stft inverse_stft_window_fn overlap_and_add stft",
        "tenfold.ops.spectral_scales": """
            dct fftshift hamming_window hann_window idct ifftshift linear_to_mel_weight_matrix
            mfccs_from_log_mel_spectrograms
        """,
    },
    "spectral": {
        "tenfold": """
            fft fft2d fft3d ifft ifft2d ifft3d
        """,
        "tenfold.ops.spectral": "irfft irfft2d irfft3d rfft rfft2d rfft3d",
        "tenfold.ops.spectral_scales": "dct idct",
    },
    "strings": {
        "tenfold": """
            as_string join=string_join reduce_join regex_replace strip=string_strip
            to_hash_bucket=string_to_hash_bucket to_hash_bucket_fast=string_to_hash_bucket_fast
            to_hash_bucket_strong=string_to_hash_bucket_strong to_number=string_to_number
        """,
        "tenfold.ops.generated_ops": "unicode_transcode unsorted_segment_join",
        "tenfold.ops.string_split": "split",
        "tenfold.ops.string": "format length lower regex_full_match substr upper",
    },
    "version": {
        "tenfold": """
            COMPILER_VERSION GIT_VERSION GRAPH_DEF_VERSION GRAPH_DEF_VERSION_MIN_CONSUMER
            GRAPH_DEF_VERSION_MIN_PRODUCER VERSION
        """,
    },
}
#: Every namespace of the table.
NAMES = tuple(_TABLE)


class Namespace(LazyModule):
    """A namespace of the table; each name is loaded at its first use."""

    def __init__(self, name: str) -> None:
        super().__init__(f"tenfold.{name}", f"The namespace `tf.{name}`; see tenfold/namespaces.py.")
        self._home: dict[str, tuple[str, str]] = {}
        for module, names in _TABLE[name].items():
            for row in names.split():
                public, _, attribute = row.partition("=")
                self._home[public] = (module, attribute or public)

    def __getattr__(self, name: str) -> Any:
        home = {} if name == "_home" else self._home
        if name not in home:
            from difflib import get_close_matches

            from tenfold.left_out import hint

            near = get_close_matches(name, home, n=2)
            why = hint(f"{self.__name__.partition('.')[2]}.{name}") or (
                f"; did you mean {' or '.join(near)}?" if near else ""
            )
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}{why}")
        module, attribute = home[name]
        value = getattr(import_module(module), attribute) if module else import_module(attribute)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted(self._home)


_made: dict[str, Namespace] = {}


def namespace(name: str) -> Namespace:
    """The namespace `tf.<name>`, the same object each time."""
    return _made[name] if name in _made else _made.setdefault(name, Namespace(name))
