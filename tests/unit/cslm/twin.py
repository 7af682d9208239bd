"""Feed-forward LM in float64 NumPy, for one n-gram at a time, written from the paper's description.

It takes parameters by the names of the network's file and shares nothing else with ``rnnsmt.cslm``.
"""

import numpy as np


class Twin:
    def __init__(self, parameters):
        self.p = {name: np.asarray(value, np.float64) for name, value in parameters.items()}

    def units(self, context):
        """Return the output units of all classes before the softmax; context: ids, oldest first."""
        p = self.p
        x = []
        for word in context:
            x.extend(p["R"][word])
        h = [
            max(0.0, sum(w * v for w, v in zip(row, x, strict=True)) + b)
            for row, b in zip(p["W_1"], p["b_1"], strict=True)
        ]
        g = [
            max(0.0, sum(w * v for w, v in zip(row, h, strict=True)) + b)
            for row, b in zip(p["W_2"], p["b_2"], strict=True)
        ]
        return np.array([np.dot(row, g) + b for row, b in zip(p["W_o"], p["b_o"], strict=True)])

    def log_sum(self, context):
        units = self.units(context)
        return units.max() + np.log(np.exp(units - units.max()).sum())

    def log_probability(self, context, word):
        return self.units(context)[word] - self.log_sum(context)

    def sentence(self, ids, order, end):
        """Return ln p of a sentence (ids without ``end``), with padding 0 before it and ``end`` after it."""
        history, total = [0] * (order - 1), 0.0
        for word in [*ids, end]:
            total += self.log_probability(history, word)
            history = [*history[1:], word]
        return total
