"""slim's networks for images: AlexNet, OverFeat, VGG, Inception 1 to 3, ResNet 1 and 2, with checkpoints' names.

Each module is loaded at its first use.
"""

from tenfold.contrib.lazy import lazy_names

_NETS = "alexnet inception overfeat resnet_utils resnet_v1 resnet_v2 vgg"

__getattr__, __dir__ = lazy_names(__name__, {"": " ".join(f"{name}={__name__}.{name}" for name in _NETS.split())})
