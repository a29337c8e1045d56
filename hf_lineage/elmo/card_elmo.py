"""What model cards say of ELMo."""

from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from ..hub.family_card import FamilyCard

_ELMO = """@inproceedings{peters-etal-2018-deep,
    title = "Deep Contextualized Word Representations",
    author = "Peters, Matthew E. and Neumann, Mark and Iyyer, Mohit and Gardner, Matt and Clark, Christopher and
              Lee, Kenton and Zettlemoyer, Luke",
    booktitle = "Proceedings of NAACL-HLT 2018",
    year = "2018",
    url = "https://aclanthology.org/N18-1202",
}"""
_MANYLANGS = """@inproceedings{che-etal-2018-towards,
    title = "Towards Better {UD} Parsing: Deep Contextualized Word Embeddings, Ensemble, and Treebank Concatenation",
    author = "Che, Wanxiang and Liu, Yijia and Wang, Yuxuan and Zheng, Bo and Liu, Ting",
    booktitle = "Proceedings of the CoNLL 2018 Shared Task",
    year = "2018",
    url = "https://aclanthology.org/K18-2005",
}"""
_VECTORS = """
import hf_lineage  # makes the model type known to transformers
import torch
from transformers import AutoModel, AutoTokenizer

path = {path}
tokenizer = AutoTokenizer.from_pretrained(path)
model = AutoModel.from_pretrained(path)
sentences = [["A", "sentence", "."], ["Another", "one"]]
inputs = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
with torch.no_grad():
    outputs = model(**inputs, output_hidden_states=True)
outputs.last_hidden_state  # (2, 3, {hidden_size}): the mix of the layers
outputs.hidden_states  # {num_layers} layers of that shape, the context-free one first
"""
_SCORE = """
import hf_lineage  # makes the model type known to transformers
from transformers import AutoModelForPreTraining, AutoTokenizer

path = {path}
tokenizer = AutoTokenizer.from_pretrained(path)
model = AutoModelForPreTraining.from_pretrained(path)
scores = model.score("It was the film .", tokenizer)  # log-probabilities of each word, in both directions
model.top_words("It was the film .", 3, k=5, tokenizer=tokenizer)  # what it expects in place of "film"
"""
_REMARK = (
    "A sentence has the same vectors in every batch. The original programs carry the LSTMs' states from one batch to "
    "the next; `from_pretrained(path, stateful=True)` does so too."
)


def _facts(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase | None) -> dict[str, str]:
    facts = {
        "LSTMs": f"{config.num_hidden_layers} LSTM layers of 2 x {config.lstm_hidden_size}",
        "output": f"vectors of {config.hidden_size}, {config.num_hidden_layers + 1} layers and their mix",
        "characters": _characters(config, tokenizer),
    }
    if tokenizer is not None:
        words = len(tokenizer.input_words)
        facts["words of the input"] = f"{words:,} in the dictionary" if words else "none"
        facts["words of the softmax"] = (
            f"{config.vocab_size or 0:,} by the configuration, {len(tokenizer.word_vocabulary) or 'no'} words in the "
            "vocabulary"
        )
    return facts


def _characters(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase | None) -> str:
    if not config.char_embedding_size:
        return "not read"
    kind = "UTF-8 bytes"
    if config.char_vocabulary == "dictionary":
        # one of those that are known stands for all others
        known = "" if tokenizer is None else f"{len(tokenizer.input_characters) - 1:,} "
        kind = f"{known}Unicode characters of a dictionary"
    return (
        f"{kind}, {config.max_characters_per_token - 2} of a word at most; vectors of {config.char_embedding_size}, "
        f"{config.num_char_filters} filters, {config.num_highway_layers} highway layers"
    )


def _citations(config: PreTrainedConfig) -> list[str]:
    return [_ELMO, *([_MANYLANGS] if config.char_vocabulary == "dictionary" else [])]


CARD = FamilyCard(
    title="ELMo",
    description="a language model of characters and LSTMs in both directions",
    tag="elmo",
    pretraining_task="text-generation",
    facts=_facts,
    citations=_citations,
    usage={"AutoModel": _VECTORS, "AutoModelForPreTraining": _SCORE},
    remark=_REMARK,
)

__all__ = ["CARD"]
