"""gensim, which reads parts of graphs as words: imported when it is needed, missed in one line, followed by epochs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from topoter.errors import TopoterError
from topoter.training.callbacks import Callback


def gensim_models(method: str) -> Any:
    """gensim's models, for a method of that name."""
    try:
        from gensim import models
    except ImportError as error:
        raise TopoterError(f"The method {method} needs gensim: pip install 'topoter[baselines]'.") from error
    return models


def told_by_epoch(callbacks: Sequence[Callback], epochs: int) -> Any:
    """A gensim callback that tells ours of every epoch."""
    from gensim.models.callbacks import CallbackAny2Vec

    class Told(CallbackAny2Vec):
        done = 0

        def on_epoch_end(self, model: Any) -> None:
            self.done += 1
            for callback in callbacks:
                callback.on_progress(self.done, epochs, f"epoch {self.done} of {epochs}")

    return Told()


class Sentences:
    """Rows of numbers as lists of words, again for every epoch."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[list[str]]:
        for row in self.rows:
            yield [str(word) for word in row.tolist()]
