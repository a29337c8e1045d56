"""The tasks of the suite, as GLUE-format tasks."""

from benchmarks.glue.tasks import Task

MINISUITE_TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("sentiment", ("sentence",), ("negative", "positive"), ("accuracy",), test_splits=()),
        Task("word_order", ("sentence",), ("false", "true"), ("accuracy",), test_splits=()),
        Task("agreement", ("sentence",), ("unacceptable", "acceptable"), ("accuracy",), test_splits=()),
        Task("word_sense", ("sentence1", "sentence2"), ("different", "same"), ("accuracy",), test_splits=()),
    )
}
