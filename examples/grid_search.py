"""Choose the embedding's and the classifier's settings together, by cross-validation over labelled nodes."""

from __future__ import annotations

import tempfile

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline

from topoter import NodeEmbedding, TopoTER
from topoter.datasets import load


def main() -> None:
    graph = load("sbm")  # any graph whose nodes have labels; this one is made up
    nodes, labels = np.arange(graph.num_nodes), graph.y.numpy()
    train, test = train_test_split(nodes, test_size=0.5, stratify=labels, random_state=0)

    with tempfile.TemporaryDirectory() as folder:  # each setting of the model is trained once, not once per fold
        model = TopoTER(out_channels=32, epochs=30, random_state=0)
        pipeline = Pipeline(
            [("nodes", NodeEmbedding(graph, model, memory=folder)), ("classify", LogisticRegression(max_iter=1000))]
        )
        grid = {"nodes__model__order": [1, 2, 3], "classify__C": [0.1, 1.0, 10.0]}
        search = GridSearchCV(pipeline, grid, cv=3).fit(train, labels[train])
    print(f"chosen by cross-validation: {search.best_params_}")
    print(f"accuracy on other nodes: {search.score(test, labels[test]):.1%}")


if __name__ == "__main__":
    main()
