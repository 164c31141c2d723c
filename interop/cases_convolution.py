"""Convolutions and pooling: each layer between one that it sends gradients to and the classifier."""
import numpy as np
import keras
from keras import layers

LINE, PICTURE, VOLUME = (17, 6), (13, 11, 6), (7, 8, 6, 4)
# TensorFlow's own gradient of max pooling over three axes (TF_ENABLE_ONEDNN_OPTS=0) takes cells within 1e-5 of the
# maximum for maxima too: few windows, numbers of our own, and cells a thousand times as far apart, so that none is that close.
SMALL = (3, 4, 5, 2)
APART, BACK = ("Rescaling", dict(scale=1000.0)), ("Rescaling", dict(scale=0.001))
CASES = [
    ("Conv2D, dilation 2, same", PICTURE, [("Conv2D", dict(filters=5, kernel_size=3, dilation_rate=2, padding="same"))]),
    ("Conv2D, dilation (2, 3), valid", PICTURE, [("Conv2D", dict(filters=5, kernel_size=[3, 2], dilation_rate=[2, 3]))]),
    ("Conv2D, 3 groups, stride 2", PICTURE, [("Conv2D", dict(filters=9, kernel_size=3, groups=3, strides=2, padding="same", activation="relu"))]),
    ("Conv2D, 1x1 stride 2, no bias", PICTURE, [("Conv2D", dict(filters=8, kernel_size=1, strides=2, use_bias=False))]),
    ("DepthwiseConv2D, 3x3 same", PICTURE, [("DepthwiseConv2D", dict(kernel_size=3, padding="same", activation="relu"))]),
    ("DepthwiseConv2D, 3x3 stride 2, no bias", PICTURE, [("DepthwiseConv2D", dict(kernel_size=3, strides=2, padding="same", use_bias=False))]),
    ("DepthwiseConv2D, 5x5, multiplier 3", PICTURE, [("DepthwiseConv2D", dict(kernel_size=5, depth_multiplier=3))]),
    ("DepthwiseConv2D, dilation 2", PICTURE, [("DepthwiseConv2D", dict(kernel_size=3, dilation_rate=2, padding="same"))]),
    ("SeparableConv2D", PICTURE, [("SeparableConv2D", dict(filters=7, kernel_size=3, depth_multiplier=2, strides=2, padding="same", activation="relu"))]),
    ("Conv1D, causal, dilation 3", LINE, [("Conv1D", dict(filters=5, kernel_size=3, padding="causal", dilation_rate=3))]),
    ("Conv1D, stride 2, groups", LINE, [("Conv1D", dict(filters=4, kernel_size=4, strides=2, padding="same", groups=2, activation="relu"))]),
    ("DepthwiseConv1D", LINE, [("DepthwiseConv1D", dict(kernel_size=3, depth_multiplier=2, strides=2, padding="same"))]),
    ("SeparableConv1D", LINE, [("SeparableConv1D", dict(filters=5, kernel_size=3, padding="same"))]),
    ("Conv3D", VOLUME, [("Conv3D", dict(filters=5, kernel_size=[2, 3, 3], strides=[1, 2, 1], padding="same", activation="relu"))]),
    ("Conv3D, dilation 2", VOLUME, [("Conv3D", dict(filters=3, kernel_size=2, dilation_rate=2))]),
    ("Conv2DTranspose, stride 2 same", PICTURE, [("Conv2DTranspose", dict(filters=5, kernel_size=3, strides=2, padding="same", activation="relu"))]),
    ("Conv2DTranspose, kernel 2 stride 2", PICTURE, [("Conv2DTranspose", dict(filters=5, kernel_size=2, strides=2))]),
    ("Conv2DTranspose, kernel below stride", PICTURE, [("Conv2DTranspose", dict(filters=3, kernel_size=2, strides=3))]),
    ("Conv2DTranspose, output_padding", PICTURE, [("Conv2DTranspose", dict(filters=4, kernel_size=3, strides=2, padding="same", output_padding=1, use_bias=False))]),
    ("Conv2DTranspose, valid, output_padding (1, 0)", PICTURE, [("Conv2DTranspose", dict(filters=4, kernel_size=[4, 3], strides=[3, 2], output_padding=[1, 0]))]),
    ("Conv2DTranspose, stride 1 same", PICTURE, [("Conv2DTranspose", dict(filters=4, kernel_size=4, padding="same"))]),
    ("Conv1DTranspose", LINE, [("Conv1DTranspose", dict(filters=5, kernel_size=4, strides=3, padding="same"))]),
    ("Conv3DTranspose", SMALL, [("Conv3DTranspose", dict(filters=3, kernel_size=3, strides=2, padding="same"))]),
    ("MaxPooling1D", LINE, [("MaxPooling1D", dict(pool_size=3, strides=2, padding="same"))]),
    ("MaxPooling2D, 3x3 stride 2 same", PICTURE, [("MaxPooling2D", dict(pool_size=3, strides=2, padding="same"))]),
    ("MaxPooling3D", SMALL, [APART, ("MaxPooling3D", dict(pool_size=[2, 3, 2], strides=2, padding="same")), BACK]),
    ("AveragePooling1D", LINE, [("AveragePooling1D", dict(pool_size=3, strides=2, padding="same"))]),
    ("AveragePooling2D, same", PICTURE, [("AveragePooling2D", dict(pool_size=3, strides=2, padding="same"))]),
    ("AveragePooling2D, valid", PICTURE, [("AveragePooling2D", dict(pool_size=[2, 3]))]),
    ("AveragePooling3D", VOLUME, [("AveragePooling3D", dict(pool_size=2, padding="same"))]),
    ("GlobalAveragePooling1D", LINE, [("GlobalAveragePooling1D", {})]),
    ("GlobalAveragePooling2D", PICTURE, [("GlobalAveragePooling2D", {})]),
    ("GlobalAveragePooling2D, keepdims", PICTURE, [("GlobalAveragePooling2D", dict(keepdims=True))]),
    ("GlobalAveragePooling3D", SMALL, [("GlobalAveragePooling3D", {})]),  # of VOLUME Keras adds 4,032 rows of two signs one by one: its gradient
    # of the convolution's bias is 3e-5 off one in float64, where ours is 2e-6 off
    ("GlobalMaxPooling1D", LINE, [("GlobalMaxPooling1D", {})]),
    ("GlobalMaxPooling2D", PICTURE, [("GlobalMaxPooling2D", {})]),
    ("GlobalMaxPooling3D, keepdims", SMALL, [APART, ("GlobalMaxPooling3D", dict(keepdims=True)), BACK]),
    ("AdaptiveAveragePooling1D", LINE, [("AdaptiveAveragePooling1D", dict(output_size=5))]),
    ("AdaptiveAveragePooling2D", PICTURE, [("AdaptiveAveragePooling2D", dict(output_size=[4, 3]))]),
    ("AdaptiveMaxPooling2D", PICTURE, [("AdaptiveMaxPooling2D", dict(output_size=[5, 11]))]),
    ("AdaptiveAveragePooling3D", VOLUME, [("AdaptiveAveragePooling3D", dict(output_size=3))]),
    ("AdaptiveMaxPooling3D", SMALL, [APART, ("AdaptiveMaxPooling3D", dict(output_size=[2, 3, 5])), BACK]),
]
FIRST = {2: "Conv1D", 3: "Conv2D", 4: "Conv3D"}


def keras_layer(name, words):
    return getattr(layers, name)(**{k: tuple(v) if isinstance(v, list) else v for k, v in words.items()})


def cases(both, compare, seeded, images, _):
    rng = np.random.default_rng(7)
    for what, shape, tested in CASES:
        x, y = rng.random((12, *shape), dtype=np.float32), rng.integers(0, 4, 12).astype(np.int32)
        first = (FIRST[len(shape)], dict(filters=shape[-1], kernel_size=1))
        specs = [first, *tested, ("Flatten", {}), ("Dense", dict(units=4, activation="softmax"))]
        both(what, seeded(lambda: keras.Sequential([layers.Input(shape)] + [keras_layer(*spec) for spec in specs])),
             [{name: words} if words else name for name, words in specs], x, y, "sparse_categorical_crossentropy", 12, 1e-5)
