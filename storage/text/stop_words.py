"""Stop words by language: the function words of each language that a text is searched in.

Data alone. storage/text/analysis.py leaves them out of the terms of a text, and guesses a text's
language from those that it has.
"""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """The words of a text, as written."""
    return frozenset(words.split())


STOP_WORDS: dict[str, frozenset[str]] = {
    language: word_set(words)
    for language, words in {
        "english": """a about above after again against all am an and any are aren as at be
            because been before being below between both but by can cannot could did do does
            doing down during each few for from further had has have having he her here hers
            herself him himself his how i if in into is it its itself just let me more most my
            myself no nor not now of off on once only or other ought our ours ourselves out
            over own same she should so some such than that the their theirs them themselves
            then there these they this those through to too under until up upon us very was we
            were what when where which while who whom why will with would you your yours
            yourself yourselves""",
        "german": """aber alle allem allen aller alles als also am an ander andere anderen
            auch auf aus bei beim bin bis bist da damit dann das dass dein deine deinem deinen
            deiner dem den denn der des dessen dich die dies diese diesem diesen dieser dieses
            dir doch dort du durch ein eine einem einen einer eines er es etwas euch euer eure
            für gegen gewesen hab habe haben hat hatte hatten hier hin hinter ich ihm ihn
            ihnen ihr ihre ihrem ihren ihrer im in ins ist jede jedem jeden jeder jedes jetzt
            kann kein keine keinen keiner können könnte man mein meine meinem meinen meiner
            mich mir mit muss nach nicht nichts noch nun nur ob oder ohne schon sehr sein
            seine seinem seinen seiner seit sich sie sind so soll sollte sondern über um und
            uns unser unsere unter viel vom von vor wann war waren warum was weil wenn wer
            werde werden wie wieder will wir wird wirst wo würde würden zu zum zur zwischen
            dass""",
        "french": """à ai aie ainsi après as au aucun aucune aussi autre aux avait avec avez
            avoir avons bien c ce cela ces cet cette ceux chez ci comme comment d dans de des
            donc dont du elle elles en encore entre es est et était étaient été être eu fait
            faire font ici il ils j je l la le les leur leurs lui m ma mais me même mes moi
            mon n ne ni nos notre nous on ont ou où par parce pas pendant peu peut plus pour
            pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si
            son sont sous suis sur t ta te tes toi ton tous tout toute toutes très tu un une
            vos votre vous y""",
        "spanish": """a al algo algunos ante antes aquí así aunque cada como cómo con contra
            cuál cuando cuándo de del desde donde dónde dos durante e el él ella ellas ellos
            en entre era eran eres es esa esas ese eso esos esta está estaba están estar estas
            este esto estos estoy fue fueron ha había han has hasta hay he la las le les lo
            los más me mi mis mucho muchos muy nada ni no nos nosotros nuestra nuestro o os
            otra otro para pero poco por porque qué que quien quién se sea ser si sí sido
            siempre sin sobre son soy su sus también tan tanto te tengo ti tiene tienen todo
            todos tu tus un una uno unos usted ya yo""",
        "portuguese": """a à ainda ao aos aquela aquele aqui as às até com como da das de dela
            dele deles depois do dos e é ela elas ele eles em entre era eram essa esse esta
            está estão estar estava este estou eu foi foram há isso isto já la lhe mais mas me
            mesmo meu meus minha minhas muito muitos na não nas nem no nos nós nossa nosso num
            numa o onde os ou para pela pelo por porque qual quando que quem são se sem ser
            seu seus só sobre sua suas também te tem têm tenho ter teu tu tua tudo um uma umas
            uns você vocês""",
        "italian": """a ad agli ai al alla alle allo anche ancora avere aveva che chi ci come
            con contro cosa cui da dagli dai dal dalla dalle de degli dei del della delle
            dello di dopo dove e è ed era erano essere fa fra fu gli ha hai hanno ho i il in
            io l la le lei li lo loro lui ma me mi mia mie miei mio molto ne nei nel nella
            nelle nello no noi non nostra nostro o ogni per perché però più poi qual quale
            quando quanto quella quelle quelli quello questa queste questi questo qui se sei
            si sia siamo sono sopra sta stato su sua sue sugli sui sul sulla suo suoi ti tra
            tu tua tuo tutti tutto un una uno vi voi""",
        "dutch": """aan af al alle als altijd ander andere bij ben bent daar dan dat de der
            deze die dit doch doen door dus een eens en er ge geen geweest haar had heb hebben
            heeft hem het hier hij hoe hun iemand iets ik in is ja je jij jouw jullie kan kon
            kunnen maar me meer men met mij mijn moet na naar niet niets nog nu of om omdat
            ons onze ook op over reeds te tegen toch toen tot u uit uw van veel voor waar
            waarom wanneer want waren was wat we wel werd wezen wie wij wil word worden wordt
            zal ze zei zelf zich zij zijn zo zonder zou""",
        "swedish": """all alla allt att av blev bli blir då de dem den denna deras dess det
            detta dig din dina ditt du där efter ej eller en er ett från för ha hade han hans
            har henne hennes hon honom hur här i icke in inom inte jag ju kan kunde man med
            mellan men mig min mina mitt mot mycket ni nu när någon något några och om oss på
            redan samma sig sin sina sitt ska skulle som så sådan till under upp ut utan vad
            var vara varför varit vart vem vi vid vilka vilken vilket är än åt över""",
        "danish": """ad af alle alt anden at blev blive bliver da de dem den denne der deres
            det dette dig din disse dog du efter ej eller en end er et for fra ham han hans
            har havde have hende hendes her hos hun hvad hvem hvis hvor hvordan hvorfor
            hvornår i ikke ind jeg jer kan kunne man mange med meget men mig min mine mit mod
            ned nej nogen noget nogle nu når og også om op os over på selv sig sin sine sit
            skal skulle som sådan til ud under var vi vil ville vor være været""",
        "norwegian": """alle at av bare ble blei bli blir da de deg dem den denne der deres
            det dette di din disse du eller en enn er et ett etter for fordi fra før ha hadde
            han hans har henne hennes her hun hva hvem hver hvis hvor hvordan hvorfor i ikke
            inn jeg kan kunne man mange med meg meget mellom men mer min mine mitt mot når noe
            noen nå og også om opp oss over på seg selv si sin sine sitt skal skulle slik som
            så til um ut uten var vår være vært ved vi vil ville å""",
        "finnish": """ei eivät en että ettei hän häntä he heidän heitä hänen ja jo jos joka
            jonka jossa jota kanssa kuin kuka kun koska me meidän mikä minä minua minulla
            minun minut missä mitä mutta mukaan myös ne niin niitä nyt nämä näin olen olet oli
            olivat olla ole olemme on ovat se sen siinä sinä sinun sitä sitten tai tämä tämän
            te teidän tässä tätä vaan vain vielä voi""",
        "polish": """a aby ale albo bardzo bez będzie bo był była było były być co coś czy
            czym dla do dlaczego gdy gdzie go i ich ile im ja jak jaki jako je jego jej jest
            jestem jeszcze jeśli już każdy kiedy kto która które który lub ma mam mi mnie moja
            moje może mój mu my na nad nam nas nasz nic nie nim o od on ona one oni oraz po
            pod przed przez przy są się sobie swoje ta tak także tam te tego tej ten teraz to
            tu ty tylko tym w we wszystko z za ze że żeby""",
        "czech": """a aby ale ani až bez bude budu by byl byla bylo byly být co což další dnes
            do ho i já jak jako je jeho jejich jen jeho její jestli ještě ji jsem jsi jsme
            jsou k kam kde kdo když která které který ma má mám mě mezi mi mít můj moje může
            my na nad nám nás ne než nebo není o od on ona oni pak po pod podle pokud pro proč
            protože před při s se si sice své svůj ta tak také tam te tedy ten to tohle tom tu
            ty u už v ve však všechno vy z za ze že""",
        "turkish": """acaba ama ancak aslında az bana bazı ben beni benim bir biri biz bize
            bizim bu buna bunu bunun burada çok çünkü da daha de değil diye en gibi göre hem
            hep hepsi her hiç için ile ise kadar kim kime mi mı mu mü nasıl ne neden nerede
            niçin o olan olarak oldu olduğu olmak on ona onu onun sana sen seni senin siz
            sizin şey şimdi şu var ve veya ya yani yok""",
        "romanian": """a acea aceasta această aceea acel acest acesta ai aici al ale am ar are
            as asta au avea ca că când care ce cea cel cine cu cum da dar de decât deci despre
            din după e ea ei el ele era este eu eram fi fie fost foarte iar îi îl îmi în își
            între la le lor lui mai mă mea mei mele meu mi mult nici noastră nostru nu o pe
            pentru prin sa să sale sau se si și său sunt te tot tu un una unde unei unui va vă
            voi vor""",
        "hungarian": """a abban ahhoz akkor alatt által amely ami annak az azért azok azon azt
            azzal be csak de e egy egyik el elő én ennek és ez ezek ezt fel ha hanem hiszen
            hogy hogyan ide így ill illetve is itt ki kell le legyen lehet lenne lesz lett már
            meg mert mi mint mit most nagyon ne nekem neki nem nincs ő ők olyan össze pedig s
            sem szerint te tehát több úgy után vagy vagyok valami van vannak volt voltak""",
        "indonesian": """ada adalah agar akan aku anda apa apakah atau bagaimana bahwa banyak
            belum bisa bukan dalam dan dapat dari dengan di dia hanya harus ingin ini itu jadi
            jika juga kalau kami kamu karena kata ke kepada kita lagi lebih mana masih mengapa
            mereka namun nya oleh pada para saat saja sangat saya seperti sebagai sebuah
            secara sedang semua siapa sudah tapi telah tentang tersebut tetapi tidak untuk
            yang""",
        "catalan": """a al als amb aquell aquella aquest aquesta això així cada com d de del
            dels des després doncs el ell ella ells els em en entre era eren és et ets fa fins
            ha han has havia hi ho i ja jo l la les li lo meu meva meus molt molts no
            nosaltres o on per però perquè més què qual quan que qui sense ser seu seva si
            sobre sóc som són seus tan també te tenir teu teva tot tots tu un una uns us va
            vaig van vostre""",
        "russian": """а без более бы был была были было быть в вам вас вот все всего всех вы
            где да даже для до его ее её если есть еще ещё же за здесь и из или им их к как
            какая какой когда кто куда ли лучше между меня мне много может мой моя мы на над
            надо нас не него нее нет ни них но ну о об один он она они от очень по под после
            потом почему при про с сам свою себя со так также там те тебя тем то того тоже
            только том ты у уже хотя чего чей чем через что чтобы эта эти это этого этой этом
            этот эту я""",
        "arabic": """في من على إلى الى عن مع هذا هذه ذلك تلك التي الذي الذين هو هي هم نحن أنا
            انا أنت انت ما ماذا متى أين اين كيف لماذا هل لا لم لن قد كان كانت يكون و أو او ثم
            أن ان إن كل بعض بين بعد قبل عند حتى إذا اذا لكن أي اي كما أيضا به بها له لها فيه
            فيها منه منها عليه عليها ليس غير""",
        "hindi": """का की के को में से है हैं था थी थे और या पर यह ये वह वे मैं हम तुम आप उस
            इस उन इन जो कि ने तो भी ही एक कौन क्या कब कहाँ कैसे क्यों हो होता होती होते हुआ
            हुई कर करना करने किया गया गई लिए साथ तक अपना अपनी अपने मेरा मेरी मेरे उसका उसकी
            उसके नहीं न ना वाला वाली वाले रहा रही रहे सकता जब तब अब""",
        "greek": """ο η το οι τα του τησ των τον την και κι να με σε από απο για στο στη στην
            στον στα στουσ στισ που πωσ πώσ τι ποιοσ ποια ποιο πού πότε γιατί δεν δε μη μην θα
            είναι ειναι ήταν εἶναι έχω έχει ένα ένασ μια μία αυτό αυτόσ αυτή αυτά εγώ εσύ
            εμείσ μου σου μασ σασ τουσ τισ αν αλλά ή είτε όταν όπωσ ωσ σαν πολύ τόσο πιο""",
    }.items()
}  # fmt: skip

# Function words that an English text may well contain as ordinary words or names: weaker evidence
# than their rarity suggests.
ENGLISH_TOO = word_set(
    """ad ai al all alla also am are as at au be ben bin by can care come con da dare de den
    der des di die dig do dog doe don due e el en end er era es et eu fa far fast fi fin for
    fra from go ha ham has hat he her hi him his ho hun i il in ja jo kan la las le li lo los
    ma man mas me men met mi min mine mit mod moi most mot mu my na no nu o of om on one op or
    os over pa par pas per plus pour pro qui que se sees si sin sit so son su sur ta tag te
    tot the to ton top tu u un under up us va van var ve vi via voi vor want war was we wel
    who wie will wo y ya ze zo here"""
)
