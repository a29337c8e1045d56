"""For a module that the source distribution lacks: it holds the values which `ConfigTester` gives to every field
that all configurations share, to see that none is dropped."""

config_common_kwargs = {
    "architectures": ["SomeModel"],
    "chunk_size_feed_forward": 3,
    "dtype": "float16",
    "id2label": {0: "negative", 1: "neutral", 2: "positive"},
    "is_encoder_decoder": True,
    "label2id": {"negative": 0, "neutral": 1, "positive": 2},
    "output_attentions": True,
    "output_hidden_states": True,
    "problem_type": "regression",
    "return_dict": False,
}
