"""LeftOut: what stands for a part of `tf.contrib` that Tenfold leaves out, once a program has imported it.

TensorFlow has the part, so importing it must not end a program that never uses it; as_tensorflow.py hands one out for
each path that `tenfold.contrib` has a reason for. Any use of it is answered with the reason. Decision 0163.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn


class LeftOut(ModuleType):
    """A module, a function or a class that is not there: reading a name of it, calling it, deriving from it and asking
    for its instances raise AttributeError with `why`.
    """

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self.__path__: list[str] = []  # `from tensorflow.contrib.gan.python import train` imports what is below it
        self.left_out = why

    def _refuse(self) -> NoReturn:
        raise AttributeError(self.left_out)

    def __getattr__(self, name: str) -> Any:
        self._refuse()

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self._refuse()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        self._refuse()

    def __instancecheck__(self, instance: Any) -> bool:
        self._refuse()


#: Layers of Keras, and functions of them, that are not here. Libraries of layers import many and use few.
_NAMES = """
    AbstractRNNCell ActivityRegularization AdditiveAttention AlphaDropout Attention AveragePooling1D
    AveragePooling2D AveragePooling3D AvgPool1D AvgPool2D AvgPool3D Bidirectional Conv1D Conv2D Conv2DTranspose
    Conv3D Conv3DTranspose ConvLSTM2D Convolution1D Convolution2D Convolution2DTranspose Convolution3D
    Convolution3DTranspose Cropping1D Cropping2D Cropping3D CuDNNGRU CuDNNLSTM DenseFeatures DepthwiseConv2D Dot
    ELU GRU GRUCell GaussianDropout GaussianNoise GlobalAveragePooling1D GlobalAveragePooling2D
    GlobalAveragePooling3D GlobalAvgPool1D GlobalAvgPool2D GlobalAvgPool3D GlobalMaxPool1D GlobalMaxPool2D
    GlobalMaxPool3D GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D InputLayer LSTM LSTMCell LeakyReLU
    LocallyConnected1D LocallyConnected2D Masking MaxPool1D MaxPool2D MaxPool3D MaxPooling1D MaxPooling2D
    MaxPooling3D PReLU Permute RNN ReLU RepeatVector SeparableConv1D SeparableConv2D SeparableConvolution1D
    SeparableConvolution2D SimpleRNN SimpleRNNCell Softmax SpatialDropout1D SpatialDropout2D SpatialDropout3D
    StackedRNNCells ThresholdedReLU TimeDistributed UpSampling1D UpSampling2D UpSampling3D Wrapper ZeroPadding1D
    ZeroPadding2D ZeroPadding3D
    average dot maximum minimum multiply subtract
"""
LAYERS_OF_KERAS = frozenset(_NAMES.split())
