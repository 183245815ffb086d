#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often does one row carry a column of F in honest training? For the limits of E_DOMINATED (docs/protocol.md).

Digits, and CIFAR-100 where DEEPAFL_DATA is set; sites of n rows, drawn at random or of one class.
"""
import os
from pathlib import Path

import numpy as np
from scipy.special import erf

rng = np.random.default_rng(0)
ACTIVATIONS = {"gelu": lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))), "relu": lambda x: np.maximum(x, 0), "tanh": np.tanh,
               "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6}
sets = {"digits": Path(__file__).resolve().parent.parent / "share" / "digits" / "train"}
if "DEEPAFL_DATA" in os.environ:
    sets["cifar100"] = Path(os.environ["DEEPAFL_DATA"]) / "data" / "cifar100_train"


def linear(a, b):
    return rng.uniform(-1, 1, (a, b)) / np.sqrt(a), rng.uniform(-1, 1, b) / np.sqrt(a)


def share_of_columns(f, y, n):
    """Of the columns, how many does one row carry more than half of the squared norm?"""
    total = 0
    for i in range(30):
        rows = rng.choice(len(f), n, replace=False) if i % 2 else rng.choice(np.where(y == y[i])[0], n)
        squares = f[rows] ** 2
        whole = squares.sum(0)
        total += np.mean(np.where(whole > 0, squares.max(0) / np.maximum(whole, 1e-30), 1) > 0.5)
    return total / 30


for name, stem in sets.items():
    x, y = (np.load(f"{stem}_{what}.npy")[:8000] for what in ("features", "labels"))
    for width in (128, 512):
        (a, a0), (b, b0) = linear(x.shape[1], width), linear(width, width)
        phi = np.tanh(x.astype(float) @ a + a0)
        for activation, s in ACTIVATIONS.items():
            f = np.rint(s(phi @ b + b0) * 4096) / 4096
            figures = ", ".join(f"{n} rows {100 * share_of_columns(f, y, n):.1f} %" for n in (20, 50, 100, 300))
            print(f"{name}, width {width}, {activation}: {figures}")
