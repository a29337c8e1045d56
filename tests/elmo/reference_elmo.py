"""ELMo once more, word by word and step by step in NumPy, from the papers' equations and bilm-tf's weight layout.

It reads the arrays of the original HDF5 format and shares no code with the package.
"""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def clip(x, bound):
    return np.clip(x, -bound, bound) if bound else x


def character_row(word, length):
    if word in ("<S>", "</S>"):
        body = [256 if word == "<S>" else 257]
    else:
        body = list(word.encode("utf-8", "ignore"))[: length - 2]
    row = [258, *body, 259]
    return row + [260] * (length - len(row))


def token_vector(arrays, options, word):
    characters = options["char_cnn"]
    row = character_row(word, characters["max_characters_per_token"])
    embedded = arrays["char_embed"][row]
    pooled = []
    for number, (width, _) in enumerate(characters["filters"]):
        weight, bias = arrays[f"CNN/W_cnn_{number}"][0], arrays[f"CNN/b_cnn_{number}"]
        windows = [
            np.einsum("wi,wio->o", embedded[start : start + width], weight) for start in range(len(row) - width + 1)
        ]
        activation = np.tanh if characters["activation"] == "tanh" else lambda x: np.maximum(x, 0)
        pooled.append(activation(np.max(windows, axis=0) + bias))
    x = np.concatenate(pooled)
    for number in range(characters.get("n_highway", 0)):
        high = f"CNN_high_{number}"
        carry = sigmoid(x @ arrays[f"{high}/W_carry"] + arrays[f"{high}/b_carry"])
        transform = np.maximum(x @ arrays[f"{high}/W_transform"] + arrays[f"{high}/b_transform"], 0)
        x = carry * transform + (1 - carry) * x
    if "CNN_proj/W_proj" in arrays:
        x = x @ arrays["CNN_proj/W_proj"] + arrays["CNN_proj/b_proj"]
    return x


def lstm(arrays, options, direction, layer, inputs, state=None):
    cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
    lstm_options = options["lstm"]
    size, projected = lstm_options["dim"], lstm_options["projection_dim"]
    h, c = (np.zeros(projected), np.zeros(size)) if state is None else state
    outputs = []
    for x in inputs:
        i, j, f, o = np.split(np.concatenate([x, h]) @ arrays[f"{cell}/W_0"] + arrays[f"{cell}/B"], 4)
        c = clip(sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j), lstm_options.get("cell_clip"))
        h = sigmoid(o) * np.tanh(c)
        if f"{cell}/W_P_0" in arrays:
            h = clip(h @ arrays[f"{cell}/W_P_0"], lstm_options.get("proj_clip"))
        outputs.append(h)
    return np.array(outputs), (h, c)


def layers(arrays, options, words):
    """The layers `(n_layers + 1, len(words) + 2, 2 * projection)` of one sentence, boundaries included."""
    vectors = np.array([token_vector(arrays, options, word) for word in ["<S>", *words, "</S>"]])
    stacks = []
    for direction in (0, 1):
        x = vectors if direction == 0 else vectors[::-1]
        stack = [vectors]
        for layer in range(options["lstm"]["n_layers"]):
            y, _ = lstm(arrays, options, direction, layer, x)
            x = y + x if layer > 0 and options["lstm"].get("use_skip_connections") else y
            stack.append(x if direction == 0 else x[::-1])
        stacks.append(stack)
    return np.concatenate(stacks, axis=-1)


def random_arrays(options, seed=0):
    """Arrays of a random model in the original format."""
    random = np.random.default_rng(seed)

    def draw(*shape, scale=0.5):
        return (random.standard_normal(shape) * scale).astype(np.float32)

    characters, lstm_options = options["char_cnn"], options["lstm"]
    width, size = characters["embedding"]["dim"], sum(number for _, number in characters["filters"])
    cell_size, projected = lstm_options["dim"], lstm_options["projection_dim"]
    arrays = {"char_embed": draw(261, width, scale=1.0)}
    for number, (window, filters) in enumerate(characters["filters"]):
        arrays[f"CNN/W_cnn_{number}"] = draw(1, window, width, filters)
        arrays[f"CNN/b_cnn_{number}"] = draw(filters)
    for number in range(characters.get("n_highway", 0)):
        for part in ("carry", "transform"):
            arrays[f"CNN_high_{number}/W_{part}"] = draw(size, size)
            arrays[f"CNN_high_{number}/b_{part}"] = draw(size)
    if size != projected:
        arrays["CNN_proj/W_proj"] = draw(size, projected)
        arrays["CNN_proj/b_proj"] = draw(projected)
    for direction in (0, 1):
        for layer in range(lstm_options["n_layers"]):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            arrays[f"{cell}/W_0"] = draw(2 * projected, 4 * cell_size)
            arrays[f"{cell}/B"] = draw(4 * cell_size)
            if cell_size != projected:
                arrays[f"{cell}/W_P_0"] = draw(cell_size, projected)
    return arrays
