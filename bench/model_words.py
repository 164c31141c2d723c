"""The models of models.py in a job file's words, as Keras has them: a list of layers, `inputs:` where a layer does not read the one
before it. Each function gives (layers, data): data says what is fed, as {name: (shape, number of classes or None)}, the label last."""
CLASSES = 10


def conv(filters, size=1, name=None, **words):
    return {"Conv2D": {"filters": filters, "kernel_size": size, **({"name": name} if name else {}), **words}}


def normal(epsilon=1e-3, **words):
    return {"BatchNormalization": {"epsilon": epsilon, **words}}


def head():
    return {"Dense": {"units": CLASSES, "activation": "softmax"}}


def pictures(size):
    return {"x": ([size, size, 3], None), "label": ([], CLASSES)}


def mlp():
    return [{"Dense": {"units": 64, "activation": "relu"}}, {"Dense": {"units": 1, "activation": "sigmoid"}}], {"x": ([100], None), "label": ([], 2)}


def cnn():
    layers = []
    for filters in (32, 64):
        layers += [conv(filters, 3, activation="relu"), {"MaxPooling2D": 2}]
    return layers + ["Flatten", {"Dense": {"units": 128, "activation": "relu"}}, head()], pictures(64)


def lstm():
    return [{"LSTM": 128}, head()], {"x": ([100, 64], None), "label": ([], CLASSES)}


def mobilenet_v2():
    relu, same = {"ReLU": {"max_value": 6}}, {"padding": "same", "use_bias": False}
    batch = normal(momentum=0.999)
    layers = [conv(32, 3, strides=2, **same), batch, relu]
    before, last = 32, None  # filters so far; what a block may add itself to
    for times, filters, repeats, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for k in range(repeats):
            step = stride if k == 0 else 1
            if times > 1:
                layers += [conv(times * before, **same), batch, relu]
            if step == 2:
                layers.append({"ZeroPadding2D": {"padding": [[0, 1], [0, 1]]}})
            layers.append({"DepthwiseConv2D": {"kernel_size": 3, "strides": step, "use_bias": False, "padding": "valid" if step == 2 else "same"}})
            name = f"out{len(layers)}"
            layers += [batch, relu, conv(filters, **same), normal(momentum=0.999, name=name)]
            if step == 1 and before == filters:
                layers.append({"Add": {"inputs": [last, name], "name": f"{name}_add"}})
                name += "_add"
            before, last = filters, name
    return layers + [conv(1280, use_bias=False), batch, relu, "GlobalAveragePooling2D", head()], pictures(224)


def resnet50():
    batch = normal(1.001e-5)
    layers = [{"ZeroPadding2D": 3}, conv(64, 7, strides=2), batch, "ReLU", {"ZeroPadding2D": 1}, {"MaxPooling2D": {"pool_size": 3, "strides": 2, "name": "stem"}}]
    last = "stem"
    for stage, (filters, repeats) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for k in range(repeats):
            name, step = f"s{stage}b{k}", 2 if stage and k == 0 else 1
            short = last
            if k == 0:
                short = name + "_short"
                layers += [conv(4 * filters, strides=step, inputs=last), normal(1.001e-5, name=short)]
            layers += [conv(filters, strides=step, inputs=last), batch, "ReLU", conv(filters, 3, padding="same"), batch, "ReLU",
                       conv(4 * filters), normal(1.001e-5, name=name), {"Add": {"inputs": [short, name]}}, {"ReLU": {"name": name + "_out"}}]
            last = name + "_out"
    return layers + ["GlobalAveragePooling2D", head()], pictures(224)


def unet(size=128, least=32):
    """Four times down and up; a mask of two kinds."""
    layers, kept = [], []

    def twice(filters, name):
        layers.extend([conv(filters, 3, padding="same", activation="relu"), conv(filters, 3, padding="same", activation="relu", name=name)])
    for k in range(4):
        twice(least << k, f"down{k}")
        layers.append({"MaxPooling2D": 2})
        kept.append(f"down{k}")
    twice(least << 4, "middle")
    for k in reversed(range(4)):
        layers.append({"Conv2DTranspose": {"filters": least << k, "kernel_size": 2, "strides": 2, "name": f"up{k}"}})
        layers.append({"Concatenate": {"inputs": [kept.pop(), f"up{k}"]}})
        twice(least << k, f"joined{k}")
    return layers + [conv(2, activation="softmax")], {"x": ([size, size, 3], None), "label": ([size, size], 2)}


def gpt2(blocks=12, width=768, heads=12, words=50257, length=1024):
    layers = [{"Input": {"shape": [length], "dtype": "int32", "name": "tokens"}}, {"Input": {"shape": [length], "dtype": "int32", "name": "places"}},
              {"ReversibleEmbedding": {"input_dim": words, "output_dim": width, "name": "words", "inputs": "tokens"}},
              {"Embedding": {"input_dim": length, "output_dim": width, "name": "positions", "inputs": "places"}},
              {"Add": {"inputs": ["words", "positions"], "name": "x0"}}]
    norm = {"LayerNormalization": {"epsilon": 1e-5}}
    for k in range(blocks):
        layers += [norm, {"MultiHeadAttention": {"num_heads": heads, "key_dim": width // heads, "use_causal_mask": True, "name": f"attention{k}"}},
                   {"Add": {"inputs": [f"x{k}", f"attention{k}"], "name": f"y{k}"}}, norm, {"Dense": {"units": 4 * width}},
                   {"Activation": "gelu"}, {"Dense": {"units": width, "name": f"dense{k}"}},
                   {"Add": {"inputs": [f"y{k}", f"dense{k}"], "name": f"x{k + 1}"}}]
    layers += [norm, {"words": {"reverse": True, "name": "scores", "inputs": "norm"}}]
    layers[-2] = {"LayerNormalization": {"epsilon": 1e-5, "name": "norm"}}
    return layers, {"tokens": ([length], words), "places": ([length], length), "label": ([length], words)}


MODELS = {f.__name__: f for f in (mlp, cnn, lstm, mobilenet_v2, resnet50, unet, gpt2)}
LOSSES = {"mlp": "binary_crossentropy", "gpt2": {"SparseCategoricalCrossentropy": {"from_logits": True}}}
