"""Vocabulary shared by both domains."""

NOUNS = {
    "P": """
        man/men | homme m
        woman/women | femme f
        child/children | enfant m ; gamin m
        worker | ouvrier m ; travailleur m
        neighbour | voisin m ; riverain m @pl
        visitor | visiteur m
        friend | ami m ; camarade m
        expert | expert m ; spécialiste m
        teacher | professeur m ; enseignant m
        doctor | médecin m ; docteur m
        student | étudiant m ; élève m @pl
        manager | directeur m ; responsable m ; gérant m
        person/people | personne f
        customer | client m
        lawyer | avocat m
    """,
    "G": """
        company/companies | entreprise f ; société f ; compagnie f
        government | gouvernement m
        committee | comité m ; commission f
        team | équipe f
        association | association f
        department | service m ; département m
        school | école f
        group | groupe m
    """,
    "L": """
        house | maison f ; demeure f
        street | rue f
        building | bâtiment m ; immeuble m ; édifice m
        room | pièce f ; salle f ; chambre f
        town | ville f
        country/countries | pays m /pays
        road | route f ; chemin m
        office | bureau m /bureaux
        village | village m
        region | région f
    """,
    "O": """
        book | livre m ; ouvrage m
        letter | lettre f ; courrier m
        door | porte f
        window | fenêtre f
        car | voiture f ; auto f
        machine | machine f ; appareil m
        key | clé f
        box/boxes | boîte f ; caisse f
        picture | image f ; photo f
        document | document m
        water | eau f /eaux
        paper | papier m
        light | lumière f ; lampe f
    """,
    "A": """
        problem | problème m ; difficulté f
        question | question f
        answer | réponse f
        reason | raison f ; motif m
        plan | plan m ; projet m
        idea | idée f
        decision | décision f
        result | résultat m
        price | prix m /prix
        change | changement m ; modification f
        mistake | erreur f ; faute f
        choice | choix m /choix
        right | droit m
        need | besoin m
        example | exemple m
        risk | risque m ; danger m
        cost | coût m ; frais m /frais @pl
    """,
    "T": """
        day | jour m ; journée f
        week | semaine f
        month | mois m /mois
        year | an m ; année f
        hour | heure f
        morning | matin m ; matinée f
        evening | soir m ; soirée f
        night | nuit f
    """,
}

ADJECTIVES = {
    "*": """
        new | <nouveau^
        big | <grand ; <gros/grosse
        small | <petit
        old | <vieux^ ; ancien
        good | <bon/bonne
        bad | <mauvais
        first | <premier
        last | <dernier
        important | important ; <important ; majeur
        different | différent
        young | <jeune
        beautiful | <beau^ ; magnifique
        local | local
        large | <vaste ; <grand ; important
        main | principal
        simple | simple
        long | <long/longue
        famous | célèbre ; <célèbre ; renommé
        strange | étrange ; bizarre
        expensive | cher/chère ; coûteux
        useful | utile
        possible | possible ; éventuel
        serious | grave ; sérieux
        public | public/publique
        recent | récent
        other | <autre
        same | <même
        necessary | nécessaire ; indispensable
    """,
}

VERBS = """
    see/saw/seen | voir ; apercevoir | PG>PVOLG
    find/found/found | trouver ; découvrir | PG>POAV
    know/knew/known | connaître | PG>PLGA
    want/wanted/wanted | vouloir ; souhaiter | PG>I
    need/needed/needed | avoir besoin de ; nécessiter | PG>OPA
    take/took/taken | prendre | PG>O
    give/gave/given | donner ; offrir ; remettre | PG>OA>P
    show/showed/shown | montrer ; présenter | PG>OA>P
    help/helped/helped | aider | PG>PG
    open/opened/opened | ouvrir | PG>OLG
    close/closed/closed | fermer | PG>OLG
    leave/left/left | quitter | PG>LG
    buy/bought/bought | acheter ; acquérir | PG>OVL
    sell/sold/sold | vendre ; céder | PG>OVL
    begin/began/begun | commencer ; débuter | EA>
    continue/continued/continued | continuer ; se poursuivre | EA>
    arrive/arrived/arrived | arriver | PV>
    come back/came back/come back | revenir ; rentrer | PV>
    wait for/waited for/waited for | attendre | PG>PVA
    look for/looked for/looked for | chercher ; rechercher | PG>POA
    talk about/talked about/talked about | parler de ; discuter de | PG>AOLE
    change/changed/changed | changer ; modifier | PG>OA
    accept/accepted/accepted | accepter | PG>AOE
    refuse/refused/refused | refuser de | PG>I
    decide/decided/decided | décider de ; choisir de | PG>I
    try/tried/tried | essayer de ; tenter de | PG>I
    hope/hoped/hoped | espérer | PG>I
    write/wrote/written | écrire ; rédiger | PG>O
    understand/understood/understood | comprendre ; saisir | PG>A
    work/worked/worked | travailler ; œuvrer | PG>
    explain/explained/explained | expliquer ; exposer | PG>A>P
    prepare/prepared/prepared | préparer | PG>EOA
    follow/followed/followed | suivre | PG>PVA
    pay for/paid for/paid for | payer ; régler | PG>OVE
    think about/thought about/thought about | penser à ; réfléchir à | PG>AE
    take part in/took part in/taken part in | participer à ; prendre part à | PG>E
    take care of/took care of/taken care of | s'occuper de ; prendre soin de | PG>POV
"""

SAYING = """
    say/said/said | dire ; déclarer ; affirmer
    think/thought/thought | penser ; croire ; estimer
    announce/announced/announced | annoncer
    explain/explained/explained | expliquer
    know/knew/known | savoir
    add/added/added | ajouter
    confirm/confirmed/confirmed | confirmer
    believe/believed/believed | croire
"""

# English | French; a manner adverb follows the verb
ADVERBS = """
    quickly | rapidement ; vite
    slowly | lentement
    often | souvent ; fréquemment
    always | toujours
    already | déjà
    carefully | soigneusement ; avec soin
    quietly | discrètement ; sans bruit
    finally | enfin ; finalement
    together | ensemble
    again | de nouveau ; encore
    well | bien
    easily | facilement ; sans peine
    really | vraiment ; réellement
    immediately | immédiatement ; aussitôt ; sur-le-champ
"""

OPENINGS = """
    today | aujourd'hui
    yesterday | hier
    this morning | ce matin
    last week | la semaine dernière ; la semaine passée
    last year | l'an dernier ; l'année dernière
    however | cependant ; toutefois ; pourtant
    moreover | de plus ; en outre ; par ailleurs
    for example | par exemple
    in fact | en fait ; en réalité
    as a result | en conséquence ; par conséquent
    fortunately | heureusement ; par bonheur
    of course | bien sûr ; évidemment
    at the end of the day | en fin de compte ; au bout du compte
    sooner or later | tôt ou tard
    for the time being | pour l'instant ; pour le moment
    little by little | peu à peu ; petit à petit
"""

JOINING = """
    when | quand ; lorsque
    because | parce que ; car
    although | bien que+ ; quoique+
    if | si
    while | pendant que ; tandis que
    before | avant que+
    as soon as | dès que ; aussitôt que
    since | puisque ; comme
    after | après que
"""
