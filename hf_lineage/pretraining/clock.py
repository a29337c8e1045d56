"""Time and signals of a run."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType


class Clock:
    """Seconds that a run has taken, those before an interruption included."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._earlier = 0.0
        self.train_seconds = 0.0

    @property
    def wall_seconds(self) -> float:
        """Seconds in all: setting up, training, evaluating, saving."""
        return self._earlier + time.perf_counter() - self._start

    @contextmanager
    def training(self) -> Iterator[None]:
        """Counts the block as training."""
        start = time.perf_counter()
        yield
        self.train_seconds += time.perf_counter() - start

    def state_dict(self) -> dict[str, float]:
        """Returns what has been counted."""
        return {"wall_seconds": self.wall_seconds, "train_seconds": self.train_seconds}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Counts on from there."""
        self._earlier, self.train_seconds = state["wall_seconds"], state["train_seconds"]


class Speed:
    """Tokens a second of training.

    Args:
        clock: The run's clock.
        tokens: Tokens trained on so far.
    """

    def __init__(self, clock: Clock, tokens: float) -> None:
        self.clock, self._tokens, self._seconds = clock, tokens, clock.train_seconds

    def measure(self, tokens: float) -> float:
        """Returns the speed since the last measurement.

        Args:
            tokens: Tokens trained on so far.
        """
        seconds = self.clock.train_seconds - self._seconds
        speed = (tokens - self._tokens) / seconds if seconds else 0.0
        self._tokens, self._seconds = tokens, self.clock.train_seconds
        return speed


class Termination:
    """Notes in its block that the process was told to stop (SIGTERM), instead of stopping at once."""

    def __init__(self) -> None:
        self.is_requested = False

    def __enter__(self) -> "Termination":
        self._is_main_thread = threading.current_thread() is threading.main_thread()
        if self._is_main_thread:  # in others python allows no handlers
            self._earlier = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._is_main_thread:
            signal.signal(signal.SIGTERM, self._earlier)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.is_requested = True


__all__ = ["Clock", "Speed", "Termination"]
