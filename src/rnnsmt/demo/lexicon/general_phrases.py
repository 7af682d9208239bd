"""Fixed expressions of technical manuals and law: English | French, with equivalent translations after a semicolon."""

MODIFIERS = """
    storage | de stockage ; de mémoire
    safety | de sécurité ; de sûreté
    power | d'alimentation ; électrique!
    user | d'utilisateur ; de l'utilisateur
    system | du système ; système!
    test | d'essai ; de test
    access | d'accès
    insurance | d'assurance
    pension | de pension ; de retraite
    data | de données
    input | d'entrée
    output | de sortie
    steel | en acier
"""

PLACES = """
    on the screen | à l'écran ; sur l'écran
    in the current directory | dans le répertoire courant
    in the prescribed form | en la forme réglementaire ; selon le modèle réglementaire
    at the back of the device | à l'arrière de l'appareil ; au dos de l'appareil
    on the control panel | sur le panneau de commande
    in the province | dans la province
    in writing | par écrit
    in the register | au registre ; dans le registre
    in whole or in part | en tout ou en partie ; totalement ou partiellement
    by default | par défaut
    on the network | sur le réseau
    in the main menu | dans le menu principal
"""

TIMES = """
    at any time | à tout moment ; en tout temps
    during the installation | pendant l'installation ; au cours de l'installation
    before the hearing | avant l'audience
    within thirty days | dans les trente jours ; dans un délai de trente jours
    from time to time | à l'occasion ; de temps à autre
    on the first day of the month | le premier jour du mois
    without delay | sans délai ; sans tarder
    in accordance with the regulations | conformément au règlement ; selon le règlement
    for the purposes of this section | pour l'application du présent article ; aux fins du présent article
    under this Act | en vertu de la présente loi ; sous le régime de la présente loi
    subject to subsection (2) | sous réserve du paragraphe (2)
    if necessary | si nécessaire ; au besoin ; le cas échéant
    in case of failure | en cas de panne
    after each use | après chaque utilisation
    at start-up | au démarrage
"""

# whole lines that occur repeatedly
BOILERPLATE = """
    All rights reserved. | Tous droits réservés.
    Click here for more information. | Cliquez ici pour plus d'informations.
    See also | Voir aussi
    Back to top | Haut de page
    Table of contents | Table des matières
    Warning: risk of electric shock. | Attention : risque de choc électrique.
    This page is intentionally left blank. | Cette page est laissée blanche intentionnellement.
    For internal use only. | À usage interne exclusivement.
    Terms of use | Conditions d'utilisation
    Repealed. | Abrogé.
    Print this page | Imprimer cette page
    Previous page - Next page | Page précédente - Page suivante
"""
