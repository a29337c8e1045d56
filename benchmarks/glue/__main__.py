"""Command line: `accelerate launch -m benchmarks.glue --help`."""

import logging
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from transformers.utils import logging as transformers_logging

from benchmarks.glue.arguments import parse_arguments
from benchmarks.glue.data import load_tasks, select_tasks
from benchmarks.glue.predictions import predict_tests
from benchmarks.glue.results import write_text
from benchmarks.glue.suite import run_suite
from benchmarks.glue.train import create_accelerator
from benchmarks.report.collect import collect
from benchmarks.report.markdown import render_markdown


def main(argv: Sequence[str] | None = None) -> None:
    """Run every task with every seed, write a JSON for each and a table of all that the output folder holds.

    Repeated, the same command goes on with what is not finished yet.

    Args:
        argv: The arguments without the program's name; those of this process by default.

    Raises:
        ValueError: If an argument, or the data of any of the tasks, is wrong, or the folder holds runs of other
            settings; nothing is trained then.
    """
    arguments = parse_arguments(argv)
    settings = arguments.fine_tuning
    tasks = select_tasks(arguments.data)
    accelerator = create_accelerator(settings)
    _set_up_logging(accelerator.is_main_process)
    with accelerator.local_main_process_first():
        needs_train = settings.num_train_epochs > 0
        loaded = load_tasks(tasks, arguments.data, needs_train)
    run_suite(accelerator, loaded, arguments)
    if arguments.data.predict:
        predict_tests(accelerator, loaded, arguments)
    if accelerator.is_main_process:
        collected = collect([settings.output_dir])
        write_text(Path(settings.output_dir, "results.md"), render_markdown(collected))
        print(render_markdown(collected, with_details=False), end="")
    accelerator.end_training()


def _set_up_logging(is_main_process: bool) -> None:
    if not is_main_process:
        # Every process would say the same.
        transformers_logging.set_verbosity_error()
        warnings.simplefilter("ignore")
    if not (is_main_process and sys.stderr.isatty()):
        transformers_logging.disable_progress_bar()
    # Tokenizers written in Python warn at every pair they cut that they do not return what they cut off.
    logging.getLogger("transformers.tokenization_python").addFilter(_is_not_about_overflow)


def _is_not_about_overflow(record: logging.LogRecord) -> bool:
    return "overflowing tokens are not returned" not in record.getMessage()


if __name__ == "__main__":
    try:
        main()
    except (ValueError, FloatingPointError, MemoryError) as error:
        print(f"benchmarks.glue: {error}", file=sys.stderr)
        raise SystemExit(2) from error
