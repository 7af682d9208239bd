"""Drawing ln Z nearer to 0 without changing a probability.

The softmax does not change when the same number is added to all output units. A linear function of the last hidden
layer, a . g + c, is such a number: taking a from every row of W_o and c from every b_o changes ln Z and nothing else.
Here a and c are those that fit ln Z of the training n-grams best. Dropout is why a network that was trained
self-normalised needs it: the penalty saw networks with units left out, and the whole one has other sums.
"""

import numpy as np
import torch

from rnnsmt.cslm.model import FeedForwardLM
from rnnsmt.cslm.ngrams import Places, contexts_at
from rnnsmt.cslm.text import Text

NGRAMS = 20_000
ROWS = 256
RIDGE = 1e-3
"""Times the mean square of a hidden unit: keeps units that are always 0 out."""


@torch.no_grad()
def centre(model: FeedForwardLM, text: Text, held_out: Places, seed: int) -> None:
    """Change W_o and b_o in place, by n-grams of the text that the seed chooses, none of them held out."""
    places = np.unique(np.random.default_rng([seed, 5]).integers(0, len(text), NGRAMS))
    places = np.setdiff1d(places, held_out, assume_unique=True)
    contexts = torch.from_numpy(contexts_at(text.words, places, model.sizes.context, text.vocabulary.eos))
    hidden, log_sums = [], []
    for part in contexts.to(model.R.device).split(ROWS):
        g = model.hidden(part)
        hidden.append(g.double().cpu().numpy())
        log_sums.append(torch.logsumexp(g @ model.W_o.t() + model.b_o, 1).double().cpu().numpy())
    x, y = np.concatenate(hidden), np.concatenate(log_sums)
    x_mean, y_mean = x.mean(0), y.mean()
    x, y = x - x_mean, y - y_mean
    square = float((x**2).mean())
    if square > np.finfo(np.float32).tiny:
        ridge = RIDGE * len(x) * square * np.eye(x.shape[1])
        a = np.linalg.solve(x.T @ x + ridge, x.T @ y)
    else:  # the hidden layer is the same everywhere
        a = np.zeros(x.shape[1])
    model.W_o.sub_(torch.from_numpy(a).to(model.W_o))
    model.b_o.sub_(float(y_mean - x_mean @ a))
