"""Command line: `accelerate launch -m benchmarks.glue --help`."""

import logging
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from transformers.utils import logging as transformers_logging

from benchmarks.glue.arguments import parse_arguments
from benchmarks.glue.data import load_tasks, select_tasks
from benchmarks.glue.predictions import predict_tests
from benchmarks.glue.results import RESULTS_FILE, describe_run, read_results, render_table, write_results, write_text
from benchmarks.glue.train import create_accelerator, fine_tune


def main(argv: Sequence[str] | None = None) -> None:
    """Run every task with every seed, write a JSON for each and a table of all that the output folder holds.

    Args:
        argv: The arguments without the program's name; those of this process by default.

    Raises:
        ValueError: If an argument, or the data of any of the tasks, is wrong; nothing is trained then.
    """
    arguments = parse_arguments(argv)
    settings = arguments.fine_tuning
    tasks = select_tasks(arguments.data)
    if not settings.overwrite_output_dir:
        _require_no_results([settings.run_dir(task.name, seed) for task in tasks for seed in settings.seed_list])
    accelerator = create_accelerator(settings)
    _quiet_logs(accelerator.is_main_process)
    with accelerator.local_main_process_first():
        needs_train = settings.num_train_epochs > 0
        loaded = load_tasks(tasks, arguments.data, needs_train)
    for data in loaded:
        for seed in settings.seed_list:
            start = time.perf_counter()
            fine_tuned = fine_tune(accelerator, data, arguments, seed)
            if accelerator.is_main_process:
                wall_seconds = time.perf_counter() - start
                results = describe_run(accelerator, data, fine_tuned, arguments, seed, wall_seconds)
                write_results(settings.run_dir(data.task.name, seed) / RESULTS_FILE, results)
    if arguments.data.predict:
        predict_tests(accelerator, loaded, arguments)
    if accelerator.is_main_process:
        table = render_table(read_results(settings.output_dir))
        write_text(Path(settings.output_dir, "results.md"), table)
        print(table, end="")
    accelerator.end_training()


def _quiet_logs(is_main_process: bool) -> None:
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


def _require_no_results(folders: Sequence[Path]) -> None:
    present = [str(folder) for folder in folders if (folder / RESULTS_FILE).exists()]
    if present:
        raise ValueError(
            f"There are results in {', '.join(present)}: give another --output_dir, or --overwrite_output_dir."
        )


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        print(f"benchmarks.glue: {error}", file=sys.stderr)
        raise SystemExit(2) from error
