"""Train the two language models of one language that data selection compares (Moore and Lewis 2010).

The in-domain text is split in a fixed way: of every --hold-out blocks of up to 50 consecutive lines the last is held
out (whole blocks, because neighbouring lines come from one document). The in-domain model is trained on the rest; the
held-out lines go to DIR/held-out.gz, on which ``selection select`` measures. The two languages of a bitext are split
at the same lines.

The general model is trained on lines of the pool drawn at random until they have as many words as the in-domain
training text. A model likes the very lines it was trained on, so these would never be selected: a second general model,
from a second such sample without a line of the first, is there to score them. All models have the same vocabulary: the
words that occur at least --min-count times in the in-domain training text; every other word is counted as ``<unk>``, so
that rare words cannot make one model look better.

Writes DIR/in-domain.arpa.gz, DIR/general.arpa.gz, DIR/general.gz (its training lines), DIR/general2.arpa.gz,
DIR/held-out.gz and DIR/models.json.
"""

IN_DOMAIN, GENERAL, GENERAL2 = "in-domain.arpa.gz", "general.arpa.gz", "general2.arpa.gz"

GENERAL_TEXT, HELD_OUT = "general.gz", "held-out.gz"
