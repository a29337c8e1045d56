"""Command line: `accelerate launch -m hf_lineage.pretraining --help`."""

import logging
import os
import signal
import sys
import warnings
from collections.abc import Sequence

from tqdm.contrib.logging import logging_redirect_tqdm
from transformers.utils import logging as transformers_logging

from .arguments import parse_arguments
from .objective import FAMILIES, objective_class
from .run import create_accelerator, pretrain


def main(argv: Sequence[str] | None = None) -> bool:
    """Pretrains a model, or goes on with the run that `--output_dir` holds.

    Args:
        argv: The arguments without the program's name; those of this process by default.

    Returns:
        Whether the run is finished; if not, it was told to stop and has saved where it is.

    Raises:
        ValueError: If an argument is wrong, or is not that of the run that is to go on; nothing is trained then.
    """
    settings, own = parse_arguments(argv, list(FAMILIES), lambda family: objective_class(family).arguments_class)
    if settings.dataloader_num_workers:
        # Workers are forked, and a tokenizer's threads do not survive that.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    accelerator = create_accelerator(settings)
    _set_up_logging(accelerator.is_main_process)
    with logging_redirect_tqdm():
        is_finished = pretrain(accelerator, settings, own)
    accelerator.end_training()
    return is_finished


def _set_up_logging(is_main_process: bool) -> None:
    # Every process would say the same.
    level = logging.INFO if is_main_process else logging.ERROR
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", level=logging.WARNING)
    logging.getLogger(__package__).setLevel(level)
    if not is_main_process:
        transformers_logging.set_verbosity_error()
        warnings.simplefilter("ignore")
    if not (is_main_process and sys.stderr.isatty()):
        transformers_logging.disable_progress_bar()


if __name__ == "__main__":
    try:
        has_finished = main()
    except (ValueError, FloatingPointError) as error:
        print(f"hf_lineage.pretraining: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    if not has_finished:
        raise SystemExit(128 + signal.SIGTERM)
