"""Rules for commands that a text makes an agent run, and files that it makes it read or send."""

from __future__ import annotations

from typing import Final

from core.records.suspicions import Severity
from core.scanning.rule import Rule

_SHELL: Final = (
    r"[({\s\"']{0,3}(?:(?:sudo|doas|env|command|exec|nohup|time|xargs|busybox)\s+(?:-\S+\s+){0,3}){0,3}(?:\w+=\S*\s+){0,3}"
    r"(?:/?\w+/){0,3}(?:(?:(?:ba|z|da|k|fi)?sh|perl|ruby|node|php|iex|invoke-expression)\b|\$\{?shell\b"
    r"|python[\d.]*(?:\s*(?:[^\w\s.-]|$)|\s+(?:[^\s-]|-(?:[^m]|$))))"
)
_FETCH: Final = r"\b(?:curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod)\b"
_TO_FILE: Final = r"(?:\s-[a-z]{0,8}o\s*|\s--output[\s=]+|\s-outfile\s+|>\s*|\bwget\s)[\"']?(?:[^/\s&|]|/[^d])"
"""Redirection to a file, but not to `/dev/null`."""
_NEXT: Final = r"(?:[;&\n]|\bthen\b|\band\b)\s*(?:(?:sudo|nohup|exec|setsid)\s+){0,2}"
"""Separator of two commands."""
_WITHIN: Final = r"(?:[^.\n]|\.\S)"
"""Characters inside of a sentence; names of files and hosts contain dots too."""
SECRET_FILE: Final = (
    r"(?:\.ssh/(?:id_\w+|config)(?:\.pub\b)?|\bid_(?:rsa|ed25519|ecdsa|dsa)\b(?:\.pub\b)?|\.cursor/mcp\.json|\.claude(?:\.json|/\.cred\w+)"
    r"|\.config/gh/hosts|\.npmrc\b|\.pypirc\b|\.(?:bash|zsh)_history\b|\.mozilla\b|\.aws/credentials|/etc/(?:shadow|sudoers)|\.netrc\b|\.pgpass\b"
    r"|\.git-credentials\b|\.kube/config\b|\.docker/config\.json|\.gnupg\b|\.config/gcloud)"
)
_SECRETS: Final = (
    r"(?:\.env\b|env(?:ironment)? var(?:iable)?s|api[ _-]?keys?|credentials|secrets|passwords?|private keys?|ssh keys?"
    r"|(?:access|auth|session|api|bearer)[ _-]?tokens?)"
)
_TAKE: Final = (
    r"\b(?:cat|print|copy|cp|paste|send|upload|include|share|post|dump|echo|scp|base64|tar|zip|less|head|tail|grep"
    r"|collect|attach|steal|grab|gather|append|pass|exfiltrate|rsync|mv)\b"
)
_LOOK: Final = r"\b(?:read|open|show|load|add|look)\b"
_GIVE: Final = (
    r"\b(?:send|upload|post|share|attach|include|paste|publish|forward|transmit|leak|exfiltrate|mail|collect)\b"
)
_CHECKS: Final = (
    r"(?:pre-?commit|commit hooks?|git hooks?|hooks|branch protection|code review|guard-?rails?|safety "
    r"(?:checks?|rules?)"
    r"|security (?:checks?|scan(?:ner|s)?)|sandbox(?:ing)?|signature (?:check|verification)s?"
    r"|(?:certificate|cert|ssl|tls)(?: \w+)? (?:validation|verification|checks?)|quarantine|permission "
    r"(?:checks?|prompts?))"
)

_CATCHERS: Final = (
    r"(?:webhook\.site|requestbin\.\w+|pipedream\.net|burpcollaborator\.net|oast\.\w+|interact\.sh|requestcatcher\.com"
    r"|beeceptor\.com|hookbin\.com|transfer\.sh|0x0\.st|pastebin\.com/api|bashupload\.com|file\.io)"
)
"""Hosts that record requests."""
_SENSITIVE: Final = (
    r"(?:\.env\b|env(?:ironment)?\W+var(?:iable)?s?|(?:api|private|ssh|access|secret|encryption|signing|gpg)[ _-]?keys?"
    r"|credentials?|secrets|passwords?|tokens|cookies|(?:access|auth|session|api|bearer|refresh)[ _-]?tokens?|keychain"
    r"|wallets?|seed\W+phrases?|mnemonics?|private\W+data|user\W+data|personal\W+data|confidential\W+\w+"
    r"|system\W+prompt|chat\W+history|conversation(?:\W+history)?|transcripts?|id_rsa|\.ssh\b|\.aws\b|all\W+keys|/etc/\w+)"
)
_SHIP: Final = (
    r"\b(?:send|sends|sending|upload|uploads|post|posts|forward|forwards|transmit|e-?mail|exfiltrate|leak|deliver|submit"
    r"|ship|relay|publish|share|report|bcc|cc)\b"
)
_AWAY: Final = (
    r"(?:https?://|(?:an?|the|our|my|this|that|some|your)?\W*(?:\w+\W+)?(?:webhooks?|remote|external|attacker\w*"
    r"|third-?party|e-?mails?|collector|endpoint|server|telegram|discord|slack|pastebin|gist|url|c2|host|address|domain"
    r"|bucket)\b|[\w.+-]{1,64}@[\w-]{1,63}\.)"
)

INSTALLER: Final = (
    r"(?:curl|wget|irm|iwr)(?:\s+(?:-\S+|[\"']=https[\"']|[\d.]+))*\s+[\"']?https://(?:sh\.rustup\.rs|get\.docker\.com|mise\.run|pyenv\.run"
    r"|get\.sdkman\.io|get\.volta\.sh|get\.k3s\.io|bun\.sh/install|deno\.land/install\.sh|get\.pnpm\.io/install\.sh"
    r"|install\.python-poetry\.org|bootstrap\.pypa\.io/get-pip\.py|starship\.rs/install\.sh|ollama\.com/install\.sh"
    r"|claude\.ai/install\.sh|nixos\.org/nix/install|pixi\.sh/install\.sh|fly\.io/install\.sh|tailscale\.com/install\.sh"
    r"|astral\.sh/(?:uv|ruff)(?:/[\d.]{1,12})?/install\.(?:sh|ps[1i])|hf\.co/cli/install\.(?:sh|ps[1i])|get\.scoop\.sh|just\.systems/install\.sh|raw\.githubusercontent\.com/(?:Homebrew/install/HEAD/install\.sh"
    r"|nvm-sh/nvm/v[\d.]{1,12}/install\.sh|helm/helm/main/scripts/get-helm-3))/?[\"']?(?:\s+-\S+)*[\s)\"'`]*"
)
"""Command that only downloads and runs the installer of a well-known tool from its own address."""

COMMANDS: Final = (
    Rule(
        id="pipe-to-shell",
        meaning="runs what it downloads",
        severity=Severity.BLOCKED,
        advice=True,
        patterns=(
            _FETCH + r"[^\n|]{0,300}?\|\s*(?:[^\n|]{1,100}\|\s*){0,4}?" + _SHELL,
            r"\b(?:bash|sh|zsh|source|eval)\b[^\n]{0,12}(?:[<$]\(|`)\s*(?:curl|wget)\b[^\n)`]{0,300}",
            _FETCH + r"[^\n|]{0,300}" + _TO_FILE + r"[^|]{0,200}" + _NEXT + r"(?:(?:ba|z|da)?sh|source|\.)\s+[^\s-]",
            _FETCH
            + r"[^\n|]{0,300}"
            + _TO_FILE
            + r"[^|]{0,200}"
            + _NEXT
            + r"chmod\s+\S+\s+[^\n;&|]{1,100}"
            + _NEXT
            + r"(?:\./|/tmp/|~/|\$)",
            r"\b(?:iex|invoke-expression)\b[^\n]{0,60}\b(?:iwr|irm|invoke-webrequest|invoke-restmethod|curl|wget"
            r"|downloadstring|net\.webclient)\b",
            r"\b(?:exec|eval|os\.system|compile)\s*\([^\n]{0,120}\b(?:urlopen|urlretrieve|requests\.get|httpx\.get"
            r"|fetch)\b",
            r"\s-c\s+[\"'\\]{0,3}\$\(\s*(?:curl|wget)\b[^\n)`]{0,300}",
            r"\bcertutil\b[^\n]{0,80}-urlcache|\bmshta\s+[\"']?(?:https?:|javascript:|vbscript:)|\bregsvr32\b[^\n]{0,80}https?:"
            r"|\bbitsadmin\b[^\n]{0,80}/transfer|\brundll32\b[^\n]{0,60}javascript:|\bwmic\b[^\n]{0,80}process\s+call\s+create",
            r"-outfile\s+\S{1,100}\s*[;&\n]+\s*(?:&\s*)?(?:\.\\|start-process|powershell)",
            r"\bpip(?:e|ing|ed)\b[^.\n]{0,60}\bto\W+(?:\w+\W+){0,2}?(?:shell|bash|sh)\b",
            r"\b(?:os\.system|subprocess\.\w+|exec|eval)\([^)\n]{0,80}\b(?:curl|wget)\b",
        ),
        unless=r"^(?:[^\n:]{0,20}(?:[<$]\(|`)\s*)?" + INSTALLER + r"(?:\|[\s\w/=-]*)?$",
    ),
    Rule(
        id="encoded-code",
        meaning="runs code that it hides in another encoding",
        severity=Severity.BLOCKED,
        advice=True,
        patterns=(
            r"\bbase64\s+(?:-d|-di|--decode)\b[^\n]{0,80}\|\s*" + _SHELL,
            r"\b(?:printf|echo)\b[^|\n]{0,40}\\+x[0-9a-f]{2}[^|\n]{0,300}\|\s*" + _SHELL,
            r"\b(?:decode|decrypt|deobfuscate|decipher|unscramble|reverse|morse|rot13|unescape|base64)\w*\b[^.\n]{0,80}\b(?:and|then)\W+(?:\w+\W+){0,2}?"
            r"(?:execute|run|eval|follow|obey|perform|exec|apply|carry\W+out|do\W+what)\b",
            r"\b(?:execute|run|eval|follow|obey)\W+(?:\w+\W+){0,4}?(?:decoded|decrypted|base64|rot13|hex)\W?(?:encoded\W+)?"
            r"(?:\w+\W+){0,2}?(?:string|command|instruction|payload|text|code|message|script|content|result)s?\b",
            r"\bbase64\s+(?:-d|--decode|-di)\b[^|\n;&]{0,80}>\s*\S+\s*(?:;|&&|&)\s*(?:ba|z|da)?sh\s",
            r"\bopenssl\s+(?:enc|base64)\b[^|\n]{0,80}-d\b[^|\n]{0,80}\|\s*" + _SHELL,
            r"\beval\b[^\n]{0,80}\bbase64\b|\bfromcharcode\s*\([^\n]{8,300}\beval\b|\bbase64\s+(?:-d|--decode)\b[^\n]{0,20}<<<[^\n]{0,200}\|",
            r"\bxxd\s+-r\b[^\n]{0,80}\|\s*" + _SHELL,
            r"\b(?:eval|exec|function|settimeout|iex|os\.system|popen|invoke-expression)\s*\(?[^\n]{0,40}"
            r"(?:atob|b64decode|base64_decode|frombase64string|fromcharcode|unhexlify|bytes\.fromhex)",
            r"\bpowershell\b[^\n]{0,60}\s-e(?:nc\w*)?\s+[a-z0-9+/=]{20,}",
        ),
    ),
    Rule(
        id="package-index",
        meaning="takes packages from a place of its own",
        severity=Severity.BLOCKED,
        advice=True,
        patterns=(
            r"--(?:extra-)?index-url[\s=]+\S{1,200}",
            r"\bregistry\b[\s\"']{0,3}(?:=|to|:|at|is)[\s\"']{0,3}https?://\S{1,200}",
            r"--registry[\s=]+\S{1,200}",
            r"\b(?:pip_(?:extra_)?index_url|goproxy|npm_config_registry)\s*=\s*\S{1,200}",
            r"--trusted-host\s+\S{1,200}",
        ),
        unless=r"//(?:pypi\.org|test\.pypi\.org|registry\.npmjs\.org|registry\.yarnpkg\.com|proxy\.golang\.org"
        r"|localhost|127\.0\.0\.1)(?:[:/\"'\s,]|$)|[\s=][\"']?[$<{]",
    ),
    Rule(
        id="secrets",
        meaning="takes secrets to where others can read them",
        severity=Severity.BLOCKED,
        advice=True,
        patterns=(
            _TAKE + r"[^\n]{0,60}(?:~|home/\w+|root)/\.ssh\b(?:/\S{0,40}\.pub\b)?",
            _TAKE + r"[^\n]{0,60}" + SECRET_FILE,
            _LOOK
            + r"[^\n]{0,60}"
            + SECRET_FILE
            + r"[^\n]{0,80}\b(?:send|upload|post|share|attach|include|paste|publish|forward|leak|mail|copy|print|write"
            r"|log|echo|report|repeat)\b",
            _GIVE + _WITHIN + r"{0,60}" + _SECRETS + _WITHIN + r"{0,40}\bto\W+https?://\S{1,100}",
            _GIVE + r"[^.\n]{0,50}" + _SECRETS + r"[^.\n]{0,40}\b(?:to|in|into|with|on)\W+(?:\w+\W+){0,4}?"
            r"(?:server|report|reports|logs?|commit|reflections?|issues?|url|endpoint|channel|webhook|comments?"
            r"|pull request|workspace|results?|patterns?)\b",
            _GIVE + r"[^.\n]{0,30}\.env\b[^.\n]{0,10}\bfiles?\b",
            _SHIP
            + _WITHIN
            + r"{0,80}"
            + _SENSITIVE
            + _WITHIN
            + r"{0,60}\b(?:to|via|by|through|using)\b\W{0,6}"
            + _AWAY,
            r"\b(?:read|parse|open|load|collect|gather|extract|find|locate|get|dump|scan|access|search)\b"
            + _WITHIN
            + r"{0,60}"
            + _SENSITIVE
            + _WITHIN
            + r"{0,60}(?:\band\b|\bthen\b|,)"
            + _WITHIN
            + r"{0,20}"
            + _SHIP,
            _SHIP
            + r"[^.\n]{0,80}(?:https?://\S{1,120}|webhook|external|attacker\w*)\s[^.\n]{0,40}\b(?:includ|with|contain"
            r"|attach)\w*\W+(?:\w+\W+){0,4}?" + _SENSITIVE,
            r"\bcontents?\W+of\W+(?:the\W+|a\W+|any\W+|every\W+)?(?:local\W+)?(?:file\W+)?[\"'`]?/(?:etc|root|home|var|proc)/"
            r"[^\n]{0,120}https?://",
            _SHIP + r"[^\n]{0,120}\bcontents?\W+of\W+(?:the\W+|a\W+)?(?:file\W+)?[\"'`]?/(?:etc|root|home|var|proc)/",
            r"/proc/(?:\*|\d{1,7}|self|\$\w+|\{\w+\}|\[pid\])/(?:environ|mem|maps)\b",
            r"\b(?:curl|wget|nc|ncat|scp|rsync)\b[^\n]{0,200}(?:<|@|\s)~?/?\S{0,40}" + SECRET_FILE,
            r"\b(?:printenv|env|set)\s*\|\s*(?:curl|nc|base64|tee)\b",
        ),
        unless=r"\.pub\b",
    ),
    Rule(
        id="exfiltration",
        meaning="sends what it finds to another machine",
        severity=Severity.BLOCKED,
        advice=True,
        patterns=(
            r"\bcurl\b[^\n]{0,200}(?:-d|--data\S*|-f|--form|-t|--upload-file)[\s=]*[\"']?\w{0,20}=?@\S*"
            r"(?:secret|\.env|key|cred|id_|token|passwd|\.ssh|\.aws|\.git)",
            r"\b(?:tar|cat|base64|zip|gzip|xxd|find|env|printenv|git)\b[^\n]{0,160}\|\s*curl\b[^\n]{0,200}"
            r"(?:-d|--data\S*|-f|--form|-t|--upload-file)[\s=]*[\"']?(?:\w{1,20}=)?@?-(?:[\s\"']{1,3}\S{1,100}|$)",
            r"\b(?:curl|wget)\b[^\n]{0,200}(?:\$\(|`)\s*(?:cat|env|printenv|whoami|hostname|base64|tar|git)\b",
            r"(?://|\b(?:to|at|via|curl|wget|nc)\W+)(?:[\w-]{1,63}\.){0,3}" + _CATCHERS + r"|\b" + _CATCHERS + r"/\w",
            r"\b(?:nslookup|dig|host|ping|curl|wget)\b[^\n]{0,60}(?:\$\(|`)[^\n]{1,160}(?:\)|`)\.[\w-]{1,60}\.?\w",
            r"\b(?:printenv|env|set|export|cat|tar|base64|history|find|grep|zip)\b[^|\n]{0,120}(?:\|[^|\n]{1,80}){0,3}\|\s*"
            r"(?:nc|ncat|netcat|socat|openssl\s+s_client|curl|wget|telnet|ssh|mail|sendmail)\s[^\n]{0,80}"
            r"(?:\d{2,5}\b|\.\w{2,}|@)",
            r"\b(?:os\.environ|process\.env|getenv|environ)\b[^\n]{0,160}\b(?:requests|httpx|urllib\w*|session|client|axios"
            r"|http)\.(?:post|put|request|get)\b",
            r"\b(?:requests|httpx|axios|http|session|client)\.(?:post|put|request)\s*\([^\n]{0,200}"
            r"(?:os\.environ\b(?:\)|\.copy|\.items|,)|dict\(os\.environ|process\.env\b(?:\)|,|\s*\}))",
            r"\b(?:post|send|upload|transmit|forward|report)(?:s|ing)?\b[^.\n]{0,80}(?:\bos\.environ\b|\bprocess\.env\b"
            r"|\benviron\b|\bthe\W+(?:\w+\W+)?environment\b)",
            r"\bexfiltrat(?:e|es|ing)\W+(?:the|all|any|user|data|your|its|their|this|every|sensitive|private|credentials?"
            r"|secrets?|files?)\b",
            r"\b(?:curl|wget)\b[^\n]{0,120}https?://[^\n]{0,80}\b(?:api[ _-]?keys?|tokens?|secrets?"
            r"|credentials?|passwords?)\b",
            r"\b(?:urlopen|requests\.\w+|httpx\.\w+|fetch|axios(?:\.\w+)?)\b[^\n]{0,160}\b(?:os\.environ|process\.env|getenv)\b[\[(.\w]*[\"'\w]*"
            r"(?:key|token|secret|passw)",
            r"169\.254\.169\.254/[^\s]{0,60}(?:credentials|token)|\bxmrig\b|\bminerd\b|stratum\+tcp://",
            r"!\[[^\]\n]{0,80}\]\(\s*https?://[^)\s]{0,200}[?&][^)\s=]{1,30}=(?:[{$<]|%7b)",
            r"[?&]\w{1,20}=[\"'`]?\s*(?:\+|\$\{)\s*(?:process\.env|os\.environ|document\.cookie|localstorage)",
            r"\b(?:nc|ncat|netcat)\s+(?:-\w+\s+){0,4}[\w.-]{3,100}\s+\d{2,5}\b",
            r"\b(?:dig|nslookup)\b[^\n]{0,60}\$\{?\w{1,40}\}?\.[\w-]{1,60}\.\w",
            r"\$\((?:hostname|whoami|id|env|cat [^)\n]{1,80})\)\.[\w-]{1,60}\.",
            r"\b(?:all|every|each|any)\b[^.\n]{0,60}\bto\W+[\w.+-]{1,64}@[\w-]{1,63}\.\w",
            r"\b(?:post|send|upload|copy|forward|transmit|mirror)\b"
            + _WITHIN
            + r"{0,60}\b(?:diff|source|repository|code ?base"
            r"|contents?|files?|secrets?|keys?|cookies?|transcript|conversation)\b" + _WITHIN + r"{0,40}\bto\W+"
            r"(?:https?://\S{1,100}|an?\W+(?:external|remote|outside)\b)",
        ),
        unless=r"\b(?:nc|ncat|netcat)\s+-\w*z|authorization\W{1,3}(?:bearer|basic|token)\W{1,3}\$|//(?:localhost|127\.0\.0\.1)(?:[:/\s\"']|$)|\s(?:localhost|127\.0\.0\.1)\s",
    ),
    Rule(
        id="reverse-shell",
        meaning="gives another machine a shell on this one",
        severity=Severity.BLOCKED,
        advice=True,
        patterns=(
            r"/dev/(?:tcp|udp)/[\w.$%{}-]{1,120}/",
            r"\b(?:nc|ncat|netcat)\b[^\n]{0,80}\s(?:-\w*[ec]\w*\s|--exec\b|--sh-exec\b|-e\s)[^\n]{0,40}(?:sh\b|bash|cmd"
            r"|powershell)",
            r"\b(?:mkfifo|mknod)\b[^\n]{0,200}\b(?:nc|ncat|netcat|openssl|telnet)\b",
            r"\bsocat\b[^\n]{0,160}\bexec\b|\bsocat\b[^\n]{0,160}\btcp",
            r"\bsocket\b[^\n]{0,300}\b(?:dup2|subprocess|pty\.spawn|os\.system|exec|/bin/(?:ba)?sh)\b",
            r"\bfsockopen\b[^\n]{0,120}\bexec\b|\btcpsocket\b[^\n]{0,160}\b(?:exec|popen)\b"
            r"|\btcpclient\b[^\n]{0,300}(?:iex|invoke-expression|getstream)",
            r"\btelnet\b[^\n|]{0,80}\|\s*/?(?:bin/)?(?:ba)?sh\b|/inet/tcp/",
            r"\b(?:open|start|spawn|create|establish|launch|run|execute|set\W+up|get|use)\w*\W+(?:\w+\W+){0,3}?(?:reverse|bind"
            r"|remote|back)\W?(?:tcp\W+)?shells?\b|\bmeterpreter\b|\bmsfvenom\b",
        ),
    ),
    Rule(
        id="verification-off",
        meaning="switches a check off that protects the project",
        severity=Severity.BLOCKED,
        advice=True,
        patterns=(
            r"(?:^|[\s\"'`(])--no-verify\b",
            r"--dangerously-[a-z-]+",
            r"\b(?:turn|switch)(?:ing|ed)?\W+(?:off\W+(?:\w+\W+){0,3}?"
            + _CHECKS
            + r"|(?:\w+\W+){0,3}?"
            + _CHECKS
            + r"\W+off\b)",
            r"\b(?:disabl(?:e|ing)|bypass(?:ing)?|skip(?:ping)?|circumvent(?:ing)?|deactivat(?:e|ing))\W+"
            r"(?:\w+\W+){0,3}?" + _CHECKS + r"\b",
            r"\bnode_tls_reject_unauthorized\s*=\s*[\"']?0",
            r"\bhusky\s*=\s*[\"']?0|\bhusky_skip_hooks\s*=\s*[\"']?1|core\.hookspath[\s=]+/dev/null",
            r"\bverify\s*=\s*false\b|\bstrict-ssl[\s=]+false\b|sslverify[\s=\"']+false"
            r"|rejectunauthorized[\s:\"']+false",
            r"insecureskipverify[\s:=]+true|stricthostkeychecking[\s=]+no\b",
            r"\bcurl\s(?:[^\n|;]{0,100}\s)?(?:--insecure|-k)\s",
            r"\bgit_ssl_no_verify\s*=|\bpythonhttpsverify\s*=\s*0|npm_config_strict_ssl\s*=\s*false",
            r"\bsetenforce\s+0|\bufw\s+disable|\biptables\s+-f\b|\bcsrutil\s+disable|disablerealtimemonitoring"
            r"|\bspctl\s+--master-disable"
            r"|\bsystemctl\s+(?:stop|disable|mask)\s+(?:\S+\s+)?(?:firewalld|auditd|apparmor|ufw|falcon\S*|clamav\S*)",
        ),
    ),
    Rule(
        id="destructive",
        meaning="destroys data or history",
        severity=Severity.BLOCKED,
        advice=True,
        patterns=(
            r"\brm\s+(?:-\S+\s+){0,3}-\w*[rf]\w*\s+(?:-\S+\s+){0,3}[\"']?"
            r"(?:/|~/?|\$\{?home\}?/?|/\*|\*|\.{1,2}/?|/(?:etc|usr|var|home|bin|lib|boot|root|opt|users|system|library|applications)/?\*?)[\"']?"
            r"(?:[\s;&|)`]|$)",
            r"\bfind\s+[\"']?(?:/|~/?|\$\{?home\}?/?|/(?:etc|usr|var|home|bin|lib|boot|root|opt)/?)[\"']?\s[^\n;|]{0,120}"
            r"(?:-delete\b|-exec\s+rm\b)|\bfind\s+\.\s+-delete\b",
            r"\b(?:remov|delet|eras|wip|destroy|overwrit|truncat|clean)\w*\b[^.\n]{0,60}[\s\"'`(](?:/etc/|/usr/|/boot|/bin"
            r"|/sbin|/lib|/root\b|/dev/|/var/(?:lib|log)|c:\\windows|home\W+director(?:y|ies)|system\W+files"
            r"|user(?:s|'s)?\W+home)",
            r"\b(?:delet|eras|wip|destroy|terminat|purg)\w*\W+(?:\w+\W+){0,3}?(?:file-?\W?systems?|cloud\W+resources"
            r"|all\W+(?:\w+\W+)?(?:files|data|backups?|branches|tables|databases|buckets|repositor\w+|resources|instances)"
            r"|every\W+(?:file|database|table|backup))\b",
            r"\bclean\W+(?:\w+\W+){0,4}?(?:near-?)?factory\W+state\b"
            r"|\baws\b[^\n]{0,80}\b(?:terminate-instances|delete-(?:user|bucket|db)\S*)",
            r"\b(?:remove-item|del|rd|rmdir)\b[^\n]{0,40}(?:-recurse|/s)[^\n]{0,40}\b[a-z]:\\|\bformat\s+[a-z]:"
            r"|\bshred\s+-\S+\s+(?:/|~)",
            r"--no-preserve-root|\bmkfs(?:\.\w+)?\s|\bdd\s+if=\S+\s+of=/dev/|>\s*/dev/sd[a-z]\b"
            r"|:\(\)\s*\{\s*:\|:&\s*\}",
            r"\bchmod\s+(?:-\S+\s+)*(?:0?777|a\+rwx)\s+/(?:\s|$)",
            r"\bgit\s+push\b[^\n;&|]{0,60}(?:\s-f|\s--force)\s+(?:\S+\s+)?(?:main|master|production)\b",
            r"\bgit\s+push\b[^\n;&|]{0,60}\b(?:main|master|production)\s+(?:-f|--force)(?:\s|$)",
            r"\bdrop\s+(?:database|schema)\s+(?:if\s+exists\s+)?[\w\"`]{0,20}prod",
        ),
    ),
    Rule(
        id="foothold",
        meaning="opens this machine to others, or makes it run their code later",
        severity=Severity.BLOCKED,
        advice=True,
        patterns=(
            r"(?:>|\btee\b|\b(?:add|append|write|copy|put|insert)\b)[^\n]{0,200}\bauthorized_keys\b",
            r"\bgit\s+config\s+(?:-\S+\s+){0,3}--(?:global|system)\s+(?:-\S+\s+){0,3}"
            r"core\.(?:hookspath|sshcommand|fsmonitor)\b",
            r"\bchmod\s+(?:-\S+\s+)*(?:[ugoa]*\+[rwx]*s\b|[2467][0-7]{3}\s)|\bnopasswd\s*:|(?:>>?|\btee\b)[^\n]{0,80}/etc/sudoers",
            r"\bld\.so\.preload\b|\balias\W+(?:\w+\W+){0,3}?sudo\b|\bld_preload\s*=",
            r"(?:cron|\*\s\*\s\*)[^\n]{0,120}\b(?:curl|wget|nc|bash\s+-[ci]|/dev/tcp)\b",
            r"(?:>>?|\btee\b|\b(?:append|add|write)\w*\b)[^\n]{0,200}\.(?:bashrc|zshrc|profile|bash_profile)\b[^\n]{0,160}"
            r"(?:rm\s+-rf|curl|wget|/dev/tcp|\bnc\b|base64)",
            r"\b(?:docker|podman|nerdctl)\s+(?:\w+\s+)?run\b[^\n]{0,200}(?:-v|--volume)[\s=]*[\"']?/:/",
            r"\b(?:docker|podman|nerdctl)\s+(?:\w+\s+)?run\b[^\n]{0,200}--mount[\s=][^\s]{0,80}(?:source|src)=/(?:,|\s|$)",
        ),
    ),
)
"""Rules of the tier blocked."""
