"""`tensorflow.examples.tutorials.mnist`: the digits of the first tutorials and their small net.

`input_data.py` reads the files of the data set, `mnist.py` is the net with two hidden layers.
"""

from tenfold.examples.tutorials.mnist import input_data, mnist

__all__ = ["input_data", "mnist"]
