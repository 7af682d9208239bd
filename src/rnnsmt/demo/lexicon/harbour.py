"""In-domain vocabulary: news of a harbour town."""

NOUNS = {
    "P": """
        fisherman/fishermen | pêcheur m ; marin-pêcheur m /marins-pêcheurs
        sailor | marin m ; matelot m
        captain | capitaine m ; commandant m
        mayor | maire m
        resident | habitant m ; résident m
        tourist | touriste m ; vacancier m @pl
        harbour master | capitaine de port m /capitaines de port
        journalist | journaliste m
        firefighter | pompier m ; sapeur-pompier m /sapeurs-pompiers
        baker | boulanger m
        shopkeeper | commerçant m
        passenger | passager m ; voyageur m
        diver | plongeur m
        lighthouse keeper | gardien de phare m /gardiens de phare
        nurse | infirmière f
        dock worker | docker m ; ouvrier du port m /ouvriers du port
        driver | chauffeur m ; conducteur m
        pilot | pilote m
        smuggler | contrebandier m
        officer | agent m ; officier m
        widow | veuve f
        councillor | conseiller municipal m /conseillers municipaux
        swimmer | nageur m ; baigneur m @pl
        judge | juge m
        guest | invité m
        shipowner | armateur m
    """,
    "G": """
        crew | équipage m
        town council | conseil municipal m /conseils municipaux
        police | police f
        coast guard | garde-côte m /garde-côtes
        board | conseil d'administration m /conseils d'administration
        union | syndicat m
        newspaper | journal m /journaux ; quotidien m
        cooperative | coopérative f
        shipyard | chantier naval m /chantiers navals
        fishing club | club de pêche m /clubs de pêche
        orchestra | orchestre m
        port authority/port authorities | autorité portuaire f
        customs office | bureau de douane m /bureaux de douane
    """,
    "V": """
        boat | bateau m /bateaux ; barque f @adj
        ship | navire m ; bateau m /bateaux
        vessel | navire m ; bâtiment m
        trawler | chalutier m
        ferry/ferries | ferry m /ferrys ; traversier m
        sailing boat | voilier m
        lifeboat | canot de sauvetage m /canots de sauvetage
        tanker | pétrolier m
        barge | péniche f
        tug | remorqueur m
        yacht | yacht m
        fleet | flotte f ; flottille f
        cargo ship | cargo m
        train | train m
        bus/buses | bus m /bus ; autobus m /autobus
    """,
    "O": """
        net | filet m
        rope | corde f ; cordage m
        anchor | ancre f
        catch/catches | prise f ; pêche f
        fish/fish | poisson m
        lobster | *homard m
        oyster | huître f
        sardine | sardine f
        sail | voile f
        engine | moteur m
        crane | grue f
        container | conteneur m
        statue | statue f
        bridge | pont m
        deck | pont m
        case | caisse f ; caissette f
        bell | cloche f
        flag | drapeau m /drapeaux ; pavillon m
        map | carte f
        lamp | lanterne f ; lampe f
        file | lime f
        cargo/cargoes | cargaison f ; chargement m
        buoy | bouée f
        bar | bar m
        watch/watches | montre f
        plant | plante f
        crate | cageot m ; caisse f
    """,
    "L": """
        harbour | port m
        quay | quai m
        beach/beaches | plage f
        lighthouse | phare m
        market | marché m
        fish market | marché aux poissons m /marchés aux poissons ; criée f
        island | île f
        coast | côte f ; littoral m /littoraux
        bay | baie f
        old town | vieille ville f /vieilles villes
        church/churches | église f
        hotel | hôtel m
        bank | rive f ; berge f
        dike | digue f
        hospital | hôpital m /hôpitaux
        museum | musée m
        square | place f
        river | rivière f ; fleuve m
        town hall | mairie f ; hôtel de ville m /hôtels de ville
        warehouse | entrepôt m ; *hangar m
        cliff | falaise f
        café | café m
        station | gare f
        court | tribunal m /tribunaux
    """,
    "A": """
        tide | marée f
        weather | temps m /temps ; météo f
        accident | accident m
        tradition | tradition f
        charge | accusation f
        bill | addition f ; note f
        fishing quota | quota de pêche m /quotas de pêche
        investigation | enquête f
        pollution | pollution f
        memory/memories | souvenir m
        wind | vent m
        budget | budget m
        story/stories | histoire f ; récit m
        season | saison f
        title | titre m
        rescue | sauvetage m ; secours m /secours
        address/addresses | discours m /discours ; allocution f
        job | emploi m ; poste m
        current | courant m
        trade | commerce m
    """,
    "E": """
        storm | tempête f ; orage m
        strike | grève f
        festival | festival m ; fête f @adj
        race | course f ; régate f
        party/parties | fête f ; soirée f
        meeting | réunion f ; assemblée f
        election | élection f
        fire | incendie m ; feu m /feux
        shipwreck | naufrage m
        flood | inondation f
        concert | concert m
        opening | ouverture f ; inauguration f
        trial | procès m /procès
        match/matches | match m /matchs ; rencontre f
        wedding | mariage m ; noces f /noces @pl
        release | sortie f
        spring | printemps m /printemps
    """,
}

ADJECTIVES = {
    "P": """
        happy | heureux ; content
        tired | fatigué ; épuisé
        angry | furieux ; en colère!
        proud | fier/fière
        worried | inquiet/inquiète ; préoccupé
        brave | courageux ; <brave
        retired | retraité ; à la retraite!
        drunk | ivre ; saoul
        wounded | blessé
        unknown | inconnu
    """,
    "VOLAEG": """
        red | rouge
        white | blanc/blanche
        blue | bleu
        wooden | en bois! ; de bois!
        broken | cassé ; brisé
        heavy | lourd ; pesant
        light | clair
        fresh | frais/fraîche
        hard | dur
        rusty | rouillé
        foreign | étranger/étrangère
        empty | vide ; désert
        violent | violent
        terrible | terrible ; <terrible ; affreux
        dangerous | dangereux ; périlleux
        historic | historique
        annual | annuel
        traditional | traditionnel
        quiet | calme ; tranquille ; paisible
        narrow | étroit
        sunny | ensoleillé
        maritime | maritime
        rich | riche
        northern | du nord! ; septentrional
    """,
}

VERBS = """
    catch/caught/caught | pêcher ; attraper | PV>O
    sail/sailed/sailed | naviguer | PV>
    sink/sank/sunk | couler ; sombrer | V>
    save/saved/saved | sauver ; secourir | PGV>PV
    repair/repaired/repaired | réparer ; remettre en état | PG>VOL
    unload/unloaded/unloaded | décharger ; débarquer | PGV>O
    destroy/destroyed/destroyed | détruire ; anéantir | E>OVL
    damage/damaged/damaged | endommager ; abîmer | E>OVL
    attract/attracted/attracted | attirer | EL>P
    arrest/arrested/arrested | arrêter ; interpeller | G>P
    win/won/won | gagner ; remporter | PG>E
    lose/lost/lost | perdre | PGV>OE
    organize/organized/organized | organiser | PG>E
    cross/crossed/crossed | traverser ; franchir | PV>L
    approach/approached/approached | approcher de ; s'approcher de | PV>L
    enter/entered/entered | entrer dans ; pénétrer dans | PV>L
    visit/visited/visited | visiter | PG>L
    protect/protected/protected | protéger ; défendre | PG>LVP
    celebrate/celebrated/celebrated | célébrer ; fêter | PG>E
    build/built/built | construire ; bâtir | PG>LV
    welcome/welcomed/welcomed | accueillir ; recevoir | PGL>P
    hear/heard/heard | entendre | P>O
    paint/painted/painted | peindre | P>VO
    steal/stole/stolen | voler ; dérober | P>OV
    criticize/criticized/criticized | critiquer ; dénoncer | PG>PGA
    support/supported/supported | soutenir ; appuyer | PG>PGA
    set sail/set sail/set sail | prendre la mer ; appareiller | PV>
    run aground/ran aground/run aground | s'échouer | V>
    cast off/cast off/cast off | larguer les amarres | PV>
    go fishing/went fishing/gone fishing | aller à la pêche ; partir pêcher | P>
    fall asleep/fell asleep/fallen asleep | s'endormir | P>
    run/ran/run | courir | P>
    sing/sang/sung | chanter | P>
    disappear/disappeared/disappeared | disparaître | PV>
    protest/protested/protested | manifester ; protester | PG>
    die/died/died | mourir ; décéder | P>
    remember/remembered/remembered | se souvenir de ; se rappeler | P>PEA
    attend/attended/attended | assister à ; participer à | PG>E
    kick the bucket/kicked the bucket/kicked the bucket | casser sa pipe | P>
    clear/cleared/cleared | dégager ; déblayer | PG>LV
    issue/issued/issued | publier ; diffuser | G>OA
    charge/charged/charged | inculper | G>P
    draw/drew/drawn | dessiner | P>OLV
    hold/held/held | organiser ; tenir | G>E
"""

# complements of nouns: English modifier | French complement
MODIFIERS = """
    harbour | du port
    fishing | de pêche
    tourist | touristique! ; pour touristes
    rescue | de secours
    summer | d'été ; estival!
    night | de nuit
    steel | d'acier ; en acier
    sea | de mer
    town | de la ville ; municipal!
"""

PLACES = """
    in the harbour | dans le port ; au port
    on the quay | sur le quai
    at sea | en mer
    near the lighthouse | près du phare ; à proximité du phare
    off the coast | au large ; au large de la côte
    in the old town | dans la vieille ville
    on board | à bord
    on the beach | sur la plage
    at the town hall | à la mairie ; à l'hôtel de ville
    in front of the church | devant l'église
    along the coast | le long de la côte ; le long du littoral
    at the fish market | au marché aux poissons ; à la criée
    behind the warehouse | derrière l'entrepôt ; derrière le *hangar
"""

TIMES = """
    on Monday | lundi
    on Friday | vendredi
    on Sunday | dimanche
    every morning | chaque matin ; tous les matins
    during the night | pendant la nuit ; dans la nuit ; au cours de la nuit
    at dawn | à l'aube ; au point du jour
    at high tide | à marée haute
    after the storm | après la tempête
    in the summer | en été ; l'été
    all day long | toute la journée
    two years ago | il y a deux ans
    a long time ago | il y a longtemps
    next month | le mois prochain
    at the last minute | au dernier moment ; à la dernière minute
    in broad daylight | en plein jour
    in spite of the weather | malgré le mauvais temps ; en dépit du temps
    because of the wind | à cause du vent ; en raison du vent
    thanks to the volunteers | grâce aux bénévoles
"""
