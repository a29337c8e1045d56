"""The language model that a biLM has to beat: words by their frequency in the training text alone."""

import math
from collections import Counter
from pathlib import Path

from transformers import AutoTokenizer

from benchmarks.glue.results import RESULTS_FILE, read_json
from benchmarks.report.markdown import render_table
from benchmarks.report.tables import Column, Table
from hf_lineage.pretraining.arguments import parse_arguments
from hf_lineage.pretraining.corpus import Corpus
from hf_lineage.pretraining.elmo import ElmoObjective
from hf_lineage.pretraining.objective import FAMILIES, objective_class


def unigram_perplexity(counts: Counter[int], held_out: Counter[int], vocab_size: int) -> float:
    """Perplexity of held-out words under the frequencies of a text, each word counted once more than it is there.

    Args:
        counts: Of each word's id, how often it is in the text.
        held_out: Likewise in the held-out text; at least one word.
        vocab_size: Words that there are.
    """
    total, predicted = counts.total() + vocab_size, held_out.total()
    log_likelihood = sum(number * math.log((counts[word] + 1) / total) for word, number in held_out.items())
    return math.exp(-log_likelihood / predicted)


def compare_with_unigram(config: str | Path) -> str:
    """Tables the held-out perplexity of a pretraining run beside that of a unigram of its training text.

    Args:
        config: The YAML or JSON file that `hf_lineage.pretraining` was run with; what is held out is drawn again.

    Raises:
        ValueError: If it is not of ELMo, holds nothing out, or its run is not finished.
    """
    settings, own = parse_arguments(
        ["--config", str(config)], list(FAMILIES), lambda family: objective_class(family).arguments_class
    )
    if settings.family != "elmo":
        raise ValueError(f"{config}: family must be elmo, got {settings.family}")
    results = Path(settings.output_dir, RESULTS_FILE)
    if not results.is_file():
        raise ValueError(f"{config}: {results} is missing, the run is not finished")
    tokenizer = AutoTokenizer.from_pretrained(settings.tokenizer_name_or_path)
    objective = ElmoObjective(settings, own, tokenizer)
    corpus = objective.validation_corpus()
    if corpus is None:
        raise ValueError(f"{config}: give validation_share or validation_files, nothing is held out")
    counts = _word_counts(objective.train_corpus(), tokenizer)
    unigram = unigram_perplexity(counts, _word_counts(corpus, tokenizer), len(tokenizer.word_vocabulary))
    rows = []
    for reading, measured in read_json(results)["validation"]["last"]["validation"].items():
        forward, backward = measured["forward_perplexity"], measured["backward_perplexity"]
        perplexities = forward, backward, measured["unigram_perplexity"], unigram
        ratio = unigram / max(forward, backward)
        rows.append((reading, *(f"{perplexity:.1f}" for perplexity in perplexities), f"{ratio:.2f}"))
    return render_table(_table(rows, counts.total()))


def _table(rows: list[tuple[str, ...]], num_words: int) -> Table:
    headings = (
        "forward",
        "backward",
        "unigram of the held-out text",
        "unigram of the training text",
        "its ratio to the worse direction",
    )
    return Table(
        title="Held-out perplexity",
        columns=(Column("reading"), *(Column(heading, True) for heading in headings)),
        rows=tuple(rows),
        notes=(
            f"The unigram of the training text has the frequencies of its {num_words:,} words and ends of sentences, "
            "each word of the vocabulary counted once more. That of the held-out text knows what it is to predict: no "
            "unigram does better.",
        ),
    )


def _word_counts(corpus: Corpus, tokenizer) -> Counter[int]:
    """What the forward direction predicts in a corpus: words and ends of sentences."""
    boundaries = {tokenizer.bos_token, tokenizer.eos_token}
    counts: Counter[int] = Counter()
    for document in corpus:
        for segment in document.segments:
            words = [word for word in tokenizer.tokenize(segment) if word not in boundaries]
            if words:
                counts.update(tokenizer.convert_tokens_to_word_ids(words))
                counts[tokenizer.eos_token_id] += 1
    return counts


__all__ = ["compare_with_unigram", "unigram_perplexity"]
