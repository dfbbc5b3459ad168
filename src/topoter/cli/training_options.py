"""The options of a training, and the parameters that they and a recipe make."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from topoter.cli.output import Recipe
from topoter.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What is learned, by what, for how long: whatever is not said has the recipe's value."""

    recipe: Recipe = None
    objective: Annotated[
        str | None, typer.Option(help="What is learned: paper, full (all terms), or the name of one term.")
    ] = None
    encoder: Annotated[
        str | None, typer.Option(help="hops, profile, sgc, gcn, gin, or a PyG module's class: package.module:Class.")
    ] = None
    encoder_parameter: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Of the encoder alone; repeat it for more.")
    ] = None
    structure: Annotated[
        str | None, typer.Option(help="Where nodes are in the graph: spectral, walks, degrees, or none.")
    ] = None
    order: Annotated[int | None, typer.Option(help="Hops an SGC layer aggregates (k).")] = None
    channels: Annotated[int | None, typer.Option(help="Width of the embedding (F); of each layer of gin.")] = None
    perturbation_rate: Annotated[float | None, typer.Option(help="Share of pairs flipped (r).")] = None
    epochs: Annotated[int | None, typer.Option(help="Epochs at most.")] = None
    patience: Annotated[int | None, typer.Option(help="Stop after so many epochs without a lower loss.")] = None
    lr: Annotated[float | None, typer.Option(help="Learning rate of Adam.")] = None
    pooling: Annotated[str | None, typer.Option(help="Of a set of graphs: sum, mean or max of the nodes.")] = None
    batch_size: Annotated[int | None, typer.Option(help="Of a set of graphs: how many a step takes.")] = None
    batch_nodes: Annotated[
        int | None, typer.Option(help="Train on parts of the graph of so many nodes (else on all of it).")
    ] = None
    parts: Annotated[str | None, typer.Option(help="How parts are made: clusters, or sampled neighbours.")] = None

    def parameters(self, experiment: str, graph: str) -> dict[str, Any]:
        """TopoTER's parameters: those of the recipe, with what the user said put over them."""
        from topoter.estimator import TopoTER

        parameters = _recipe_parameters(self.recipe, experiment, graph)
        said = {name: value for name, value in self._said().items() if value is not None}
        encoder = TopoTER(**parameters | said).effective_params()["encoder"]
        if "order" in said and encoder not in ("sgc", "hops"):
            raise UsageError(
                f"--order goes with the encoders hops and sgc: {encoder} reaches as many hops as it has layers."
            )
        if "out_channels" in said and ":" in encoder:
            raise UsageError(
                f"--channels goes with the encoders hops, sgc, gcn and gin: give {encoder} --encoder-parameter."
            )
        if "out_channels" in said and encoder == "profile":
            raise UsageError("--channels does not go with the encoder profile: its width follows from the graphs.")
        if "out_channels" in said and encoder == "gin":  # the outputs of all its layers are concatenated
            said["hidden_channels"] = said.pop("out_channels")
        return parameters | said

    def _said(self) -> dict[str, Any]:
        """The options by the names of TopoTER's parameters."""
        said = {name: value for name, value in vars(self).items() if name != "recipe"}
        said["encoder_parameters"] = _key_values(said.pop("encoder_parameter") or []) or None
        said["out_channels"] = said.pop("channels")
        said["learning_rate"] = said.pop("lr")
        return said


def _recipe_parameters(recipe: str | None, experiment: str, graph: str) -> dict[str, Any]:
    """What the recipe says of TopoTER: one by name, a file of `topoter search`, or the one for every graph."""
    from topoter.datasets import known_as
    from topoter.estimator import TopoTER
    from topoter.experiments.recipes import DEFAULT, load_recipe, read_recipe

    file = Path(recipe) if recipe is not None and recipe.endswith(".toml") else None
    name = recipe if file is None else None
    if name is None:  # over time, "best" is a decoder of pairs, and what is fitted here embeds nodes
        name = "paper" if experiment == "temporal-links" else DEFAULT
    parameters = load_recipe(experiment, "topoter", known_as(graph) or DEFAULT, name).parameters
    if file is not None:
        parameters = parameters | read_recipe(file)
    known = TopoTER().get_params()  # a recipe may have more to say, of what follows a fit
    level = "graph" if experiment == "graph-classification" else "node"
    return {name: value for name, value in parameters.items() if name in known} | {"level": level}


def _key_values(pairs: list[str]) -> dict[str, Any]:
    """KEY=VALUE, a value read as a number, true, false or null where it is one."""
    from json import loads

    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise UsageError(f"--encoder-parameter must be KEY=VALUE. Got {pair!r} instead.")
        try:
            found[key] = loads(value)
        except ValueError:
            found[key] = value
    return found
