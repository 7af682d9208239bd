"""Operations on a tuned system: its description, translation of raw text, and archives."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from rnnsmt.base.arguments import (
    THREADS,
    InputDirectory,
    InputFile,
    InputFiles,
    OutputFile,
    Positive,
    Text,
    Threads,
    each,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field
from rnnsmt.base.operations import Printed, Values, Written, WrittenFiles, operation
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import STANDARD_STREAM
from rnnsmt.config.languages import Language
from rnnsmt.config.sections import (
    CslmCells,
    Device,
    Escape,
    Lowercase,
    Normalize,
    PopLimit,
    Preprocessing,
    Rnn,
    Search,
    StackSize,
    Tokenize,
)


@operation(version=3)
def describe(
    output_dir: Annotated[
        StrPath | Sequence[StrPath],
        Field(metavar="DIR", path="directory", expected="a path or a list of paths", several=True),
    ],
    *,
    name: Annotated[str, Field(metavar="NAME")],
    source_lang: Language,
    target_lang: Language,
    normalize: Normalize = Preprocessing.normalize,
    tokenize: Tokenize = Preprocessing.tokenize,
    escape: Escape = Preprocessing.escape,
    lowercase: Lowercase = Preprocessing.lowercase,
    prepared: InputFile | None = None,
    truecaser: InputFile | None = None,
    rnn: InputFiles | None = None,
    vocabulary: Annotated[tuple[InputFile, InputFile], Field(metavar=("SOURCE", "TARGET"))] | None = None,
    columns: Annotated[Sequence[str], Field(metavar="NAME")] = (),
    filtered: bool = False,
    pop_limit: PopLimit = Search.pop_limit,
    stack: StackSize = Search.stack,
    cslm_cells: CslmCells = Search.cslm_cells,
    examples: Text | None = None,
) -> WrittenFiles:
    r"""Write system.json, the preprocessing and decoder settings of a tuned system, to the directories of its runs.

    `rnnsmt translate` needs only system.json and the moses.ini in the same directory.

    Example, in the directory of a run of the demo corpus:

        rnnsmt translation describe --name mine --source-lang en --target-lang fr \
            --truecaser results/corpus/truecaser.en --prepared results/corpus/tokenized/general.report.json \
            --output-dir try/mine

    Args:
        output_dir: directories of the tuned runs, each containing a moses.ini.
        name: name of the system, e.g. cslm_rnn.
        source_lang: source language, two-letter code.
        target_lang: target language, two-letter code.
        prepared: report of `corpus prepare` for the training text (JSON), which contains the version of the tokeniser
            (default: the present one, with a warning).
        truecaser: truecasing model of the source language (default: keep the case).
        rnn: model file of the RNN Encoder-Decoder that scored the phrase table; one, or one for each ``output_dir``.
        vocabulary: vocabulary files of the RNN Encoder-Decoder.
        columns: names of the additional phrase table scores, from the fifth on.
        filtered: mark the phrase tables as filtered for the dev and test sets; `translate` and `pack` log a warning.
        examples: raw source text; four of its segments are the examples on the page of `rnnsmt translate --serve`.

    Returns:
        The files. ``rnnsmt.load`` loads a system from its directory.

    Raises:
        InputError: ``rnn`` and ``vocabulary`` do not match, or the report has no version of the tokeniser.
    """
    from rnnsmt.translation.description import FILE, Description
    from rnnsmt.translation.examples import choose_examples, segments

    directories, networks = [Path(path) for path in each(output_dir)], each(rnn)
    if len(networks) not in (0, 1, len(directories)) or bool(networks) != (vocabulary is not None):
        raise InputError("--rnn: specify one network, or one for each --output-dir, together with --vocabulary")
    chosen = [] if examples is None else choose_examples(segments(examples))
    tokenizer = _tokenizer(source_lang, prepared) if tokenize else None
    for number, directory in enumerate(directories):
        network = [networks[number % len(networks)], *(vocabulary or ())] if networks else []
        content = {
            "name": name,
            "source": source_lang,
            "target": target_lang,
            "normalize": normalize,
            "tokenize": tokenize,
            "escape": escape,
            "lowercase": lowercase,
            "tokenizer": tokenizer,
            "truecaser": None if truecaser is None else os.path.relpath(truecaser, directory),
            "rnn": [os.path.relpath(file, directory) for file in network],
            "columns": list(columns),
            "filtered": filtered,
            "pop_limit": pop_limit,
            "stack": stack,
            "cslm_cells": cslm_cells,
            "examples": chosen,
        }
        Description.valid(directory / FILE, content).write(directory)
    return WrittenFiles([directory / FILE for directory in directories], {"directories": len(directories)})


def _tokenizer(lang: str, report: StrPath | None) -> str:
    """Return the version of the tokeniser in a report of `corpus prepare`; without a report, the present one.

    Raises:
        InputError: the report has no version of the tokeniser of the language.
    """
    from rnnsmt.base.progress import warn
    from rnnsmt.base.reading import read_json
    from rnnsmt.corpus.tokenizer import tokenizer_version

    if report is None:
        version = tokenizer_version(lang)
        warn(
            f"the training text must be tokenised by version {version} of the tokeniser; specify its report of `corpus "
            "prepare` with --prepared, or, for text tokenised by other programs, --no-tokenize"
        )
        return version
    content = read_json(report)
    versions = content.get("tokenizer") if isinstance(content, dict) else None
    if not isinstance(versions, dict) or not isinstance(versions.get(lang), str):
        raise InputError(f"{report}: contains no version of the tokeniser of {lang}; prepare the corpus again")
    return str(versions[lang])


@operation(version=1)
def translate(
    system: Annotated[InputFile, Field(metavar="DIR")],
    input: Text = STANDARD_STREAM,
    output: OutputFile | None = None,
    *,
    format: Literal["text", "html"] = "text",
    nbest: Positive | None = None,
    explain: bool = False,
    serve: Annotated[int, Field(ge=0, metavar="PORT")] | None = None,
    host: Annotated[str, Field(metavar="ADDRESS")] | None = None,
    public_name: Annotated[Sequence[str], Field(metavar="NAME")] = (),
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> Values[str] | Printed:
    """Translate raw text with a tuned system, or serve it over HTTP.

    The preprocessing (normalisation, tokenisation, truecasing) is the same as for the system's corpora; translations
    are detruecased and detokenised. A file is read completely before translation, and only the table entries for its
    phrases are loaded. Lines from a pipe are translated as soon as they arrive. On a terminal, the program shows a
    prompt; Ctrl-D exits.

    ``serve=PORT`` keeps the system loaded and serves a web page at http://127.0.0.1:PORT and an HTTP API: POST
    /translate with {"text": "..."} as application/json, or requests from LibreTranslate clients. SIGTERM and Ctrl-C
    stop the server after the requests in progress, at most 30 seconds later; a second Ctrl-C stops it immediately.

    Examples, in the directory of a run of the demo corpus:

        rnnsmt translate --system results/systems/cslm_rnn/run1 --input letter.en --output letter.fr
        echo "The boats are in the harbour." | rnnsmt translate --system results/systems/cslm_rnn/run1 --explain
        rnnsmt translate --system results/systems/cslm_rnn/run1 --serve 8000

    Args:
        system: directory or archive of a tuned system, or the URL of an archive with its SHA-256,
            https://HOST/FILE#sha256=DIGEST.
        input: input file: raw text, one segment per line, or SGM, or an HTML document; - is standard input.
        output: output file (default: standard output, -).
        format: format of input and output. In HTML, the text between two tags is a segment. Tags inside a segment are
            moved to its beginning and end, so that elements remain nested.
        nbest: write n-best lists of this size: 0-based line number ||| translation ||| score.
        explain: also write the phrases used, their scores, alternative targets, and feature contributions.
        serve: serve a web page and an HTTP API on this port instead of reading ``input``; 0: any free port.
        host: address that ``serve`` listens on; 0.0.0.0: all interfaces (default: 127.0.0.1).
        public_name: host names that clients use to reach ``serve``, for example those of a reverse proxy, and IDs of
            browser extensions (default: local names if ``host`` is 127.0.0.1, otherwise all names).

    Returns:
        The lines of the output; none if standard input is answered line by line. The methods of ``rnnsmt.load`` return
        n-best lists and explanations as values.

    Raises:
        InputError: options cannot be combined, the system is incomplete or was trained with another tokeniser, or a
            segment is too long.
    """
    reads_stream = isinstance(input, str) and input == STANDARD_STREAM
    writes_stream = output is None or str(output) == STANDARD_STREAM
    if explain and nbest:
        raise InputError("--explain and --nbest cannot be combined")
    if format == "html" and (explain or nbest or serve is not None):
        raise InputError(
            "--format html cannot be combined with --explain, --nbest or --serve, whose requests have a format"
        )
    if serve is not None and (not (reads_stream and writes_stream) or explain or nbest):
        raise InputError(
            "--serve cannot be combined with --input, --output, --explain or --nbest; they are part of each request"
        )
    if serve is None and (host or public_name):
        raise InputError("--host and --public-name require --serve")

    from rnnsmt.base.writing import write_lines
    from rnnsmt.translation.lines import answer_lines, html_of, output_lines, texts_of, waiting_lines
    from rnnsmt.translation.markup import filled, html_escaped

    texts, template = None, None
    if format == "html":
        texts, template = html_of(input)
    elif not reads_stream:
        texts = texts_of(input)
    elif serve is None and not writes_stream:
        texts = [line for lines in waiting_lines() for line in lines]

    from rnnsmt.translation.system import System

    if serve is not None:
        from rnnsmt.translation.serve import MOST_WORDS, serve_until_stopped

        loaded = System(system, None, device, threads, MOST_WORDS)
        return Values([], serve_until_stopped(loaded, host or "127.0.0.1", serve, public_name))
    loaded = System(system, texts, device, threads)
    if template is not None and texts is not None:
        translations = [[html_escaped(text)] for text in loaded.translate_all(texts)]
        done, lines = len(texts), filled(template, translations, 0).split("\n")
    elif texts is None:
        done, lines = answer_lines(loaded, nbest, explain), []
    else:
        done, lines = len(texts), list(output_lines(loaded, texts, 0, nbest, explain))
    figures = {"segments": done, "words": loaded.words, "unknown words": loaded.unknown}
    if output is None or writes_stream:
        return Printed(lines, figures)
    write_lines(output, lines)
    return Values(lines, figures)


@operation(version=1)
def pack(
    system: InputDirectory,
    output: OutputFile,
    *,
    results: InputDirectory | None = None,
    licence: Annotated[str, Field(metavar="TEXT")] | None = None,
) -> Written:
    r"""Pack a tuned system with all its files into one archive, for use on another machine.

    NAME.tar.gz contains a directory NAME. `rnnsmt translate --system` accepts the archive, or the directory after `tar
    xf NAME.tar.gz`. With ``results``, the archive contains a model card (data, licence, scores, limits). Moses itself
    can use the moses.ini in it, unless the system has a CSLM or a joint model. A system
    whose tables are filtered (`translation describe --filtered`) translates few words of other text.

    Example, in the directory of a run of the demo corpus:

        rnnsmt pack --system results/systems/cslm_rnn/run1 --results results --licence MIT \
            --output harbour-en-fr.tar.gz

    Args:
        system: directory of a tuned system.
        output: output file: archive (.tar.gz, .tgz or .tar).
        results: `results` directory of the system's run; MODEL_CARD.md in the archive is written from its table1.json
            and provenance.json (default: pack MODEL_CARD.md in ``system`` if it exists).
        licence: licence of the system, for MODEL_CARD.md; required with ``results``.

    Returns:
        The archive; its figures are the numbers of files and of bytes.

    Raises:
        InputError: a file of the system or of its results is missing, a language model is binary, or the name of the
            archive has another ending.
    """
    from rnnsmt.translation.model_card import model_card
    from rnnsmt.translation.packing import pack_system

    if (results is None) != (not licence):
        raise InputError("--results and --licence must be used together; a model card states the licence of the system")
    directory = Path(system)
    card = None if results is None or licence is None else model_card(directory, Path(results), licence)
    return Written(Path(output), pack_system(directory, Path(output), card))
