"""Training of a CSLM, to the end or to the next stop."""

from functools import partial

from rnnsmt.cslm.centring import centre
from rnnsmt.cslm.model_file import save_model
from rnnsmt.cslm.presets import Settings
from rnnsmt.cslm.text import Text
from rnnsmt.cslm.trainer import Trainer, perplexity
from rnnsmt.devices import Place
from rnnsmt.io import write_json
from rnnsmt.networks import loop
from rnnsmt.networks.loop import Figures, Outputs


def train(text: Text, settings: Settings, seed: int, place: Place, outputs: Outputs, threads: int = 1) -> Figures:
    """Train a network, or go on with one, and write it with its learning curve; the figures of the stage.

    Raises:
        InputError, SystemExit: as ``rnnsmt.networks.loop.run``.
    """
    return loop.run(partial(Trainer, text, settings, seed, place, threads), outputs, write)


def write(trainer: Trainer, outputs: Outputs) -> Figures:
    """Write the network and its learning curve."""
    settings, kept = trainer.settings, trainer.choose()
    about = {"settings": settings.as_dict(), "seed": trainer.seed, "kept epoch": kept["epoch"]}
    if settings.self_normalised:
        centre(trainer.model, trainer.text, trainer.held_out, trainer.seed)
    figures: Figures = {"epochs": len(trainer.history), "kept epoch": kept["epoch"]}
    if trainer.validation.number:
        log_sum = trainer.validation.measure(trainer.model).log_sum
        figures |= {"validation perplexity": kept["validation perplexity"], "validation |ln Z|": log_sum}
        figures["unigram perplexity"] = perplexity(trainer.unigram)
    if trainer.place.first:
        vocabulary, normalised = trainer.text.vocabulary, settings.self_normalised > 0
        meta = {**about, "text": trainer.text.fingerprint, "vocabulary": vocabulary.hash(), **figures}
        save_model(outputs.model, trainer.model, vocabulary, normalised, meta)
        sizes: Figures = {"parameters": trainer.model.sizes.count(), "validation ngrams": trainer.validation.number}
        sizes |= {"computed on": trainer.place.describe()}
        write_json(outputs.history, about | sizes | figures | {"curve": trainer.history})
    return figures
