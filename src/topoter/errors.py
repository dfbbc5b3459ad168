"""Failures a user can act on: what was wrong, which value, what to do.

The command line prints the message as one line and exits with `exit_code`; a traceback is shown only for
what is not one of these, that is, for a defect of topoter itself.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Iterable

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_SHOWN = 40  # names that a message lists: all datasets, but not the columns of a wide table


class TopoterError(Exception):
    """Something failed that the user can mend: a file, a value, a graph."""

    exit_code = 1


class UsageError(TopoterError, ValueError):
    """The call itself is wrong: an unknown name, a value out of range, options that exclude each other."""

    exit_code = 2


class DataError(TopoterError, ValueError):
    """What was read cannot be used: NaN features, an edge to a node that does not exist, a damaged file."""


class BadRowError(DataError):
    """One row of a file cannot be used; `drop_bad` would go on without it."""


class PoorEmbeddingWarning(UserWarning):
    """An embedding will be poor: no or constant features, few directions, nothing learned."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that is in no registry, with the nearest one that is."""
    names = sorted(known)
    by_lower = {candidate.lower(): candidate for candidate in names}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.5)
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    hint = f"Did you mean {by_lower[close[0]]!r}?" if close else f"Known: {', '.join(names[:_SHOWN])}{more}."
    return UsageError(f"Unknown {kind} {name!r}. {hint}")


def visible(text: str, mark: str = "\\") -> str:
    """Text from a user's file without what would steer a terminal or a page: escape sequences, changes of direction."""
    return _UNSEEN.sub(lambda found: mark + found.group().encode("unicode_escape").decode()[1:], text)


def whole_number(name: str, value: object, least: int) -> int:
    """The parameter as a plain int (NumPy's integers are welcome), or the error that says what it must be."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number < least:
        raise invalid_parameter(name, "TopoTER", f"a whole number, at least {least}", value)
    return number


def invalid_parameter(name: str, caller: str, constraint: str, value: object) -> UsageError:
    """One wording for every parameter out of its range."""
    return UsageError(f"The {name!r} parameter of {caller} must be {constraint}. Got {value!r} instead.")
