"""A corpus format: objects such as ``{"en": "a house", "fr": "une maison"}``, one per line."""

import json

from rnnsmt.corpus.corpus_format import CorpusFormat


class LanguageJson(CorpusFormat):
    suffixes = (".ljson",)

    def rows(self, stream, name, langs, columns):
        source, target = langs
        for line in stream:
            pair = json.loads(line)
            yield pair[source], pair[target]

    def languages(self, stream, name):
        codes = list(json.loads(stream.readline()))
        return (codes[0], codes[1]) if len(codes) == 2 else None
