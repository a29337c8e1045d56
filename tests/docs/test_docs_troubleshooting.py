"""Every message that the page on troubleshooting quotes is one that the code has."""

import ast
import functools
import re
from pathlib import Path

import pytest
import transformers
from docs_pages import ROOT, blocks

PAGE = "docs/troubleshooting.md"
SOURCES = [
    *(path for folder in ("hf_lineage", "benchmarks", "tokenizer_training") for path in (ROOT / folder).rglob("*.py")),
    # those of transformers that come from not importing the package
    *Path(transformers.__file__).parent.glob("models/auto/*_auto.py"),
    Path(transformers.__file__).parent / "models/auto/auto_factory.py",
    Path(transformers.__file__).parent / "tokenization_utils_tokenizers.py",
]
MESSAGES = [message for block in blocks("text", PAGE) for message in block.code.splitlines()]
VARIABLE = "…"


@functools.cache
def templates() -> list[str]:
    """Every text of an exception or an f-string in the sources, with … for what is filled in."""
    found: set[str] = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (text := template(node)) is not None:
                found.add(re.sub(r"\s+", " ", text))
    return sorted(found)


def template(node: ast.AST) -> str | None:
    """The text of a string or an f-string, `None` of anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else VARIABLE for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = template(node.left), template(node.right)
        return None if left is None or right is None else left + right
    return None


def is_quoted_from(message: str, text: str) -> bool:
    """Whether a message is a text, or its begin where it goes on."""
    text = text.strip()
    if not message.replace(VARIABLE, "").strip():
        return False
    if message.endswith((VARIABLE, ".")):
        return text == message or text.startswith(message.removesuffix(VARIABLE))
    return text == message


def test_there_are_messages():
    assert len(MESSAGES) > 30


@pytest.mark.parametrize("message", MESSAGES)
def test_message_is_in_the_code(message):
    assert any(is_quoted_from(message, text) for text in templates()), message


@pytest.mark.parametrize("message", ["no folders …", "the loss is not finite", "… …", "…", "… holds models"])
def test_messages_that_nobody_has_are_noticed(message):
    assert not any(is_quoted_from(message, text) for text in templates())
