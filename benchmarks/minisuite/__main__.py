"""Write the tasks as parquet files: `python -m benchmarks.minisuite --output_dir DIR`."""

from dataclasses import dataclass, field
from pathlib import Path

from datasets import Dataset, DatasetDict, disable_progress_bars
from transformers import HfArgumentParser

from benchmarks.glue.tasks import Task
from benchmarks.minisuite.generation import load_task
from benchmarks.minisuite.tasks import MINISUITE_TASKS
from hf_lineage.files import atomic_file


@dataclass
class MinisuiteArguments:
    """Arguments of the command line."""

    output_dir: str = field(metadata={"help": "Folder that receives <task>/<split>.parquet."})
    seed: int = field(default=0, metadata={"help": "Chooses the sentences. At least 0."})
    num_examples: int = field(default=4, metadata={"help": "How many training examples of each task to print."})


def main(args: list[str] | None = None) -> None:
    """Generate the tasks, write them and print a few examples of each.

    Args:
        args: Arguments of the command line, `sys.argv[1:]` by default.
    """
    (arguments,) = HfArgumentParser(MinisuiteArguments).parse_args_into_dataclasses(args)
    if arguments.num_examples < 0:
        raise ValueError(f"`num_examples` has to be at least 0, got {arguments.num_examples}")
    disable_progress_bars()
    datasets = {name: load_task(name, arguments.seed) for name in MINISUITE_TASKS}
    for name, dataset in datasets.items():
        for split, rows in dataset.items():
            write_parquet(rows, Path(arguments.output_dir) / name / f"{split}.parquet")
        print_examples(MINISUITE_TASKS[name], dataset, arguments.num_examples)


def write_parquet(rows: Dataset, path: Path) -> None:
    """Write the rows to a parquet file that is either complete or absent.

    Args:
        rows: The names of its labels are kept in the file's schema.
        path: File to write or replace. Its folder is made where there is none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary:
        rows.to_parquet(temporary)


def print_examples(task: Task, dataset: DatasetDict, count: int) -> None:
    """Print the sizes of a task's splits and its first training examples."""
    sizes = ", ".join(f"{len(rows)} {split}" for split, rows in dataset.items())
    print(f"{task.name} ({sizes})")
    train = dataset["train"]
    for row in train.select(range(min(count, len(train)))):
        texts = " | ".join(row[column] for column in task.text_columns)
        print(f"  {task.labels[row['label']]:>12}  {texts}")


if __name__ == "__main__":
    main()
