"""`tf.contrib.signal`: frames, windows, spectrograms and mel scales, which are `tf.signal`'s. As TF 1.15's."""

from tenfold.contrib.lazy import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "tenfold.ops.spectral_frames": "frame inverse_stft inverse_stft_window_fn overlap_and_add stft",
        "tenfold.ops.spectral_scales": """
            hamming_window hann_window linear_to_mel_weight_matrix mfccs_from_log_mel_spectrograms
        """,
    },
)
