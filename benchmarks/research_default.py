"""Prototype of the recommended default for node embeddings, and the six made-up graphs it must be safe on.

    z, info = embed(x, edge_index, num_nodes, seed)

One linear encoder on the features two hops away, started from the data (truncated singular vectors) and trained with
I(H; H~) between two draws of the topology transformation; beside it the features themselves (hops 0 and 1) and the
graph itself (regularised spectral vectors that predict deleted edges). How much each part counts follows from
deleted edges alone: no label is read. Needs numpy, scipy, scikit-learn (isotonic regression) and torch.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla
import torch
from sklearn.isotonic import IsotonicRegression

SETTINGS = {
    "rank": 512,  # width of the trained part: columns of the truncated basis of S^2 X
    "rank_beside": 256,  # width of the hop-0 and hop-1 parts
    "power": 0.0,  # sparse non-negative features x -> x^power (0: presence), then unit rows
    "delete": 0.5,  # share of the edges deleted in each transformed graph
    "draws": 3,  # pairs of transformed graphs whose moments are averaged
    "decorrelation": 1.5e-3,
    "learning_rate": 1e-3,
    "max_steps": 60,
    "halving": 0.55,  # stop when the disagreement of the two graphs has fallen to this share of its start
    "agreement": 0.3,  # agreement of deleted edges at which the features are trusted to follow the graph
    "eigenvectors": 128,
    "regularisation": 1.0,  # of the degrees, in mean degrees
    "held_out": 0.2,
    "hop0": (1.0, 0.4),  # length of the part, from no agreement to full agreement
    "hop1": (0.5, 0.0),
    "structure": (0.4, 1.5),  # factor of the ratio structure/features, and the most it can be
}


# ---------------------------------------------------------------- graph and features


def adjacency(edge_index, num_nodes):
    """Simple undirected graph, no self-loops."""
    row, col = np.asarray(edge_index)
    a = sp.csr_matrix((np.ones(len(row), dtype=np.float32), (row, col)), shape=(num_nodes, num_nodes))
    a = a.maximum(a.T)
    a.setdiag(0)
    a.eliminate_zeros()
    a.data[:] = 1
    return a.tocsr()


def normalized(a):
    """D^-1/2 (A + I) D^-1/2."""
    a = a + sp.eye(a.shape[0], dtype=np.float32, format="csr")
    r = (1 / np.sqrt(np.asarray(a.sum(1)).ravel())).astype(np.float32)
    return sp.csr_matrix(sp.diags(r) @ a @ sp.diags(r), dtype=np.float32)


def regularized(a, tau):
    """(D + tau d)^-1/2 A (D + tau d)^-1/2: tiny components no longer own the leading eigenvectors."""
    d = np.asarray(a.sum(1)).ravel()
    r = (1 / np.sqrt(d + tau * max(d.mean(), 1e-9))).astype(np.float32)
    return sp.csr_matrix(sp.diags(r) @ a @ sp.diags(r), dtype=np.float32), r


def delete_edges(a, share, rng):
    """The graph without a random share of its edges, and the deleted pairs."""
    upper = sp.triu(a, 1).tocoo()
    keep = rng.random(upper.nnz) >= share
    half = sp.csr_matrix((upper.data[keep], (upper.row[keep], upper.col[keep])), shape=a.shape)
    return (half + half.T).tocsr(), (upper.row[~keep], upper.col[~keep])


def prepared(x, power):
    """Unit rows; sparse non-negative features by presence, others with standardised columns. None: nothing there."""
    x = sp.csr_matrix(x, dtype=np.float32)
    x.eliminate_zeros()
    if x.nnz and x.data.min() >= 0 and x.nnz < 0.3 * x.shape[0] * x.shape[1]:
        x = x.copy()
        x.data = x.data**power
    else:
        dense = x.toarray()
        spread = dense.std(0)
        keep = spread > 1e-6 * max(float(np.abs(dense).max()), 1e-12)
        if not keep.any():
            return None
        x = sp.csr_matrix((dense[:, keep] - dense[:, keep].mean(0)) / spread[keep])
    length = np.sqrt(np.asarray(x.multiply(x).sum(1)).ravel())
    return sp.csr_matrix(sp.diags((1 / np.where(length > 0, length, 1)).astype(np.float32)) @ x, dtype=np.float32)


def right_vectors(s, x, k, order, seed, iterations=6, extra=64):
    """Top k right singular vectors of S^order X, without forming the product."""

    def forward(b):
        y = np.asarray(x @ b, dtype=np.float32)
        for _ in range(order):
            y = s @ y
        return y

    def backward(y):
        for _ in range(order):
            y = s @ y
        return np.asarray(x.T @ y, dtype=np.float32)

    n, c = x.shape
    k = min(k, c, n)
    if c <= k + extra:
        basis = np.eye(c, dtype=np.float32)
    else:
        basis = np.random.default_rng(seed).normal(size=(c, min(k + extra, c, n))).astype(np.float32)
        for _ in range(iterations):
            basis, _ = np.linalg.qr(backward(forward(basis)))
    h = forward(basis)
    values, vectors = np.linalg.eigh((h.T @ h).astype(np.float64))
    order_ = np.argsort(-values)[:k]
    keep = order_[values[order_] > 1e-7 * values.max()]
    return (basis @ vectors[:, keep]).astype(np.float32)


# ---------------------------------------------------------------- the trained part


def moments(a, signal, share, draws, rng):
    """Second moments of S~^2 X V on transformed graphs: within one, between two, over the ends of deleted edges."""
    r, n = signal.shape[1], len(signal)
    within, between, edges = (np.zeros((r, r), dtype=np.float64) for _ in range(3))
    for _ in range(draws):
        views = []
        for _ in range(2):
            kept, gone = delete_edges(a, share, rng)
            s = normalized(kept)
            h = s @ (s @ signal)
            h -= h.mean(0)
            within += h.T @ h
            if len(gone[0]):
                e = h[gone[0]].T @ h[gone[1]]
                edges += (e + e.T) / 2 * (n / len(gone[0]))
            views.append(h)
        c = views[0].T @ views[1]
        between += c + c.T
    f = 1 / (2 * draws * n)
    return tuple((m * f).astype(np.float32) for m in (within, between, edges))


def train(within, between, target, seed, settings):
    """Maximise the bound on I(H; H~): equal columns agree, different ones are uncorrelated. Cost: R^2 F a step."""
    generator = torch.Generator().manual_seed(seed)
    m, c = torch.as_tensor(within), torch.as_tensor(between)
    width = len(within)
    w = torch.empty(width, width)
    torch.nn.init.orthogonal_(w, generator=generator)  # H starts as the data: U S, rotated
    w.requires_grad_()
    optimizer = torch.optim.Adam([w], lr=settings["learning_rate"])
    eye = torch.eye(width)
    history = []
    for _ in range(settings["max_steps"] + 1):
        unit = w / (w * (m @ w)).sum(0).clamp_min(1e-12).sqrt()
        disagreement = 2 * width - 2 * (unit * (c @ unit)).sum()
        redundancy = 2 * ((unit.T @ (m @ unit) - eye) ** 2).sum()
        history.append(disagreement.item())
        if history[-1] <= target * history[0] or len(history) > settings["max_steps"]:
            break
        optimizer.zero_grad()
        (disagreement + settings["decorrelation"] * redundancy).backward()
        optimizer.step()
    return w.detach().numpy(), history


# ---------------------------------------------------------------- the part of the graph alone


def leading(s, k, seed):
    k = min(k, s.shape[0] - 2)
    v0 = np.random.default_rng(seed).normal(size=s.shape[0]).astype(np.float32)
    values, vectors = sla.eigsh(s, k=k, which="LM", v0=v0, tol=1e-2)
    order = np.argsort(-np.abs(values))
    return values[order], vectors[:, order]


def structure(a, settings, rng, seed):
    """Spectral vectors (by magnitude) and what each says of deleted edges, 0 where it only fits noise."""
    k, tau, share = settings["eigenvectors"], settings["regularisation"], settings["held_out"]
    if a.nnz < 20:
        return np.zeros((a.shape[0], 0), dtype=np.float32), np.zeros(0)
    values, vectors = leading(regularized(a, tau)[0], k, seed)
    points = {1: ([], []), -1: ([], [])}
    for _ in range(2):
        kept, (i, j) = delete_edges(a, share, rng)
        s, r = regularized(kept, tau)
        lam, v = leading(s, k, seed)
        y = v * r[:, None]
        out = 2 * (y[i] * y[j]).sum(0) * (1 - share) / share  # the eigenvalue, measured on edges not seen
        for sign in (1, -1):
            of = np.sign(lam) == sign
            points[sign][0].append(np.arange(of.sum()))
            points[sign][1].append(out[of] * sign)
    weight = np.zeros(len(values))
    for sign in (1, -1):
        of = np.flatnonzero(np.sign(values) == sign)
        ranks, seen = (np.concatenate(p) for p in points[sign])
        if len(of) and len(ranks):
            fit = IsotonicRegression(increasing=False, out_of_bounds="clip").fit(ranks, seen)
            weight[of] = fit.predict(np.arange(len(of)))
    return vectors[:, 1:].astype(np.float32), np.clip(weight, 0, None)[1:]  # the first is the degree


# ---------------------------------------------------------------- all of it


def of_unit_length(z):
    z = z - z.mean(0)
    return z / np.sqrt(max(float((z**2).sum(1).mean()), 1e-12))


def parts(x, edge_index, num_nodes, seed, settings=SETTINGS):
    """Everything that does not depend on the weights of the parts."""
    rng = np.random.default_rng(seed)
    a = adjacency(edge_index, num_nodes)
    p = {}
    p["E"], p["o"] = structure(a, settings, rng, seed)
    x = None if x is None else prepared(x, settings["power"])
    if x is None:
        return p
    s = normalized(a)
    for hop, rank in ((0, settings["rank_beside"]), (1, settings["rank_beside"]), (2, settings["rank"])):
        signal = np.asarray(x @ right_vectors(s, x, rank, hop, seed), dtype=np.float32)
        z = signal
        for _ in range(hop):
            z = s @ z
        p[f"z{hop}"] = z - z.mean(0)
        if hop == 2:
            p["M"], p["C"], p["Ce"] = moments(a, signal, settings["delete"], settings["draws"], rng)
    return p


def combine(p, seed, settings=SETTINGS, untrained=False):
    kept = p["o"] > 1e-3
    o = p["o"][kept]
    strength = float((o**2).sum() / o.sum()) if len(o) else 0.0  # what the structure says of a deleted edge
    e = p["E"][:, kept] * np.sqrt(o).astype(np.float32)
    info = {"structure_strength": strength, "eigenvectors": int(kept.sum())}
    if "M" not in p:
        return of_unit_length(e), info
    agreement = max(float(np.trace(p["Ce"]) / np.trace(p["M"])), 0.0)  # what the features say of it
    trust = min(1.0, agreement / settings["agreement"])
    w, history = np.eye(len(p["M"]), dtype=np.float32), []
    if not untrained:
        w, history = train(p["M"], p["C"], 1 - (1 - settings["halving"]) * trust, seed, settings)

    def mix(ends):
        return ends[0] + (ends[1] - ends[0]) * trust

    factor, most = settings["structure"]
    a_s = min(most, factor * strength / max(agreement, 1e-3))
    lengths = {"trained": 1.0, "hop0": mix(settings["hop0"]), "hop1": mix(settings["hop1"]), "structure": a_s}
    out = [of_unit_length(p["z2"] @ w)]
    out += [lengths["hop0"] * of_unit_length(p["z0"])] if lengths["hop0"] > 0 else []
    out += [lengths["hop1"] * of_unit_length(p["z1"])] if lengths["hop1"] > 0 else []
    out += [a_s * of_unit_length(e)] if e.shape[1] and a_s > 0 else []
    info |= {"agreement": agreement, "steps": max(len(history) - 1, 0), **lengths, "disagreement": history}
    return np.hstack(out).astype(np.float32), info


def embed(x, edge_index, num_nodes, seed=0, settings=SETTINGS):
    """Embeddings [N, F] and what was decided without labels."""
    return combine(parts(x, edge_index, num_nodes, seed, settings), seed, settings)


# ---------------------------------------------------------------- six made-up graphs of 3,000 nodes (and two more)


def _sbm(n, k, P, deg, rng, y=None):
    """Edges drawn so that the expected mean degree is deg; P[k,k] relative affinities."""
    if y is None:
        y = rng.permutation(np.arange(n) % k)
    m = int(n * deg / 2)
    counts = np.bincount(y, minlength=k)
    W = P * np.outer(counts, counts)
    W = W / W.sum()
    members = [np.flatnonzero(y == c) for c in range(k)]
    have = set()
    E = []
    cells = rng.choice(k * k, size=int(m * 1.3), p=W.ravel())
    for c in cells:
        a, b = divmod(int(c), k)
        u = members[a][rng.integers(len(members[a]))]
        v = members[b][rng.integers(len(members[b]))]
        if u == v:
            continue
        key = (min(u, v), max(u, v))
        if key in have:
            continue
        have.add(key)
        E.append(key)
        if len(E) >= m:
            break
    e = np.array(E).T
    return y, np.concatenate([e, e[::-1]], 1)


def _planted(k, within):
    P = np.full((k, k), (1 - within) / (k - 1))
    np.fill_diagonal(P, within)
    return P


def _ring(k, nxt):
    P = np.full((k, k), (1 - nxt) / (k - 2))
    for c in range(k):
        P[c, (c + 1) % k] = P[c, (c - 1) % k] = nxt / 2
    return P


def _words(y, k, rng, vocab=1000, length=20, topic=0.3, per=60):
    n = len(y)
    base = 1 / np.arange(10, vocab + 10)
    base /= base.sum()
    rows = []
    cols = []
    own = [rng.choice(vocab, per, replace=False) for _ in range(k)]
    for i in range(n):
        L = max(3, rng.poisson(length))
        t = rng.random(L) < topic
        w = np.where(t, own[y[i]][rng.integers(per, size=L)], rng.choice(vocab, size=L, p=base))
        rows += [i] * L
        cols += list(w)
    X = sp.csr_matrix((np.ones(len(rows)), (rows, cols)), shape=(n, vocab))
    X.data[:] = 1
    return X


def make(name, seed=0, n=3000):
    rng = np.random.default_rng(1000 + seed)
    if name == "weak":
        y, e = _sbm(n, 8, _planted(8, 0.5), 10, rng)
        X = rng.normal(size=(n, 32))
        X[np.arange(n), y] += 0.5
    elif name == "none":
        y, e = _sbm(n, 8, _planted(8, 0.65), 12, rng)
        X = np.ones((n, 1))
    elif name == "noise":
        y, e = _sbm(n, 8, _planted(8, 0.65), 12, rng)
        X = rng.normal(size=(n, 32))
    elif name == "ring":
        y, e = _sbm(n, 6, _ring(6, 0.8), 8, rng)
        X = rng.normal(size=(n, 32))
        X[np.arange(n), y] += 1.5
    elif name == "bip":
        y, e = _sbm(n, 2, np.array([[0.15, 0.85], [0.85, 0.15]]), 6, rng)
        X = rng.normal(size=(n, 32))
        X[np.arange(n), y] += 0.7
    elif name == "words":
        y, e = _sbm(n, 6, _planted(6, 0.6), 5, rng)
        X = _words(y, 6, rng)
    elif name == "social":  # own extra: dense graph that hardly follows the classes, words that do
        y, e = _sbm(n, 8, _planted(8, 0.25), 40, rng)
        X = _words(y, 8, rng, vocab=3000, length=20, topic=0.35, per=100)
    elif name == "degree":  # own extra: homophily graph, few dense columns of very different scales
        y, e = _sbm(n, 5, _planted(5, 0.7), 6, rng)
        X = rng.normal(size=(n, 12))
        X[np.arange(n), y] += 1
        X *= 10 ** rng.uniform(-1, 1, 12)
    X = sp.csr_matrix(X, dtype=np.float32)
    return X, e, y
