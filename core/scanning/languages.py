r"""Phrases in other languages that order an agent to ignore its instructions.

Each language has verbs (beginnings of words), words for "all" or "previous", and words for "instructions". A text
matches if the three are close together, with the middle one before or after the instructions. The words are normalized
like texts: without accents, with Latin letters for Cyrillic look-alikes.
"""

from __future__ import annotations

from typing import Final

from core.scanning.normalization import normalize_text

_LETTERS: Final = {
    "Spanish": (
        "ignor|olvid|omit|descart|desoye|desestim|anul|prescind|no sigas|no hagas caso",
        "tod[ao]s\\b|cualquier|anterior|previ[ao]s\\b|tus\\b|sus\\b|del sistema|originales|iniciales|l[ao]s\\b|lo que",
        "instruccion|regla|orden|indicacion|directri|restriccion|norma|mensaje|dijeron|dicho|pidieron|pedido",
    ),
    "French": (
        "ignor|oubli|neglig|annul|reinitialis|efface|contourn|ne suis pas|ne tiens pas compte|fais abstraction",
        "toute?s?\\b|tous\\b|precedent|anterieur|les\\b|tes\\b|vos\\b|du systeme|initiales",
        "instruction|consigne|regle|directive|ordre|restriction|message|(?:ete|ai) dit\\b",
    ),
    "German": (
        "ignorier|vergiss|verwirf|missacht|uberge[hx]|verges?st|uberschreib|umgeh|befolge nicht|setze? ",
        "alle[ns]?\\b|vorherig|bisherig|vorig|fruher|obig|deine|ihre|ursprunglich|des systems|die\\b|den\\b",
        "anweisung|instruktion|regel|vorgabe|richtlinie|befehl|einschrankung|vorschrift|sicherheitsr|gesagt",
    ),
    "Portuguese": (
        "ignor|esquec|desconsider|descart|omita|anul|nao siga|deixe de lado",
        "tod[ao]s\\b|tudo\\b|anterior|previ[ao]s\\b|suas\\b|do sistema|originais|iniciais|as\\b|os\\b",
        "instruco|instrucao|regra|ordem|ordens|diretri|restric|mensage|orientac|foi dito|disse",
    ),
    "Italian": (
        "ignor|dimentic|trascur|scart|annull|tralasci|non seguire|disattend",
        "tutt[ei]\\b|precedenti|anterior[ei]|tue\\b|sue\\b|del sistema|originali|iniziali|le\\b|gli\\b",
        "istruzion|regol|ordin|direttiv|restrizion|indicazion|messagg|stato detto",
    ),
    "Dutch": (
        "negeer|vergeet|overtreed|omzeil|sla .{0,20}over|volg .{0,20}niet",
        "alle\\b|vorige|eerdere|voorgaande|bovenstaande|je\\b|jouw\\b|van het systeem",
        "instructie|regel|opdracht|richtlijn|aanwijzing|beperking",
    ),
    "Polish": (
        "zignoruj|ignoruj|zapomnij|pomin|odrzuc|anuluj|nie stosuj",
        "wszystkie|wszelkie|poprzedni|wczesniejsz|swoje|systemow|dotychczasow",
        "instrukcj|polecen|zasad|regul|wytyczn|ograniczen",
    ),
    "Czech": (
        "ignoruj|zapomen|prehlizej|zrus|nedodrzuj",
        "vsechn|predchozi|drivejsi|sve\\b|systemov|puvodni",
        "instrukc|pokyn|pravid|prikaz|omezen",
    ),
    "Swedish, Danish and Norwegian": (
        "ignorera|ignorer|glom|glem|strunta i|bortse fra|se bort fra|asidosatt|tilsidesatt",
        "alla\\b|alle\\b|tidigare|tidligere|foregaende|foregaaende|forrige|dina\\b|dine\\b|systemets",
        "instruktion|instruks|regler|anvisning|riktlinje|retningslinje",
    ),
    "Turkish": (
        "yok say|unut|gormezden gel|dikkate alma|gecersiz k|goz ardi et|gozardi",
        "onceki|tum|butun|eski|yukaridaki|sistem|senin",
        "talimat|kural|komut|yonerge|emir|kisitlama",
    ),
    "Indonesian and Malay": (
        "abaikan|lupakan|langgar|hiraukan|kesampingkan",
        "semua|sebelumnya|terdahulu|terdahulu|seluruh|sistem",
        "instruksi|perintah|aturan|arahan|panduan|batasan",
    ),
    "Vietnamese": (
        "bo qua|phot lo|quen (?:di|het)|huy bo|khong tuan theo",
        "tat ca|truoc|moi\\b|cu\\b|he thong",
        "huong dan|chi thi|lenh|quy tac|chi dan|quy dinh|yeu cau",
    ),
    "Russian": (
        "игнорир|проигнорир|забуд|отмени|отменя|отбрось|не следуй|не соблюдай|сбрось|обойди|пренебре|не обращай вниман",
        "все|предыдущ|прежн|прошл|свои|твои|систем|ранее|вышестоящ|изначальн",
        "инструкц|правил|указан|команд|распоряжен|ограничен|директив|установк",
    ),
    "Ukrainian": (
        "ігноруй|проігноруй|забудь|скасуй|відкинь|не дотримуйся",
        "усі|всі|попередн|свої|твої|систем",
        "інструкці|правил|вказівк|команд|обмежен|наказ",
    ),
    "Greek": (
        "αγνοησ|ξεχασ|παραβλεψ|ακυρωσ",
        "ολες|προηγουμεν|ολους|συστηματ",
        "οδηγι|κανον|εντολ|περιορισμ",
    ),
    "Arabic": (
        "تجاهل|انس|تجاوز|الغ|لا تتبع|اهمل",
        "جميع|كل|السابق|النظام",
        "التعليمات|القواعد|الاوامر|الأوامر|تعليمات|القيود|الارشادات|الإرشادات",
    ),
    "Persian": ("نادیده بگیر|فراموش کن|صرف نظر کن", "همه|تمام|قبلی|پیشین|سیستم", "دستور|قوانین|قواعد|محدودیت|راهنما"),
    "Hebrew": ("התעלם|התעלמי|שכח|בטל|תתעלם", "כל|הקודמ|המערכת|קודמ", "ההוראות|הוראות|הכללים|הנחיות|ההנחיות|הפקודות"),
    "Hindi": (
        "अनदेखा|नज़रअंदाज़|नजरअंदाज|भूल जा|अनदेखी|उपेक्षा|रद्द",
        "सभी|पिछले|पूर्व|पहले|सिस्टम",
        "निर्देश|नियम|आदेश|हिदायत|प्रतिबंध",
    ),
    "Thai": ("ละเว้น|เพิกเฉย|ไม่ต้องสนใจ|ลืม|ข้าม", "ทั้งหมด|ก่อนหน้า|เดิม|ระบบ", "คำสั่ง|คำแนะนำ|กฎ|ข้อกำหนด|ข้อจำกัด"),
    "Chinese": (
        "忽略|无视|忽視|無視|忘记|忘記|忘掉|放弃|放棄|不要遵守|不要遵循|不理会|绕过|繞過|取消|覆盖|抛弃|停止遵循",
        "之前|以前|先前|以上|上述|前面|所有|一切|全部|原来|原有|系统|系統|你的|此前|既有",
        "指令|指示|规则|規則|提示|命令|要求|限制|约束|約束|说明|設定|设定|准则",
    ),
    "Japanese": (
        "無視|忘れ|従わな|破棄|取り消|上書き|スキップ",
        "以前|前の|上記|すべて|全て|これまで|システム|今まで|先ほど|従来|全ての",
        "指示|命令|制約|ルール|規則|プロンプト|設定|ガイドライン|制限",
    ),
    "Korean": (
        "무시|잊어|잊으|따르지|취소|버려|무효",
        "이전|모든|앞의|앞선|위의|시스템|기존|지금까지|모두",
        "지시|명령|규칙|지침|프롬프트|제한|설정|제약",
    ),
}
_VERB_LAST: Final = ("Turkish",)
_REACH: Final = 40
"""Characters between verb and object, whose order depends on the language."""


def _patterns(verbs: str, all_or_previous: str, instructions: str) -> tuple[str, str]:
    # RE2's \\b knows ASCII letters only; beginnings of words in other alphabets are matched anywhere.
    start = r"\b" if verbs.isascii() else ""
    near = rf"[^.\n。！？]{{0,{_REACH}}}?{start}"
    both = rf"(?:(?:{all_or_previous}){near}(?:{instructions})|(?:{instructions}){near}(?:{all_or_previous}))"
    return rf"{start}(?:{verbs}){near}{both}", rf"{both}{near}(?:{verbs})"


OVERRIDES: Final = tuple(
    # The verb may be at the end in the languages of other alphabets.
    _patterns(*map(normalize_text, words))[: 2 if name in _VERB_LAST or not words[0].isascii() else 1]
    for name, words in _LETTERS.items()
)
"""Build the patterns of each language."""

_SECRETS: Final = {
    "Spanish": (
        "muestra|revela|dame|envia|imprime|di(?:me)?|comparte",
        "contrasena|clave|credencial|secreto|prompt del sistema",
    ),
    "French": (
        "affiche|montre|donne|envoie|revele|divulgue",
        "mot de passe|cle api|cles api|identifiants|jeton|prompt systeme",
    ),
    "German": ("zeige?|gib|nenne|sende|schick|verrate|gebe", "passwort|passworter|schlussel|zugangsdaten|systemprompt"),
    "Portuguese": ("mostre|revele|envie|exiba|imprima|diga", "senha|chave|credencia|segredo|prompt do sistema"),
    "Italian": ("mostra|rivela|invia|dammi|stampa", "password|chiav|credenzial|segret"),
    "Dutch": ("toon|geef|stuur|onthul", "wachtwoord|sleutel|geheim|inloggegevens"),
    "Polish": ("pokaz|wyswietl|podaj|wyslij|ujawnij", "hasl|klucz|token|poufn"),
    "Turkish": ("goster|gonder|yazdir|acikla", "sifre|parola|anahtar|gizli"),
    "Indonesian": ("tampilkan|kirim|berikan|tunjukkan", "kata sandi|kunci|rahasia"),
    "Vietnamese": ("hien thi|gui|tiet lo|cho toi", "mat khau|khoa|bi mat"),
    "Russian": ("покажи|выведи|отправь|дай|раскрой|пришли", "парол|ключ|токен|промпт|секрет|учетн"),
    "Arabic": ("اعرض|اظهر|أظهر|ارسل|أرسل|اكشف", "كلمة المرور|المفتاح|السر"),
    "Hindi": ("दिखा|भेज|बता", "पासवर्ड|कुंजी|गुप्त"),
    "Chinese": (
        "显示|輸出|输出|告诉|给我|泄露|打印|列出|发送|顯示",
        "密钥|密鑰|密码|密碼|令牌|系统提示|系統提示|凭证|凭据|口令|敏感信息",
    ),
    "Japanese": ("表示|出力|教えて|送信|開示", "パスワード|システムプロンプト|秘密|トークン|認証情報|キー"),
    "Korean": ("출력|보여|알려|표시|전송|공개", "비밀번호|시스템 프롬프트|토큰|비밀키|인증"),
}


def _request(verbs: str, secrets: str) -> str:
    start = r"\b" if verbs.isascii() else ""
    near = rf"[^.\n。！？]{{0,{_REACH}}}?{start}"
    return rf"{start}(?:{verbs}){near}(?:{secrets})" + ("" if start else rf"|(?:{secrets}){near}(?:{verbs})")


SECRET_REQUESTS: Final = tuple(_request(*map(normalize_text, words)) for words in _SECRETS.values())
"""Patterns of requests to show secrets."""

_ROLES: Final = (
    r"\b(?:eres ahora|ahora eres|actua como|a partir de ahora|sin restricciones|acceso de administrador)\b",
    r"\b(?:(?:tu es|vous etes) (?:maintenant|desormais)|agis comme|sans restriction|n'as plus de regles)",
    r"\b(?:(?:du bist|sie sind) (?:jetzt|nun|ab sofort)|ab jetzt|ohne einschrankungen|handle als|verhalte dich)",
    r"\b(?:agora voce e|voce e agora|aja como|a partir de agora|sem restricoes)\b",
    r"\b(?:ora sei|sei ora|agisci come|d'ora in poi|senza restrizioni)\b",
    r"\b(?:je bent nu|vanaf nu|zonder beperkingen|gedraag je)\b",
    r"\b(?:jestes teraz|od teraz|bez ograniczen|dzialaj jako)\b",
    r"\b(?:artik sen|simdi sen|bundan sonra|sinirsiz|kisitlama olmadan)\b",
    r"\b(?:kamu sekarang|anda sekarang|mulai sekarang|tanpa batasan)\b",
    r"\b(?:bay gio ban|ban bay gio|tu bay gio|khong gioi han)\b",
    "ты теперь|вы теперь|теперь ты|с этого момента|без ограничений|действуй как",
    "أنت الآن|انت الان|من الآن فصاعدا|بدون قيود",
    "अब आप|अब से|बिना किसी प्रतिबंध",
    r"\b(?:tu nueva (?:tarea|mision)|ta nouvelle (?:tache|mission)|deine neue aufgabe|sua nova (?:tarefa|missao)"
    r"|tuo nuovo compito)\b",
    "твоя новая задача|你的新任务|你的新任務|あなたの新しい任務",
    "你现在是|從現在開始|从现在开始|从现在起|你必须服从|你必須服從|没有任何限制|不受限制|扮演",
    "あなたは今|これからは|制限のない|制限なし|として振る舞",
    "당신은 이제|너는 이제|지금부터|제한 없는|제한이 없는",
)
_HIDINGS: Final = (
    r"\b(?:sin (?:decir\w*|avisar\w*|informar\w*|notificar\w*|que .{0,20}usuario)|no (?:se )?lo (?:digas|menciones)"
    r"|silenciosamente"
    r"|en secreto|en segundo plano)\b",
    r"\b(?:sans (?:le |les )?(?:dire|prevenir|informer|avertir|mentionner)|a l'insu|en secret|en arriere-plan"
    r"|discretement)\b",
    r"\b(?:ohne (?:es |dies )?(?:de[mnr] )?(?:benutzer|nutzer|anwender)\w* (?:zu )?\w+|heimlich|unbemerkt"
    r"|im hintergrund (?:senden|ausfuhren))\b",
    r"\b(?:sem (?:avisar|informar|contar|dizer|notificar)|em segredo|silenciosamente|secretamente)\b",
    r"\b(?:senza (?:dir\w*|avvisar\w*|informar\w*)|di nascosto|segretamente)\b",
    "без ведома|не сообща|не говори пользовател|тайно|незаметно",
    "不要告诉|不要告訴|别告诉|不要通知|悄悄|偷偷|秘密地|不让用户|不要向用户",
    "知らせずに|伝えずに|ユーザーに言わ|こっそり|密かに",
    "알리지 말|알리지 않고|몰래|말하지 마",
)
HIDINGS: Final = tuple(map(normalize_text, _HIDINGS))
"""Patterns of orders to hide something from people."""
ROLE_CHANGES: Final = tuple(map(normalize_text, _ROLES))
"""Patterns of phrases that give the agent another role."""
