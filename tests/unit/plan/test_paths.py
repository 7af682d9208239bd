"""The paths of texts."""

from dataclasses import replace

import pytest
import yaml
from snakemake.utils import update_config

from rnnsmt.config.corpus_entry import CorpusEntry, Download, Downloads
from rnnsmt.plan import paths
from rnnsmt.plan.paths import Texts
from rnnsmt.plan.validation import checked_config

from .conftest import ROOT, changed


@pytest.fixture
def several(resolved):
    """Return a configuration with two bitexts, of which selection scores one, and an in-domain monolingual corpus."""
    return changed(
        resolved,
        corpora=[
            CorpusEntry(name="near", role="bitext", source="near.en", target="near.fr", keep="all"),
            CorpusEntry(name="far", role="bitext", source="far.en", target="far.fr", keep=0.25),
            CorpusEntry(name="press", role="mono", target="press.fr", in_domain=True),
            CorpusEntry(name="old", role="dev", source="old.en", target="old.fr"),
            CorpusEntry(name="new", role="test", source="new.en", target="new.fr"),
        ],
    )


def test_corpora_by_role(several):
    texts = Texts(several)
    assert (texts.bitext, texts.mono, texts.dev, texts.test) == (["near", "far"], ["press"], ["old"], ["new"])
    assert texts.sets == ["dev", "new"]
    assert texts.pools == {"bitext": ["near", "far"], "mono": ["near", "far", "press"]}
    assert (texts.source, texts.target) == ("en", "fr")


def test_texts_of_a_kind(several):
    texts = Texts(several)
    assert texts.text("raw", "near", "en") == "results/corpus/raw/near.en.gz"
    assert texts.text("preprocessed", "near", "en") == "results/corpus/truecased/near.en.gz"
    assert texts.set_text("preprocessed", "dev", "fr") == "results/corpus/joined/truecased/dev.fr.gz"
    assert texts.set_text("tokenized", "new", "fr") == "results/corpus/tokenized/new.fr.gz"
    assert texts.part_texts("dev") == ["results/corpus/joined/truecased/dev.en.gz"]
    assert texts.part_texts("all") == [*texts.part_texts("dev"), "results/corpus/truecased/new.en.gz"]
    assert (
        Texts(changed(several, text={"truecase": False})).text("preprocessed", "near", "en")
        == "results/corpus/tokenized/near.en.gz"
    )


def test_references(several):
    """References are detokenised if the corpora are tokenised and have no raw reference."""
    assert Texts(several).plain_reference("dev") == "results/corpus/joined/raw/dev.fr.gz"
    tokenized = changed(several, text={"tokenize": False})
    assert Texts(tokenized).plain_reference("new") == "results/corpus/detokenized/new.fr.gz"
    *others, new = several.corpora
    texts = Texts(changed(tokenized, corpora=[*others, replace(new, reference="new.raw")]))
    assert texts.plain_reference("new") == "results/corpus/raw/new.fr.gz"
    assert "new.raw" in [path.rsplit("/", 1)[-1] for path in texts.raw_files()]
    assert texts.plain_reference("dev") == "results/corpus/detokenized/dev.fr.gz"


def test_in_domain_texts(several):
    texts = Texts(several)
    assert texts.in_domain_texts("en") == ["results/corpus/truecased/old.en.gz"]
    assert texts.in_domain_texts("fr") == [f"results/corpus/truecased/{name}.fr.gz" for name in ("press", "old")]


def test_selection(several):
    texts = Texts(several)
    assert texts.scored("bitext") == ["far"]
    assert texts.scored("mono") == ["far", "press"]
    assert texts.selected_text("bitext", "near", "fr") == "results/selection/bitext/near.fr.gz"
    assert texts.training_text("en") == "results/corpus/joined/train.en.gz"
    assert texts.lm_texts() == [f"results/selection/mono/{name}.fr.gz" for name in ("near", "far", "press")]
    assert texts.selection_options("bitext", ["far.tsv"], ["n.en", "n.fr", "f.en", "f.fr"]) == (
        "--corpus near=-=n.en=n.fr far=far.tsv=f.en=f.fr --keep near=all far=0.25"
    )
    assert texts.selection_options("mono", ["far.tsv", "a b.tsv"], ["n.fr", "f.fr", "p.fr"]) == (
        "--corpus near=-=n.fr far=far.tsv=f.fr 'press=a b.tsv=p.fr' --keep near=all far=0.25"
    )


def test_without_selection(several):
    """Without selection, all corpora of a pool are used; alignment reads a single corpus directly."""
    near, _, *others = several.corpora
    texts = Texts(changed(several, selection={"bitext": 1, "mono": 1}, corpora=[near, *others]))
    assert texts.scored("bitext") == texts.scored("mono") == []
    assert texts.training_text("en") == "results/corpus/truecased/near.en.gz"
    assert texts.lm_texts() == [f"results/corpus/truecased/{name}.fr.gz" for name in ("near", "press")]


def test_text_that_is_tokenised_and_has_raw_references(config):
    """In multi30k-tok.yaml, nothing is truecased or scored by selection, and no reference is detokenised."""
    update_config(config, yaml.safe_load((ROOT / "workflow/configs/multi30k-tok.yaml").read_text()))
    texts = Texts(checked_config(config))
    assert texts.training_text("en") == "results/corpus/tokenized/train.en.gz"
    assert texts.scored("bitext") == texts.scored("mono") == []
    assert texts.plain_reference("dev") == "results/corpus/joined/raw/dev.fr.gz"
    assert {texts.plain_reference(name) for name in texts.test} == {
        f"results/corpus/raw/test_{year}_flickr.fr.gz" for year in (2016, 2017)
    }


def test_downloads(several):
    """A member of an archive has the URL of the archive; both are stored in different directories."""
    address = Download(url="https://example.org/all.tgz", sha256=None, member="all/near.en")
    near, *others = several.corpora
    texts = Texts(changed(several, corpora=[replace(near, download=Downloads(source=address)), *others]))
    unpacked = texts.corpora["near"].source
    _, _, key, file = unpacked.split("/")
    assert (unpacked.startswith("results/unpacked/"), file) == (True, "near.en")
    archive, member = texts.member(key, file)
    assert member == "all/near.en"
    _, kind, key, file = archive.split("/")
    assert (kind, file) == ("downloads", "all.tgz")
    assert texts.download(key, file) == address


def test_files_of_the_model(resolved):
    assert paths.alignments(resolved) == [
        f"results/align/{aligner}/aligned.grow-diag-final-and.gz" for aligner in ("model4", "fast_align")
    ]
    assert paths.alignments(changed(resolved, alignment={"external": "mine.align"})) == ["mine.align"]
