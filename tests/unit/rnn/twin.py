"""RNN Encoder-Decoder in float64 NumPy, for one phrase pair at a time, written from the paper's equations.

It takes parameters by the names of the network's file and shares nothing else with ``rnnsmt.rnn``.
"""

import numpy as np


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


class Twin:
    def __init__(self, parameters, variant="paper"):
        self.p = {name: np.asarray(value, np.float64) for name, value in parameters.items()}
        self.variant = variant

    def encode(self, source):
        p = {name[8:]: value for name, value in self.p.items() if name.startswith("encoder.")}
        h = np.zeros(len(p["U"]))
        for word in source:
            x = p["embedding"][word] + p["b_embedding"]
            h_next = np.empty_like(h)
            r = sigmoid(p["W_r"] @ x + p["U_r"] @ h)
            z = sigmoid(p["W_z"] @ x + p["U_z"] @ h)
            reset = p["U"] @ (r * h)
            for j in range(len(h)):
                proposed = np.tanh(p["W"][j] @ x + p["b"][j] + reset[j])
                h_next[j] = z[j] * h[j] + (1 - z[j]) * proposed
            h = h_next
        return np.tanh(p["V"] @ h) if self.variant == "supplementary" else h

    def advance(self, s, e, c):
        p = {name[8:]: value for name, value in self.p.items() if name.startswith("decoder.")}
        r = sigmoid(p["W_r"] @ e + p["U_r"] @ s + p["C_r"] @ c)
        z = sigmoid(p["W_z"] @ e + p["U_z"] @ s + p["C_z"] @ c)
        if self.variant == "supplementary":
            proposed = np.tanh(p["W"] @ e + p["b"] + r * (p["U"] @ s + p["C"] @ c))
        else:
            proposed = np.tanh(p["W"] @ e + p["b"] + p["C"] @ c + p["U"] @ (r * s))
        return z * s + (1 - z) * proposed

    def distribution(self, s, e, c):
        """Return p_k of all target classes; e: embedding of the preceding word, or None."""
        p = {name[7:]: value for name, value in self.p.items() if name.startswith("output.")}
        a = p["O_h"] @ s + p["b_o"] + p["O_c"] @ c
        if e is not None:
            a = a + p["O_y"] @ e
        m = np.array([max(a[2 * i], a[2 * i + 1]) for i in range(len(a) // 2)])
        scores = p["G_l"] @ (p["G_r"] @ m) + p["b_G"]
        exponentials = np.exp(scores - scores.max())
        return exponentials / exponentials.sum()

    def log_probability(self, source, target):
        """Return log p of the target given the source; both include EOS."""
        c = self.encode(source)
        s = np.tanh(self.p["decoder.V"] @ c + self.p["decoder.b_V"])
        if self.variant == "supplementary":
            s = self.advance(s, np.zeros(self.p["decoder.embedding"].shape[1]), c)
        e, total = None, 0.0
        for word in target:
            total += np.log(self.distribution(s, e, c)[word])
            e = self.p["decoder.embedding"][word] + self.p["decoder.b_embedding"]
            s = self.advance(s, e, c)
        return total
