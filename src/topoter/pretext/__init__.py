"""The pretext task: what is done to a graph, what is to be predicted of it, and by what terms the model learns."""
