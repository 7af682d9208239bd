"""Out-of-domain vocabulary: technical manuals and law.

Many English words of the harbour domain have another meaning here.
"""

NOUNS = {
    "P": """
        user | utilisateur m ; usager m
        administrator | administrateur m
        operator | opérateur m
        minister | ministre m
        employee | employé m ; salarié m
        employer | employeur m
        owner | propriétaire m ; détenteur m
        applicant | demandeur m ; requérant m
        officer | dirigeant m ; fonctionnaire m
        technician | technicien m ; dépanneur m
        inspector | inspecteur m ; contrôleur m
        witness/witnesses | témoin m
        creditor | créancier m
        judge | juge m ; magistrat m
        shareholder | actionnaire m
        developer | développeur m ; programmeur m
        tenant | locataire m
        beneficiary/beneficiaries | bénéficiaire m ; ayant droit m /ayants droit
        trustee | fiduciaire m ; syndic m
        member | membre m
        supplier | fournisseur m
        party/parties | partie f
    """,
    "G": """
        board | conseil m ; office m
        tribunal | tribunal m /tribunaux
        court | cour f ; tribunal m /tribunaux
        bank | banque f ; établissement bancaire m /établissements bancaires
        corporation | société f ; personne morale f /personnes morales
        agency/agencies | agence f ; organisme m
        union | syndicat m
        federal government | gouvernement fédéral m /gouvernements fédéraux
        authority/authorities | autorité f ; administration f
        manufacturer | fabricant m ; constructeur m
        council | conseil m
    """,
    "V": """
        server | serveur m
        computer | ordinateur m ; machine f
        printer | imprimante f
        pump | pompe f
        system | système m
        device | appareil m ; dispositif m ; périphérique m
        motor | moteur m
        network | réseau m /réseaux
        driver | pilote m
        program | programme m ; logiciel m
        module | module m
        controller | contrôleur m ; régulateur m
        client | client m ; poste client m /postes clients
        compiler | compilateur m
        net | réseau m /réseaux
    """,
    "O": """
        file | fichier m ; dossier m
        key | touche f
        button | bouton m
        cable | câble m ; cordon m
        valve | soupape f ; vanne f
        screen | écran m ; moniteur m
        vessel | récipient m ; cuve f
        spring | ressort m
        bar | barre f
        deck | platine f
        case | boîtier m ; carter m
        folder | dossier m ; répertoire m
        function | fonction f
        table | tableau m /tableaux ; table f
        battery/batteries | batterie f ; pile f
        cover | couvercle m ; capot m
        switch/switches | interrupteur m ; commutateur m
        variable | variable f
        string | chaîne f ; chaîne de caractères f /chaînes de caractères
        form | formulaire m ; imprimé m
        object | objet m
        class/classes | classe f
        argument | argument m ; paramètre m
        line | ligne f
        page | page f
        menu | menu m
        password | mot de passe m /mots de passe
        hard drive | disque dur m /disques durs
        filter | filtre m
        fuse | fusible m
        pipe | tuyau m /tuyaux ; conduite f
        wheel | roue f
        screw | vis f /vis
        icon | icône f
        plant | usine f ; installation f
        crane | engin de levage m /engins de levage
        light | voyant m ; témoin m
    """,
    "L": """
        province | province f
        port | port m
        workplace | lieu de travail m /lieux de travail ; milieu de travail m /milieux de travail
        site | site m ; chantier m
        territory/territories | territoire m
        hard disk partition | partition du disque f /partitions du disque
        control panel | panneau de commande m /panneaux de commande ; tableau de bord m /tableaux de bord
        address/addresses | adresse f
        memory/memories | mémoire f
        library/libraries | bibliothèque f
        land | terrain m ; bien-fonds m /biens-fonds
        register | registre m
        directory/directories | répertoire m ; annuaire m
    """,
    "A": """
        charge | frais m /frais @pl ; droit m
        bill | projet de loi m /projets de loi
        act | loi f
        regulation | règlement m ; disposition f
        section | article m ; section f
        agreement | accord m ; entente f ; convention f
        contract | contrat m ; marché m
        notice | avis m /avis ; préavis m /préavis
        licence | licence f ; permis m /permis
        application | demande f ; requête f
        amount | montant m ; somme f
        interest | intérêt m
        tax/taxes | impôt m ; taxe f
        paragraph | alinéa m /alinéas ; paragraphe m
        subsection | paragraphe m
        condition | condition f ; modalité f @pl
        value | valeur f
        temperature | température f
        pressure | pression f
        speed | vitesse f ; débit m
        error | erreur f ; anomalie f
        setting | réglage m ; paramètre m
        version | version f ; mouture f
        option | option f ; possibilité f
        title | titre de propriété m /titres de propriété
        match/matches | correspondance f
        release | version f ; publication f
        liability/liabilities | responsabilité f ; passif m
        offence | infraction f ; délit m
        requirement | exigence f ; obligation f
        provision | disposition f ; stipulation f
        period | période f ; délai m
        evidence/evidence | preuve f
        benefit | prestation f ; avantage m
        current | intensité f
        maintenance | entretien m ; maintenance f
        data/data | donnée f
        property/properties | bien m ; propriété f
        case | affaire f ; cas m /cas
        watch/watches | surveillance f ; veille f
        share | action f ; part f
        power | puissance f ; alimentation f
    """,
    "E": """
        installation | installation f ; mise en place f /mises en place
        operation | opération f ; fonctionnement m
        trial | essai m
        inspection | inspection f ; contrôle m
        hearing | audience f ; audition f
        test | test m ; essai m
        update | mise à jour f /mises à jour
        failure | panne f ; défaillance f
        payment | paiement m ; versement m
        transfer | transfert m ; cession f
        review | examen m ; révision f
        procedure | procédure f ; marche à suivre f /marches à suivre
        meeting | séance f ; assemblée f
        search/searches | recherche f ; perquisition f
    """,
}

ADJECTIVES = {
    "P": """
        authorized | autorisé ; habilité
        responsible | responsable
        competent | compétent ; qualifié
        experienced | expérimenté ; chevronné
        disabled | handicapé
        eligible | admissible
        independent | indépendant ; autonome
    """,
    "VOLAEG": """
        electric | électrique
        digital | numérique ; digital
        automatic | automatique
        hard | difficile ; ardu
        light | léger/légère
        available | disponible ; accessible
        valid | valide ; en vigueur!
        legal | légal ; juridique
        applicable | applicable ; pertinent
        additional | supplémentaire ; additionnel/additionnelle
        maximum | maximal
        minimum | minimal
        current | actuel ; en cours!
        default | par défaut! ; implicite
        appropriate | approprié ; adéquat ; convenable
        federal | fédéral
        internal | interne ; intérieur
        external | externe
        technical | technique
        remote | distant ; éloigné
        empty | vide
        specific | précis ; particulier ; spécifique
        written | écrit ; par écrit!
        financial | financier
        standard | standard! ; courant ; normalisé
        optional | facultatif
        hydraulic | hydraulique
        previous | précédent ; antérieur
        following | suivant
        temporary | temporaire ; provisoire
        clear | effacé ; vierge
        sound | solvable ; sain
    """,
}

VERBS = """
    install/installed/installed | installer ; mettre en place | PG>VO
    remove/removed/removed | enlever ; retirer ; supprimer | PG>OA
    check/checked/checked | vérifier ; contrôler | PGV>OAV
    run/ran/run | exécuter ; lancer | PG>VE
    file/filed/filed | déposer ; produire | PG>A
    issue/issued/issued | délivrer ; émettre | PG>A
    clear/cleared/cleared | effacer ; vider | PGV>O
    charge/charged/charged | facturer ; imputer | PG>A
    draw/drew/drawn | prélever ; tirer | PGV>A
    hold/held/held | détenir ; maintenir | PGV>OA
    provide/provided/provided | fournir ; prévoir | PGVA>OA
    require/required/required | exiger ; nécessiter | PGVA>OAE
    replace/replaced/replaced | remplacer | PG>VO
    connect/connected/connected | brancher ; raccorder ; relier | PG>VO
    return/returned/returned | renvoyer ; retourner | PGV>OA
    apply/applied/applied | appliquer | PG>A
    comply with/complied with/complied with | se conformer à ; respecter | PGV>A
    refer to/referred to/referred to | se référer à ; renvoyer à | PGA>OA
    define/defined/defined | définir ; préciser | PGVA>OA
    use/used/used | utiliser ; se servir de ; employer | PGV>VO
    delete/deleted/deleted | supprimer ; effacer | PGV>O
    save/saved/saved | enregistrer ; sauvegarder | PGV>O
    start/started/started | démarrer ; lancer ; mettre en marche | PGV>V
    stop/stopped/stopped | arrêter ; interrompre | PGV>VE
    approve/approved/approved | approuver ; agréer | PG>AE
    specify/specified/specified | préciser ; indiquer ; spécifier | PGA>OA
    appoint/appointed/appointed | nommer ; désigner | G>P
    repeal/repealed/repealed | abroger | G>A
    amend/amended/amended | modifier ; réviser | G>A
    notify/notified/notified | aviser ; informer | PG>PG
    pay/paid/paid | payer ; verser ; acquitter | PG>A
    contain/contained/contained | contenir ; renfermer ; comporter | VOA>OA
    display/displayed/displayed | afficher ; présenter | VP>OA
    print/printed/printed | imprimer | PV>O
    create/created/created | créer ; établir | PGV>OA
    crash/crashed/crashed | planter ; se bloquer | V>
    expire/expired/expired | expirer ; prendre fin | A>
    overheat/overheated/overheated | surchauffer ; chauffer | V>
    appear/appeared/appeared | apparaître ; s'afficher | OA>
    come into force/came into force/come into force | entrer en vigueur ; prendre effet | A>
    plug in/plugged in/plugged in | brancher | PG>VO
    carry out/carried out/carried out | effectuer ; réaliser ; procéder à | PGV>E
    take into account/took into account/taken into account | tenir compte de ; prendre en compte | PG>A
    belong to/belonged to/belonged to | appartenir à | OA>PG
    depend on/depended on/depended on | dépendre de ; relever de | VAE>VAE
    recover/recovered/recovered | recouvrer ; récupérer | PGV>AO
    consist of/consisted of/consisted of | se composer de ; comprendre | VA>OA
"""
