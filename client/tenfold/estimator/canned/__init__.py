"""The models that `tf.estimator` has ready: linear, dense, both together, a baseline; and the heads that they end with.

One module for each, with the names of TensorFlow 1.15's `estimator/canned`; loaded through `tenfold.estimator`.
"""
