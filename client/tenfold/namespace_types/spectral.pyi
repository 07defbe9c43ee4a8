# Written by `make stubs` from the table of tf.spectral in namespaces.py.

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
from tenfold.ops.spectral_scales import dct
from tenfold.ops.spectral_scales import idct

__all__ = [
    "dct",
    "fft",
    "fft2d",
    "fft3d",
    "idct",
    "ifft",
    "ifft2d",
    "ifft3d",
    "irfft",
    "irfft2d",
    "irfft3d",
    "rfft",
    "rfft2d",
    "rfft3d",
]
