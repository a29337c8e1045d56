"""What model cards say of the XLNet-style family."""

from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from ..hub.family_card import FamilyCard

_XLNET = """@inproceedings{yang-etal-2019-xlnet,
    title = "{XLNet}: Generalized Autoregressive Pretraining for Language Understanding",
    author = "Yang, Zhilin and Dai, Zihang and Yang, Yiming and Carbonell, Jaime and Salakhutdinov, Ruslan and
              Le, Quoc V.",
    booktitle = "Advances in Neural Information Processing Systems 32",
    year = "2019",
    url = "https://arxiv.org/abs/1906.08237",
}"""
_SCORE = """
import hf_lineage  # makes the model type known to transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

path = {path}
tokenizer = AutoTokenizer.from_pretrained(path)
model = AutoModelForCausalLM.from_pretrained(path)
scores = model.score(["It was the film.", "Film the was it."], tokenizer)  # log-probabilities, from left to right
"""


def _facts(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase | None) -> dict[str, str]:
    memory = f"{config.mem_len} tokens at most" if config.mem_len else "all tokens"
    return {
        "layers": f"{config.n_layer} of width {config.d_model}, {config.n_head} heads, {config.d_inner} between the "
        "linear layers, post-LN",
        "embeddings": f"{config.vocab_size:,} x {config.d_model}",
        "positions": "relative" + (f", up to a distance of {config.clamp_len}" if config.clamp_len > 0 else ""),
        "attention": "both directions" if config.attn_type == "bi" else "only what is before",
        "memory": f"{memory}, where a call asks for it",
    }


CARD = FamilyCard(
    title="XLNet-style",
    description="a permutation language model with two streams of attention and a memory",
    tag="xlnet",
    pretraining_task="text-generation",
    facts=_facts,
    citations=lambda config: [_XLNET],
    usage={"AutoModelForPreTraining": _SCORE},
)

__all__ = ["CARD"]
