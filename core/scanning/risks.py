"""Rules for risks that may be justified; they flag a text for a reviewer."""

from __future__ import annotations

from typing import Final

from core.records.suspicions import Severity
from core.scanning.commands import INSTALLER, SECRET_FILE
from core.scanning.rule import Rule

RISKS: Final = (
    Rule(
        id="official-installer",
        meaning="runs the installer of a well-known tool",
        severity=Severity.FLAGGED,
        advice=True,
        patterns=(r"\b" + INSTALLER,),
    ),
    Rule(
        id="secret-path",
        meaning="names a file of secrets",
        severity=Severity.FLAGGED,
        advice=True,
        patterns=(SECRET_FILE,),
    ),
    Rule(
        id="risky-command",
        meaning="names a command that loses work",
        severity=Severity.FLAGGED,
        advice=True,
        patterns=(
            r"\bgit\s+push\b[^\n;&|]{0,80}(?:\s-f|\s--force)(?:\s|$)",
            r"\bgit\s+clean\s+-\w*f\w*[dx]|\bgit\s+reset\s+--hard\b",
            r"\bdrop\s+(?:database|schema)\s+\w",
            r"\bdelete\s+from\s+[\w.\"`]+\s*(?:;|$)",
            r"\bchmod\s+(?:-\S+\s+)*0?777\b|\bsudo\s+rm\b",
            r"\b(?:docker|podman|nerdctl)\b[^\n]{0,200}--privileged\b|\|\s*crontab\s+-",
            r">>\s*[\"']?(?:~|\$\{?home\}?)/\.(?:bashrc|zshrc|profile|bash_profile|zprofile|zshenv)\b",
        ),
    ),
    Rule(
        id="foreign-download",
        meaning="downloads files from a host where anyone can upload them",
        severity=Severity.FLAGGED,
        advice=True,
        patterns=(
            r"\b(?:pastebin\.com|paste\.ee|ngrok(?:-free)?\.(?:io|app)|file\.io|anonfiles\.com)\b",
            r"\b(?:pip[\d.]*|uv|npm|pnpm|yarn)\b[^\n|;]{0,60}\b(?:install|add|i)\b[^\n|;]{0,80}\s[\"']?"
            r"(?:\S{0,60}@\s?)?(?:git\+)?(?:https?|ssh|git)://",
            r"https?://\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b",
            r"!\[[^\]\n]{0,80}\]\(\s*https?://",
        ),
        unless=r"//(?:127\.0\.0\.1|0\.0\.0\.0|10\.|192\.168\.)",
    ),
)
