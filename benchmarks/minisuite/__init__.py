"""A small suite of GLUE-format tasks that this project generates itself.

The sentences are made from templates and word lists and are free for any use (CC0 1.0). Each task shows one thing that
a model can or cannot do:

- `sentiment`: the words alone tell the label.
- `word_order`: the same words in two orders have opposite labels.
- `agreement`: the subject has to be told from the other nouns.
- `word_sense`: the sense of a word in one sentence has to be compared with its sense in another.
"""

from benchmarks.minisuite.generation import load_task
from benchmarks.minisuite.tasks import MINISUITE_TASKS

__all__ = ["MINISUITE_TASKS", "load_task"]
