#!/usr/bin/env python3
"""Write share/digits/*.npy from scikit-learn's copy of the UCI optdigits test set.

Needs numpy and scikit-learn (Debian: python3-sklearn). Features are the 8 x 8 pixel counts 0..16
divided by 16, float32 (exact); the split is a fixed permutation, 1,437 rows to train and 360 to test.
"""
import pathlib
import sys

import numpy as np
from sklearn.datasets import load_digits

out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "share/digits")
pixels, labels = load_digits(return_X_y=True)
order = np.random.default_rng(2026).permutation(len(pixels))
features, labels = (pixels[order] / 16.0).astype(np.float32), labels[order].astype(np.uint8)
out.mkdir(parents=True, exist_ok=True)
for name, part in (("train", slice(0, 1437)), ("test", slice(1437, None))):
    np.save(out / f"{name}_features.npy", features[part])
    np.save(out / f"{name}_labels.npy", labels[part])
