"""The token classification pipeline, for models whose ids are rows of characters too."""

from transformers.pipelines.token_classification import AggregationStrategy, TokenClassificationPipeline

from .tokenization_elmo import ElmoTokenizer


class ElmoTokenClassificationPipeline(TokenClassificationPipeline):
    """transformers' token classification pipeline, which also reads the ids of `ElmoTokenizer`.

    With any other tokenizer it is the pipeline that it extends. With ELMo's, every token is a whole word with its
    place in the text, lists of words are taken (`is_split_into_words=True`), and the aggregation strategies `"first"`,
    `"average"` and `"max"`, which choose among the pieces of a word, give what `"simple"` gives.
    """

    @property
    def _reads_rows(self) -> bool:
        return isinstance(self.tokenizer, ElmoTokenizer)

    def _sanitize_parameters(self, aggregation_strategy=None, **kwargs):
        if self._reads_rows and aggregation_strategy is not None:
            if isinstance(aggregation_strategy, str):
                aggregation_strategy = AggregationStrategy(aggregation_strategy.lower())
            if aggregation_strategy != AggregationStrategy.NONE:
                aggregation_strategy = AggregationStrategy.SIMPLE
        return super()._sanitize_parameters(aggregation_strategy=aggregation_strategy, **kwargs)

    def preprocess(self, sentence, offset_mapping=None, **preprocess_params):
        """Encodes a text, or a list of words with `is_split_into_words=True`."""
        if not self._reads_rows:
            yield from super().preprocess(sentence, offset_mapping=offset_mapping, **preprocess_params)
            return
        is_split_into_words = preprocess_params.get("is_split_into_words", False)
        inputs = self.tokenizer(
            sentence,
            return_tensors="pt",
            truncation=True,
            return_special_tokens_mask=True,
            is_split_into_words=is_split_into_words,
        )
        spans = [None if word is None else (word.start, word.end) for word in inputs.words[0]]
        if is_split_into_words:
            delimiter = preprocess_params["delimiter"]
            spans = _spans_in_joined(sentence, inputs.word_ids(), delimiter)
            sentence = delimiter.join(sentence)
        yield {**inputs, "offset_mapping": [offset_mapping or spans], "sentence": sentence, "is_last": True}

    def gather_pre_entities(
        self,
        sentence,
        input_ids,
        scores,
        offset_mapping,
        special_tokens_mask,
        aggregation_strategy,
        word_ids=None,
        word_to_chars_map=None,
    ) -> list[dict]:
        """One entry for each word: its text, its place and its scores."""
        if not self._reads_rows:
            return super().gather_pre_entities(
                sentence,
                input_ids,
                scores,
                offset_mapping,
                special_tokens_mask,
                aggregation_strategy,
                word_ids=word_ids,
                word_to_chars_map=word_to_chars_map,
            )
        # the pipeline pads the scores in a batch, but not the spans
        padding = len(scores) - len(offset_mapping) if self.tokenizer.padding_side == "left" else 0
        return [
            {
                "word": sentence[span[0] : span[1]],
                "scores": scores[index],
                "start": span[0],
                "end": span[1],
                "index": index,
                "is_subword": False,
            }
            for index, span in enumerate(offset_mapping, padding)
            if span is not None and not special_tokens_mask[index]
        ]


def _spans_in_joined(words: list[str], word_ids: list[int | None], delimiter: str) -> list[tuple[int, int] | None]:
    starts, position = [], 0
    for word in words:
        starts.append(position)
        position += len(word) + len(delimiter)
    return [None if index is None else (starts[index], starts[index] + len(words[index])) for index in word_ids]


__all__ = ["ElmoTokenClassificationPipeline"]
