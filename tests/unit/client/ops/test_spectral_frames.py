"""Frames, short-time transforms and their inverse against NumPy; shapes that are not known; windows and scales."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf

SIGNAL = np.random.default_rng(0).standard_normal((2, 50)).astype(np.float32)


def test_frames_and_back() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32)
        frames = tf.signal.frame(fed, 16, 8)
        known = tf.signal.frame(SIGNAL, 16, 8, pad_end=True)
        joined = tf.signal.overlap_and_add(tf.signal.frame(SIGNAL, 5, 5), 5)
        found, sum_of_frames = session.run([frames, tf.signal.overlap_and_add(frames, 8)], {fed: SIGNAL})

        assert known.shape.as_list() == [2, 7, 16]
        assert np.array_equal(found, np.stack([SIGNAL[:, i : i + 16] for i in range(0, 35, 8)], axis=1))
        assert np.array_equal(sum_of_frames[:, 8:40], 2 * SIGNAL[:, 8:40])
        assert np.array_equal(session.run(joined), SIGNAL)


def test_transforms_are_numpys_and_can_be_undone() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        spectra = tf.signal.stft(SIGNAL, 16, 8)
        back = tf.signal.inverse_stft(spectra, 16, 8, window_fn=tf.signal.inverse_stft_window_fn(8))
        window, found, undone = session.run([tf.signal.hann_window(16), spectra, back])

    expected = np.fft.rfft(np.stack([SIGNAL[:, i : i + 16] for i in range(0, 35, 8)], axis=1) * window)
    assert np.allclose(window, 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16), atol=1e-6)
    assert np.allclose(found, expected, atol=1e-5)
    assert np.allclose(undone[:, 8:40], SIGNAL[:, 8:40], atol=1e-5)


def test_scales_and_what_they_refuse() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        weights, twice = session.run(
            [
                tf.signal.linear_to_mel_weight_matrix(10, 65),
                tf.signal.idct(tf.signal.dct(SIGNAL, norm="ortho"), norm="ortho"),
            ]
        )
        assert np.allclose(twice, SIGNAL, atol=1e-4)
        assert weights.shape == (65, 10)
        assert not weights[0].any()
        assert np.array_equal(session.run(tf.signal.fftshift(SIGNAL)), np.fft.fftshift(SIGNAL))
        assert np.array_equal(session.run(tf.signal.ifftshift(SIGNAL[:, :5], 1)), np.fft.ifftshift(SIGNAL[:, :5], 1))
        for refused in (
            lambda: tf.signal.dct(SIGNAL, type=4),
            lambda: tf.signal.dct(SIGNAL, type=1, norm="ortho"),
            lambda: tf.signal.linear_to_mel_weight_matrix(0),
            lambda: tf.signal.linear_to_mel_weight_matrix(upper_edge_hertz=9000.0),
            lambda: tf.signal.hann_window(3, dtype=tf.int32),
            lambda: tf.signal.overlap_and_add(SIGNAL, 1.5),
        ):
            with pytest.raises(ValueError, match=r".+"):
                refused()
