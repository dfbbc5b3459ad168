"""From a CSV of edges and a table of features to embeddings, and later to embeddings of new nodes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from topoter import TopoTER
from topoter.graphs import read_graph, write_embeddings

EDGES = """source,target
ann,bob
bob,cleo
cleo,ann
cleo,dan
dan,eve
eve,fay
fay,dan
"""
# Numbers are brought to one scale, teams one-hot encoded, and the model remembers how.
PEOPLE = """id,seniority,team
ann,0.3,red
bob,0.4,red
cleo,0.2,red
dan,0.9,blue
eve,0.8,blue
fay,1.0,blue
"""
LATER_EDGES = EDGES + "gus,ann\ngus,bob\n"
LATER_PEOPLE = PEOPLE + "gus,0.3,red\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "edges.csv").write_text(EDGES)
        (folder / "people.csv").write_text(PEOPLE)
        graph, notes = read_graph(folder / "edges.csv", features=folder / "people.csv")
        print("\n".join(notes))  # what was found and assumed

        model = TopoTER(out_channels=8, epochs=50, random_state=0)
        z = model.fit_transform(graph)
        write_embeddings(folder / "z.parquet", z, graph.node_ids)
        model.save(folder / "model.topoter")

        # Later: somebody joins. The model has never seen them.
        (folder / "edges.csv").write_text(LATER_EDGES)
        (folder / "people.csv").write_text(LATER_PEOPLE)
        graph, _ = read_graph(folder / "edges.csv", features=folder / "people.csv")
        z = TopoTER.load(folder / "model.topoter").transform(graph)
        print(f"{graph.node_ids[-1]} has an embedding of {z.shape[1]} numbers")


if __name__ == "__main__":
    main()
