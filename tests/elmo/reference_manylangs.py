"""ELMoForManyLangs once more, token by token and step by step in NumPy, and folders in its published format.

It reads the arrays and dictionaries of the original files and shares no code with the package.
"""

import json

import numpy as np
import torch

OOV, PAD, BEGIN_WORD, END_WORD, BOS, EOS = "<oov>", "<pad>", "<bow>", "<eow>", "<bos>", "<eos>"


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def token_vector(embedder, configuration, chars, words, word):
    """One token's vector; `word` is cut already."""
    part = configuration["token_embedder"]
    features = []
    if part["word_dim"]:
        features.append(embedder["word_emb_layer.embedding.weight"][words.get(word, words[OOV])])
    if part["char_dim"]:
        body = [chars[word]] if word in (BOS, EOS) else [chars.get(character, chars[OOV]) for character in word]
        row = [chars[END_WORD], *body, chars[BEGIN_WORD]]  # the published code confuses the two
        row += [chars[PAD]] * (part["max_characters_per_token"] - len(row))
        embedded = embedder["char_emb_layer.embedding.weight"][row]
        pooled = []
        for number, (width, _) in enumerate(part["filters"]):
            weight, bias = embedder[f"convolutions.{number}.weight"], embedder[f"convolutions.{number}.bias"]
            windows = [
                np.einsum("wi,oiw->o", embedded[start : start + width], weight) + bias
                for start in range(len(row) - width + 1)
            ]
            highest = np.max(windows, axis=0)
            pooled.append(np.tanh(highest) if part["activation"] == "tanh" else np.maximum(highest, 0))
        x = np.concatenate(pooled)
        for number in range(part["n_highway"]):
            name = f"highways._layers.{number}"
            transformed, gate = np.split(embedder[f"{name}.weight"] @ x + embedder[f"{name}.bias"], 2)
            x = sigmoid(gate) * x + (1 - sigmoid(gate)) * np.maximum(transformed, 0)
        features.append(x)
    return embedder["projection.weight"] @ np.concatenate(features) + embedder["projection.bias"]


def lstm(encoder, options, name, inputs):
    h, c = np.zeros(options["projection_dim"]), np.zeros(options["dim"])
    outputs = []
    for x in inputs:
        gates = encoder[f"{name}.input_linearity.weight"] @ x
        gates = gates + encoder[f"{name}.state_linearity.weight"] @ h + encoder[f"{name}.state_linearity.bias"]
        i, f, g, o = np.split(gates, 4)
        c = np.clip(sigmoid(i) * np.tanh(g) + sigmoid(f) * c, -options["cell_clip"], options["cell_clip"])
        h = encoder[f"{name}.state_projection.weight"] @ (sigmoid(o) * np.tanh(c))
        h = np.clip(h, -options["proj_clip"], options["proj_clip"])
        outputs.append(h)
    return np.array(outputs)


def layers(embedder, encoder, configuration, chars, words, sentence):
    """The layers `(n_layers + 1, len(sentence), 2 * projection)` of one sentence, boundaries left out."""
    longest = configuration["token_embedder"]["max_characters_per_token"] - 2
    tokens = [BOS, *(word[:longest] for word in sentence), EOS]
    vectors = np.array([token_vector(embedder, configuration, chars, words, token) for token in tokens])
    options = configuration["encoder"]
    stacks = []
    for direction in ("forward", "backward"):
        x = vectors if direction == "forward" else vectors[::-1]
        stack = [vectors]
        for layer in range(options["n_layers"]):
            y = lstm(encoder, options, f"{direction}_layer_{layer}", x)
            x = y + x if layer > 0 else y
            stack.append(x if direction == "forward" else x[::-1])
        stacks.append(stack)
    return np.concatenate(stacks, axis=-1)[:, 1:-1]


def configuration(**token_embedder):
    """The published configuration with smaller sizes."""
    return {
        "encoder": {"name": "elmo", "projection_dim": 6, "cell_clip": 0.8, "proj_clip": 0.5, "dim": 10, "n_layers": 2},
        "token_embedder": {
            "name": "cnn",
            "activation": "relu",
            "filters": [[1, 4], [2, 5], [3, 6]],
            "n_highway": 2,
            "word_dim": 7,
            "char_dim": 5,
            "max_characters_per_token": 12,
            **token_embedder,
        },
        "classifier": {"name": "cnn_softmax", "max_characters_per_token": 12, "n_samples": 8192},
        "dropout": 0.1,
    }


def dictionaries(characters, words):
    chars = {entry: number for number, entry in enumerate([BOS, EOS, OOV, PAD, BEGIN_WORD, END_WORD, *characters])}
    return chars, {entry: number for number, entry in enumerate([OOV, BOS, EOS, PAD, *words])}


def random_weights(configuration, chars, words, seed=0):
    """Arrays of a random token embedder and a random encoder, under the names that torch gives them there."""
    random = np.random.default_rng(seed)

    def draw(*shape):
        return (random.standard_normal(shape) * 0.5).astype(np.float32)

    part, options = configuration["token_embedder"], configuration["encoder"]
    embedder, features = {}, 0
    if part["word_dim"]:
        embedder["word_emb_layer.embedding.weight"] = draw(len(words), part["word_dim"])
        features += part["word_dim"]
    if part["char_dim"]:
        embedder["char_emb_layer.embedding.weight"] = draw(len(chars), part["char_dim"])
        for number, (width, filters) in enumerate(part["filters"]):
            embedder[f"convolutions.{number}.weight"] = draw(filters, part["char_dim"], width)
            embedder[f"convolutions.{number}.bias"] = draw(filters)
        size = sum(filters for _, filters in part["filters"])
        for number in range(part["n_highway"]):
            embedder[f"highways._layers.{number}.weight"] = draw(2 * size, size)
            embedder[f"highways._layers.{number}.bias"] = draw(2 * size)
        features += size
    projection_size, size = options["projection_dim"], options["dim"]
    embedder["projection.weight"], embedder["projection.bias"] = draw(projection_size, features), draw(projection_size)
    encoder = {}
    for direction in ("forward", "backward"):
        for layer in range(options["n_layers"]):
            name = f"{direction}_layer_{layer}"
            encoder[f"{name}.input_linearity.weight"] = draw(4 * size, projection_size)
            encoder[f"{name}.state_linearity.weight"] = draw(4 * size, projection_size)
            encoder[f"{name}.state_linearity.bias"] = draw(4 * size)
            encoder[f"{name}.state_projection.weight"] = draw(projection_size, size)
    return embedder, encoder


def write_folder(folder, configuration, chars, words, embedder, encoder, legacy=True):
    """Writes `xx.model/` as published: pickles of torch before 1.6 and the configuration under its author's path."""
    folder.mkdir(parents=True)
    arguments = {
        "seed": 1,
        "gpu": 2,
        "config_path": "/users2/author/projects/elmo/configs/cnn_50_100_512_4096_sample.json",
        "word_embedding": None,
        "optimizer": "adam",
        "max_vocab_size": 150000,
    }
    (folder / "config.json").write_text(json.dumps(arguments), encoding="utf-8")
    (folder / "cnn_50_100_512_4096_sample.json").write_text(json.dumps(configuration), encoding="utf-8")
    for name, dictionary in (("char.dic", chars), ("word.dic", words)):
        if dictionary is not None:
            lines = "".join(f"{entry}\t{number}\n" for entry, number in dictionary.items())
            (folder / name).write_bytes(lines.encode("utf-8"))
    for name, arrays in (("token_embedder.pkl", embedder), ("encoder.pkl", encoder)):
        state = {key: torch.from_numpy(array) for key, array in arrays.items()}
        torch.save(state, folder / name, _use_new_zipfile_serialization=not legacy)
    return folder
