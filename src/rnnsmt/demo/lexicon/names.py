"""Given names, syllables of surnames, places and ships, months, numbers; words are separated by spaces."""

GIVEN_FEMININE = """
    Anne Marie Claire Sophie Lucie Jeanne Isabelle Nathalie Camille Margot Louise Florence Brigitte Sylvie Agathe Odile
    Renée Solange Yvonne Colette Mathilde Noémie
"""

GIVEN_MASCULINE = """
    Pierre Jean Michel Luc Antoine Paul Martin Joseph Yves René Marcel Bruno Thierry Olivier Gaston Laurent Denis Loïc
    Rémi Fabien Corentin Maxime
"""

# first, middle and last syllables
SURNAME = (
    "Ker Le Mor Tré Gué Bou Cas Dan Fou Gal Jou Lan Mar Nor Pel Quin Rou Sal Tan Var",
    "ba da ga la ma na ra ta ve le ne ri lo mo gu",
    "dec lin nec rec vel mont don zou bert gnac rault vigne not doux quet tier",
)

PLACE = (
    "Saint- Port- Val Mont Roc Pen Ploe Beau Clair Fort Bel Lan Gran Mer",
    "ma bri lu cor ner ta vo ri sa du",
    "velle ville mar nec sol court bourg lac gat rac sec",
)

SHIP = (
    "Mari Étoi Perle Auro Bella Coura Espé Fleu Gloi Hiron Indo Jolie Liber Mira",
    "le na ra ge re dia bel tin lia go",
    "lle ne tte ve ce sa ka lise",
)

# English | French
MONTHS = """
    January | janvier
    February | février
    March | mars
    April | avril
    May | mai
    June | juin
    July | juillet
    August | août
    September | septembre
    October | octobre
    November | novembre
    December | décembre
"""

NUMBERS = """
    two | deux
    three | trois
    four | quatre
    five | cinq
    six | six
    seven | sept
    eight | huit
    nine | neuf
    ten | dix
    eleven | onze
    twelve | douze
    fifteen | quinze
    twenty | vingt
    thirty | trente
    forty | quarante
    fifty | cinquante
    a hundred | cent
"""
