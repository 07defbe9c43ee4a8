# Written by `make stubs` from the table of tf.signal in namespaces.py.

from tenfold.ops.generated_ops import fft
from tenfold.ops.generated_ops import fft2d
from tenfold.ops.generated_ops import fft3d
from tenfold.ops.generated_ops import ifft
from tenfold.ops.generated_ops import ifft2d
from tenfold.ops.generated_ops import ifft3d
from tenfold.ops.spectral import irfft
from tenfold.ops.spectral import irfft2d
from tenfold.ops.spectral import irfft3d
from tenfold.ops.spectral import rfft
from tenfold.ops.spectral import rfft2d
from tenfold.ops.spectral import rfft3d
from tenfold.ops.spectral_frames import frame
from tenfold.ops.spectral_frames import inverse_stft
from tenfold.ops.spectral_frames import inverse_stft_window_fn
from tenfold.ops.spectral_frames import overlap_and_add
from tenfold.ops.spectral_frames import stft
from tenfold.ops.spectral_scales import dct
from tenfold.ops.spectral_scales import fftshift
from tenfold.ops.spectral_scales import hamming_window
from tenfold.ops.spectral_scales import hann_window
from tenfold.ops.spectral_scales import idct
from tenfold.ops.spectral_scales import ifftshift
from tenfold.ops.spectral_scales import linear_to_mel_weight_matrix
from tenfold.ops.spectral_scales import mfccs_from_log_mel_spectrograms

__all__ = [
    "dct",
    "fft",
    "fft2d",
    "fft3d",
    "fftshift",
    "frame",
    "hamming_window",
    "hann_window",
    "idct",
    "ifft",
    "ifft2d",
    "ifft3d",
    "ifftshift",
    "inverse_stft",
    "inverse_stft_window_fn",
    "irfft",
    "irfft2d",
    "irfft3d",
    "linear_to_mel_weight_matrix",
    "mfccs_from_log_mel_spectrograms",
    "overlap_and_add",
    "rfft",
    "rfft2d",
    "rfft3d",
    "stft",
]
