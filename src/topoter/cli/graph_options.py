"""The options that commands on a graph share: how its files are read, a saved model, what is said."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from topoter.cli.output import DataRoot, Device, Json, Quiet, note
from topoter.errors import UsageError

if TYPE_CHECKING:
    from topoter.estimator import TopoTER

Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the edge list's first line names its columns (else found out)."),
]
DropBad = Annotated[bool, typer.Option("--drop-bad", help="Go on without bad rows, and count them.")]


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """What every command on a graph takes: how its files are read, and what is said."""

    features: Annotated[Path | None, typer.Option(help="Node features: csv, tsv, parquet (with ids), npy, npz.")] = None
    id_column: Annotated[str | None, typer.Option(help="The id column of the features (else the first).")] = None
    columns: Annotated[list[str] | None, typer.Option(help="The features' columns to use (else all): a,b,c.")] = None
    exclude: Annotated[list[str] | None, typer.Option(help="Columns of the features to leave out: a,b,c.")] = None
    as_category: Annotated[
        list[str] | None, typer.Option(help="Columns of numbers or text that are categories: a,b,c.")
    ] = None
    text: Annotated[str, typer.Option(help="Free text in the features: refuse, or hash its words.")] = "refuse"
    weight_column: Annotated[str | None, typer.Option(help="The edge list's column of weights.")] = None
    time_column: Annotated[
        str | None, typer.Option(help="The edge list's column of times (of snapshots: else time, timestamp or t).")
    ] = None
    delimiter: Annotated[str | None, typer.Option(help="The edge list's delimiter (else detected).")] = None
    header: Header = None
    drop_bad: DropBad = False
    data_root: DataRoot = None
    quiet: Quiet = False
    json: Json = False

    def given(self) -> dict[str, Any]:
        """How the user asked for files to be read, by the names that `read_graph` and the command line share."""
        names = [field.name for field in fields(GraphOptions) if field.name not in ("data_root", "quiet", "json")]
        given = {name: getattr(self, name) for name in names if getattr(self, name) != getattr(GraphOptions, name)}
        for name in ("columns", "exclude", "as_category"):
            if name in given:
                given[name] = [part for value in given[name] for part in value.split(",") if part]
        return given

    def refuse(self, reason: str, *, allowed: tuple[str, ...] = ()) -> None:
        """Raise if the user asked for anything else than what is allowed; `reason` says why it cannot be had."""
        options = [
            f"--{'no-' if value is False else ''}{name.replace('_', '-')}"
            for name, value in self.given().items()
            if name not in allowed
        ]
        if options:
            raise UsageError(f"{', '.join(options)}: {reason}")

    def say(self, *notes: str) -> None:
        for text in notes:
            note(text, self.quiet)


@dataclass(frozen=True, kw_only=True)
class SetOptions:
    """What makes a file a set of graphs."""

    graph_column: Annotated[
        str | None, typer.Option(help="The edge list's column that says to which graph of a set an edge belongs.")
    ] = None
    smiles_column: Annotated[
        str | None, typer.Option(help="GRAPH is a table of molecules: its column of SMILES (extra `molecules`).")
    ] = None

    @property
    def given(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class ModelOptions(GraphOptions):
    """What every command on a saved model and a graph takes."""

    model: Annotated[Path, typer.Argument(help="A model that `topoter fit` wrote.")]
    graph: Annotated[str, typer.Argument(help="A dataset name or a file, also one the model has not seen.")]
    trust_encoder: Annotated[
        bool, typer.Option("--trust-encoder", help="Import the class of the model's own encoder: that runs its code.")
    ] = False
    device: Device = "cpu"

    def load_model(self) -> TopoTER:
        from topoter.estimator import TopoTER

        return TopoTER.load(self.model, self.device, trust_encoder=self.trust_encoder)


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option for each field of a parameter whose type is a dataclass.

    Typer makes options of a function's parameters only; so several commands would have to repeat them all.
    """
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if not is_dataclass(parameter.annotation):
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = group = parameter.annotation
        hints = get_type_hints(group, include_extras=True)
        for field in fields(group):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter(field.name, kind, default=default, annotation=hints[field.name]))

    @wraps(command)
    def run(**values: Any) -> None:
        made = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**values, **made)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
