"""The listing in docs/pipelines.md finds the best span, with every family's model and tokenizer."""

import re
from pathlib import Path

import pytest
import torch
from tiny_families import FAMILIES, config_of, model_class, tokenizer_of

PAGE = Path(__file__).parents[2] / "docs" / "pipelines.md"
QUESTION, TEXT = "who sat ?", "the cat sat on the mat in a film ."


@pytest.mark.parametrize("family", FAMILIES)
def test_the_best_span_of_the_text_is_found(family, capsys):
    (code,) = (
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL) if "triu" in block
    )
    code = code[code.index("inputs = ") :]
    model, tokenizer = model_class(family, "ForQuestionAnswering")(config_of(family)).eval(), tokenizer_of(family)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.5)
    names = {"model": model, "tokenizer": tokenizer, "question": QUESTION, "text": TEXT, "torch": torch}
    exec(code, names)
    offsets = tokenizer(QUESTION, TEXT, return_offsets_mapping=True)["offset_mapping"]
    types = tokenizer(QUESTION, TEXT)["token_type_ids"]
    tokens = [i for i, (start, end) in enumerate(offsets) if types[i] == 1 and end > start]
    start_logits, end_logits = names["outputs"].start_logits[0], names["outputs"].end_logits[0]
    spans = [(start, end) for start in tokens for end in tokens if start <= end < start + 16]
    start, end = max(spans, key=lambda span: float(start_logits[span[0]] + end_logits[span[1]]))
    assert (names["start"], names["end"]) == (start, end)
    assert capsys.readouterr().out == TEXT[offsets[start][0] : offsets[end][1]] + "\n"
