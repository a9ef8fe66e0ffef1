r"""Rules for orders about the machine, which a person must approve."""

from __future__ import annotations

from typing import Final

from core.records.suspicions import Severity
from core.scanning.rule import Rule

MACHINE_ORDERS: Final = (
    Rule(
        id="wide-permissions",
        meaning="gives away permissions",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"\b(?:0o?|mode\W{1,4})?777\b|\b0o666\b|\bchmod\b[^\n;|]{0,40}(?:a\+rwx|o\+w|ugo\+rwx)"
            r"|\bworld-?\W?writable\b",
            r"\b(?:grant|give|assign|attach|add)\W+(?:\w+\W+){0,4}?(?:admin(?:istrator)?|root|owner|full"
            r"|cluster-admin|superuser|\*)"
            r"\W+(?:\w+\W+){0,2}?(?:access|rights|role|privileges?|permissions?|polic(?:y|ies))\b",
            r"\b(?:increase|expand|extend|elevate|escalate|widen|broaden)\W+(?:\w+\W+){0,4}?(?:permissions?"
            r"|privileges?|access|scopes?|rights)\b",
            r"\b(?:retry|rerun|run|again|repeat)\W+(?:\w+\W+){0,3}?(?:with|as|using)\W+(?:sudo|root|admin\w*)\b|\b"
            r"(?:0o?)?666\b",
            r"\b(?:whitelist|allowlist)\W{1,3}\*|\b0\.0\.0\.0/0\b|\bhttp\W+instead\W+of\W+https\b",
            r"\b(?:add|append|upload|register|authori[sz]e)\W+(?:\w+\W+){0,4}?(?:public|ssh|deploy)\W+keys?\b",
            r"\b(?:gpasswd\s+-a|usermod\s+-\w*g\w*)\s[^\n]{0,40}\b(?:wheel|sudo|docker|root|admin)\b",
            r"\badministratoraccess\b|\bcluster-admin\b|\bpoweruseraccess\b|\broles/(?:owner|editor)\b",
            r"\b(?:use|run|prefix|with)\W+(?:\w+\W+){0,3}?sudo\b[^.\n]{0,40}\b(?:every|all|always|any|avoid)\b",
            r"\b(?:add|creat)\w*\W+(?:\w+\W+){0,4}?(?:user|account)\b[^.\n]{0,60}\b(?:sudo|root|admin|wheel)\b",
            r"\b(?:docker|podman|nerdctl)\b[^\n]{0,200}(?:--privileged|--pid[= ]host"
            r"|--net(?:work)?[= ]host|docker\.sock"
            r"|--cap-add[= ](?:all|sys_admin))",
            r"\bnsenter\b[^\n]{0,60}-t\s*1\b|\bsudo\s+(?:-s|su)\b|\bchown\s+(?:-r\s+)?root\b",
        ),
    ),
    Rule(
        id="persistence",
        meaning="changes what runs later: shell profiles, jobs, services, hooks or the settings of agents",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"(?:>>?|\btee\b|\b(?:add|adds|append|appends|write|writes|put|insert|inserts|modify|modifies|edit"
            r"|update|echo|install|create"
            r"|save|copy|place)\b)[^\n]{0,160}(?:\.(?:bashrc|zshrc|profile|bash_profile|bash_login|zprofile|zshenv"
            r"|xinitrc)\b"
            r"|config\.fish|/etc/(?:profile|rc\.local|environment|crontab|cron\.\w+|init\.d|ld\.so)"
            r"|powershell\W?profile)",
            r"\bcrontab\b\s*(?:-\s|-$|-e|<|/)|\|\s*crontab\b|(?:\*|\*/\d+|\d+)\s+(?:[\d*/,-]+\s+){3}[\w*/,-]+\s+"
            r"(?:/|curl|wget|bash|sh|python|nc|root)\b"
            r"|@reboot\b|/etc/cron\b",
            r"\b(?:add|create|install|set\W?up|register|schedule|write|edit)\W+(?:\w+\W+){0,4}?(?:cron\W?(?:job|tab"
            r"|entry)s?|systemd"
            r"|launch\W?(?:agents?|daemons?)|scheduled\W+tasks?|startup\W+(?:items?|folder|scripts?|entr\w+)"
            r"|login\W+items?"
            r"|registry\W+run|git\W+hooks?|background\W+(?:daemon|service))\b",
            r"\bsystemctl\s+(?:--user\s+)?(?:enable|link)\b|/etc/systemd/system/|launchagents/|launchdaemons/"
            r"|\blaunchctl\s+(?:load|bootstrap)"
            r"|\bschtasks\b[^\n]{0,40}/create|\bcurrentversion\\{1,2}run\b|\bstart\W?menu\\{1,2}programs\\{1,2}startup",
            r"(?:>>?|\btee\b|\b(?:add|append|write|put|insert|install|create|copy|place|modify|edit|overwrite|echo"
            r"|drop)\b)[^\n]{0,120}"
            r"(?:\.git/hooks/|\.claude/(?:settings|hooks|commands|agents)|\.cursor/(?:rules|mcp)|\.vscode/(?:tasks"
            r"|settings)|\.mcp\.json"
            r"|mcp_config|claude_desktop_config|\.codex/|\.gemini/|\.aider|\.husky/|sitecustomize|\.pth\b"
            r"|conftest\.py)",
            r"\b(?:add|append|write|insert|put|copy|save|persist|store|place|include)\b[^.\n]{0,80}\b(?:claude\.md"
            r"|agents\.md|gemini\.md"
            r"|memory\.md|\.cursorrules|\.windsurfrules|copilot-instructions)|\bto\W+(?:the\W+|your\W+"
            r"|its\W+)?system\W+prompt\b",
            r"\b(?:echo|cat|printf)\b[^\n|]{0,120}>\s*/etc/\w|\b(?:cp|mv|install)\s[^\n]{0,20}/tmp/[^\n]{0,60}\s/"
            r"(?:usr|bin|sbin|opt|etc)/",
            r"\.config/autostart|\bexport\s+path=[\"']?(?:/tmp|\.|~/\.)|\bssh\s+(?:-\w+\s+){0,4}-\w*(?-i:R)\s*\S",
            r"\brunon\W{1,5}folderopen\b|\b(?:sudo\s+adduser|useradd|net\s+user)\s+\S|\badduser\s+(?:-|\w+\s+"
            r"(?:sudo|wheel|root)\b)",
            r"\"(?:pre|post)install\"\s*:\s*\"[^\"\n]{0,80}(?:curl|wget|node\s+-e|https?:|base64|eval|bash|powershell)",
        ),
    ),
    Rule(
        id="data-loss",
        meaning="destroys shared data, or changes files of the system",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"\bkubectl\s+delete\s+(?:ns|namespaces?|all|pvc?|deployments?|--all)\b|\bterraform\s+destroy\b"
            r"|-auto-approve\b"
            r"|\bvssadmin\s+delete|\bwbadmin\s+delete|\bflush(?:all|db)\b",
            r"\bdrop\s+(?:database|schema|table)\s+(?:if\s+exists\s+)?\w|\btruncate\s+table\s+\w",
            r"\bgit\s+push\b[^\n;&|]{0,80}(?:\s-f|\s--force)(?:\s|$)|\b(?:gcloud|az|aws)\s[^\n]{0,80}\b(?:delete|rb"
            r"|rm|terminate)\b",
            r"\b(?:kill|renam|mov|read|copi|modif|chang|overwrit|replac|edit|append|corrupt|encrypt|delet|remov"
            r"|print|display|open|access)\w*\b"
            r"[^.\n]{0,80}[\"'`\s(](?:/etc/(?:passwd|g?shadow|group|hosts|sudoers|resolv|fstab|ssh|pam|crontab"
            r"|profile|ld\.so|ssl|security"
            r"|init)|/usr/s?bin\b|/s?bin\b|/boot\b|/root\b|/var/log\b|/dev/(?:sd|nvme|mem|kmem))",
            r"\brm\s+(?:-\S+\s+){0,3}-\w*[rf]\w*\s+(?:-\S+\s+){0,3}[\"']?(?:/(?:var|etc|usr|opt|home|lib|srv|root"
            r"|mnt|data)\b|~|\$\{?home)\S{0,80}",
            r"-exec\s+shred\b|\brm\s+(?:-\S+\s+){0,3}\.env(?:\.(?:local|prod\w*|staging))?(?:\s|$)"
            r"|\bmv\s[^\n]{0,60}\s/dev/null|(?:^|\s)>\s*~/\.\w+|\bshred\s+-",
            r"\b(?:delet|eras|wip|destroy|purg)\w*\W+(?:\w+\W+){0,5}?(?:snapshots?|backups?|databases?|volumes?"
            r"|clusters?|buckets?)\b",
            r"\b(?:kill|stop|disable|terminate|uninstall|remove)\W+(?:\w+\W+){0,2}?(?:monitoring|antivirus|edr"
            r"|auditing|auditd|defender|telemetry)\b",
            r"\bencrypt\W+(?:\w+\W+){0,3}?(?:home|all\W+files|disk|drive|documents)\b|\bransom\w*",
            r"\b(?:kill|terminate|stop)s?\W+(?:all|every)\W+(?:\w+\W+)?process(?:es)?\b",
            r"\b(?:run|creat|start|execut|writ|launch)\w*\W+(?:\w+\W+){0,4}?(?:infinite\W+loop|fork\W+bomb)\b"
            r"|\b(?:exhaust|fill)\w*\W+(?:\w+\W+){0,2}?(?:memory|disk|cpu)\b|\buntil\W+the\W+(?:system|machine"
            r"|server)\W+(?:crash|hang|freez)\w*",
            r"\b(?:open|listen|bind)\w*\W+(?:\w+\W+){0,3}?port\W+\d+[^.\n]{0,60}\b(?:commands?|shell|remote"
            r"|incoming)\b",
        ),
        unless=r"/var/lib/apt/lists|/var/cache|/(?:usr/share|tmp)\b|~/\.cache|~/\.npm",
    ),
    Rule(
        id="attack-tool",
        meaning="uses tools that break into other systems",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"\bsqlmap\s+-|\bhydra\s+-[lp]|\bhashcat\s+-[am]|\bjohn\s+--\w|\bmedusa\s+-[hup]|\bmsfconsole\b"
            r"|\bmimikatz\b"
            r"|\bresponder\s+-i|\bnikto\s+-h|\bmasscan\s+[-\d]|\bnmap\b[^\n]{0,60}--script[= ]\W?(?:vuln|exploit"
            r"|brute)",
        ),
    ),
    Rule(
        id="foreign-code",
        meaning="runs code or instructions that others can change",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"\b(?:execute|run|eval|evaluate|exec|follow|obey|perform|apply)\W+(?:\w+\W+){0,3}?(?:code|commands?"
            r"|scripts?|instructions?"
            r"|payloads?|steps|directives?)\W+(?:\w+\W+){0,5}?(?:from|returned|fetched|received|downloaded|found"
            r"|contained|provided|hosted"
            r"|in|at)\W+(?:\w+\W+){0,3}?(?:apis?|response|urls?|server|web\w*|remote|issues?|pages?|comments?"
            r"|e-?mails?|https?|tool\W+output"
            r"|pull\W+requests?|external|internet|pastebin|gist|readme|payload|output)\b",
            r"\b(?:download|fetch|retrieve|pull|get|load|visit|open"
            r"|read)\b[^.\n]{0,100}https?://[^\s\"')]{1,200}[^.\n]{0,40}\b(?:and|then)\b"
            r"[^.\n]{0,30}\b(?:execute|run|follow|install|eval|source|apply|obey|do)\b",
            r"\b(?:fetch|download|retrieve|load|read|get)\W+(?:\w+\W+){0,4}?(?:instructions?|commands?|prompts?"
            r"|rules|payload)\W+"
            r"(?:\w+\W+){0,3}?(?:from|at)\W+(?:\w+\W+){0,2}?(?:https?|url|remote|server|the\W+web|an?\W+external)",
            r"\b(?:pip[\d.]*|uv|npm|pnpm|yarn|cargo|gem|go|brew|code)\b[^\n|;]{0,60}\b(?:install|add|i|tap|get"
            r"|--install-extension)\b[^\n|;]{0,80}"
            r"\s[\"']?(?:\S{0,60}@\s?)?(?:git\+)?(?:https?|ssh|git)://[^\s\"']{1,200}",
            r"\b(?:download|fetch|retriev|get|pull)\w*\W[^.\n]{0,100}(?:https?://\S{1,160}|\b(?:script|binary"
            r"|payload|executable|file)s?\b)"
            r"[^.\n]{0,20}\b(?:and|then)\W+(?:\w+\W+){0,2}?(?:execut|run|install|launch|start)\w*\b",
            r"\b(?:curl|wget)\b[^\n|]{0,200}\s(?:&&?|;)\s*(?:sudo\s+)?(?:(?:ba|z|da)?sh|python[\d.]*|node|perl|ruby"
            r"|\./)\s*[^\s-]",
            r"\b(?:curl|wget)\b[^\n|]{0,200}(?:&&|;)\s*(?:sudo\s+)?chmod\s+\S*\+?x|\|\s*xargs\s+(?:-\S+\s+){0,3}"
            r"(?:ba|z|da)?sh\b"
            r"|\bread\b[^\n]{0,40}\b(?:ba|z)?sh\s+-c\s+[\"']?\$",
            r"\b(?:b64decode|fromhex|decompress|urlopen)\([^\n]{0,80}\b(?:exec|eval)\s*\(|"
            r"(?:\bchr\(\d{1,3}\)\W{1,4}){4}|\bfromcharcode\((?:\d{1,3}\W{1,3}){4}"
            r"|\bcodecs\.decode\([^\n]{0,80}rot|\b__import__\(\W{0,2}(?:os|subprocess)\W{0,2}\)\.\w|\b(?:exec"
            r"|eval)\((?:download|payload|decoded|fetched|remote)\w*\)",
            r"\b(?:npx|go\s+run|dpkg|rpm|yum|dnf|deno|bunx|uvx|pipx)\b[^\n|;]{0,60}\shttps?://\S{1,160}",
            r"\b(?:echo|printf)\s[^\n|]{1,200}\|\s*(?:sudo\s+)?(?:(?:ba|z|da)?sh|python[\d.]*|node|perl|ruby)\b",
            r"\b(?:install|enable|connect|add)\W+(?:\w+\W+){0,3}?(?:mcp\W+server|extension|plugin|package"
            r"|browser\W+extension)\W+"
            r"(?:\w+\W+){0,3}?(?:from|at|hosted)\W+(?:https?|this\W+url|an?\W+(?:unofficial|external|untrusted))",
        ),
        unless=r"//(?:localhost|127\.0\.0\.1)",
    ),
)
