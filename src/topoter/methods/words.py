"""gensim, which reads parts of graphs as words: imported when it is needed, missed in one line, followed by epochs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from topoter.errors import TopoterError
from topoter.methods.randomness import seeded
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


def skip_gram(
    method: str,
    sentences: Iterable[Any],
    known: Iterable[Any],
    *,
    channels: int,
    window: int,
    epochs: int,
    seed: int,
    callbacks: Sequence[Callback] = (),
    **options: float,
) -> np.ndarray:
    """A vector for each of the known words [words, channels], by gensim's Word2Vec with negative samples.

    `options`: further ones of Word2Vec, by its own names.
    """
    models = gensim_models(method)
    with seeded(seed):
        model = models.Word2Vec(
            Sentences(sentences),
            vector_size=channels,
            window=window,
            epochs=epochs,
            min_count=0,
            sg=1,
            workers=1,
            seed=seed,
            callbacks=[told_by_epoch(callbacks, epochs)],
            **options,
        )
    return np.stack([model.wv[str(word)] for word in known])
