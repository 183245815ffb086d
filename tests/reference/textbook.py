#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""DeepAFL as the paper states it, on all rows at once, in float64.

Nothing here knows of sites, sums, grids or factored blocks. Where the library
works from Gram matrices, this solves the least-squares problems on the data
matrices themselves, so the two share neither formulas nor rounding:

  W      ridge regression, as least squares on Phi with sqrt(lambda) I below it
  Omega  argmin ||R - F Omega W||^2 + gamma ||Omega||^2, from the singular value
         decompositions of F and of W; `omega_kronecker` solves the same problem
         as one linear system, entry by entry, and checks it at small sizes
"""
import numpy as np
from scipy import linalg, special


def activate(name, x):
    if name == "gelu":
        return x * special.ndtr(x)
    if name == "relu":
        return np.where(x > 0, x, 0)
    if name == "leakyrelu":
        return np.where(x > 0, x, x / 100)
    if name == "tanh":
        return np.tanh(x)
    if name == "hardswish":
        return x * np.minimum(np.maximum(x + 3, 0), 6) / 6
    if name == "softshrink":
        return np.where(x > 0.5, x - 0.5, np.where(x < -0.5, x + 0.5, 0))
    assert name == "none", name
    return x


def ridge(phi, y, lam):
    """argmin ||Y - Phi W||^2 + lam ||W||^2; of least norm when lam = 0."""
    d = phi.shape[1]
    if lam == 0:
        return linalg.lstsq(phi, y)[0]
    tall = np.vstack([phi, np.sqrt(lam) * np.eye(d)])
    q, r = linalg.qr(tall, mode="economic")
    return linalg.solve_triangular(r, q.T @ np.vstack([y, np.zeros((d, y.shape[1]))]))


def omega(f, r, w, gamma):
    """In the bases of the singular vectors every entry stands alone."""
    p, a, vt = linalg.svd(f, full_matrices=False)
    u, b, qt = linalg.svd(w, full_matrices=False)
    ab = np.outer(a, b)
    return vt.T @ (ab * (p.T @ r @ qt.T) / (ab * ab + gamma)) @ u.T


def omega_kronecker(f, r, w, gamma):
    """vec(F Omega W) = (W' x F) vec(Omega): the normal equations in full."""
    k = np.kron(w.T, f)
    n = k.shape[1]
    x = linalg.solve(k.T @ k + gamma * np.eye(n), k.T @ r.flatten("F"), assume_a="pos")
    return x.reshape((f.shape[1], w.shape[0]), order="F")


def train(x, labels, projections, n_classes, lam, gamma, act, solve=omega, present=None):
    """projections: [(A, a), (B_0, b_0), ..]. Returns heads, risks, regularised risks.

    present: for every question a mask of the rows whose owners answer it. Question 2t + 1 fits
    W_t, 2t + 2 fits Omega_t; every row takes every step. Risks are over all rows.
    """
    if present is None:
        present = np.ones((2 * len(projections) + 1, len(x)), bool)
    y = np.zeros((len(x), n_classes))
    y[np.arange(len(x)), labels] = 1
    heads, risks, penalised, paid = [], [], [], 0.0
    phi = np.tanh(x @ projections[0][0] + projections[0][1])
    for layer in range(len(projections)):
        in_w, in_omega = present[2 * layer + 1], present[2 * layer + 2]
        w = ridge(phi[in_w], y[in_w], lam)
        rest = y - phi @ w
        heads.append(w)
        risks.append(np.square(rest).sum())
        penalised.append(risks[-1] + lam * np.square(w).sum() + paid)
        if layer + 1 < len(projections):
            b, bias = projections[layer + 1]
            f = activate(act, phi @ b + bias)
            om = solve(f[in_omega], rest[in_omega], w, gamma)
            paid += gamma * np.square(om).sum()
            phi = phi + f @ om
    return heads, np.array(risks), np.array(penalised)


if __name__ == "__main__":  # the two ways to Omega agree
    rng = np.random.default_rng(1)
    for n, d, df, c in ((30, 6, 9, 3), (12, 8, 5, 11), (5, 7, 10, 2)):
        f, r, w = (rng.normal(size=s) for s in ((n, df), (n, c), (d, c)))
        one, two = omega(f, r, w, 0.1), omega_kronecker(f, r, w, 0.1)
        print(n, d, df, c, linalg.norm(one - two) / linalg.norm(two))
        assert linalg.norm(one - two) <= 1e-10 * linalg.norm(two)
