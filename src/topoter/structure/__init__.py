"""The graph as the method sees it: adjacency, node pairs, features, sets of graphs."""
