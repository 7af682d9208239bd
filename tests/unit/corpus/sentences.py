"""English, French and German words, from which tests make text whose language can be guessed."""

WORDS = {
    "en": "the boats of this town are in their harbour and she has not read which letters were written by them with it",
    "fr": "les bateaux de cette ville sont dans leur port et elle ne lit pas ces lettres qui ont été écrites par eux",
    "de": "die Boote dieser Stadt sind in ihrem Hafen und sie hat nicht gelesen welche Briefe von ihnen kommen wie",
}
