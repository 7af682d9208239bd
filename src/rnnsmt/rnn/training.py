"""Training of an RNN Encoder-Decoder, to the end or to the next stop."""

from functools import partial

from rnnsmt.devices import Place
from rnnsmt.io import write_json
from rnnsmt.networks import loop
from rnnsmt.networks.loop import Figures, Outputs
from rnnsmt.rnn.model_file import save_model, vocabularies_of
from rnnsmt.rnn.pairs import Pairs
from rnnsmt.rnn.presets import Settings
from rnnsmt.rnn.trainer import Trainer


def train(pairs: Pairs, settings: Settings, seed: int, place: Place, outputs: Outputs, threads: int = 1) -> Figures:
    """Train a network, or go on with one, and write it with its learning curve; the figures of the stage.

    Raises:
        InputError, SystemExit: as ``rnnsmt.networks.loop.run``.
    """
    return loop.run(partial(Trainer, pairs, settings, seed, place, threads), outputs, write)


def write(trainer: Trainer, outputs: Outputs) -> Figures:
    """Write the network and its learning curve."""
    last, chosen = trainer.history[-1], trainer.choose()
    about = {"settings": trainer.settings.as_dict(), "seed": trainer.seed, "kept update": chosen["update"]}
    if trainer.place.first:
        belongs = {**vocabularies_of(trainer.pairs), "pairs": trainer.pairs.fingerprint}
        save_model(outputs.model, trainer.model, about | belongs)
        sizes: Figures = {"parameters": trainer.model.sizes.count(), "held-out pairs": len(trainer.held_out)}
        sizes |= {"computed on": trainer.place.describe()}
        history = about | sizes | {"unigram log p per word": trainer.unigram, "curve": trainer.history}
        write_json(outputs.history, history)
    figures: Figures = {"updates": trainer.update, "pairs seen": trainer.seen}
    if len(trainer.held_out):
        figures |= {name: chosen[name] for name in ("held-out log p per pair", "held-out log p per word")}
        figures |= {"unigram per word": trainer.unigram}
    return figures | {"clip rate": last["clip rate"]}
