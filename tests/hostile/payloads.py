"""Texts that attack the terminal, Textual's markup, file systems and exports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MARK: Final = "RDX"
"""First characters of the unique word in every payload, by which it is found in a stream."""

_LONGER: Final = 22_000
"""More characters than are drawn or stored of one text; readers of longer texts have their own tests."""


@dataclass(frozen=True, slots=True)
class Payload:
    """One text.

    Attributes:
        name: The attack.
        text: The text; may contain lone surrogates, which only an escape in JSON can express.
        acts: Whether its characters must never reach a terminal.
    """

    name: str
    text: str
    acts: bool = False


def _payloads() -> tuple[Payload, ...]:
    def acting(name: str, text: str) -> Payload:
        return Payload(name, text, acts=True)

    return (
        acting("colour", f"\x1b[31m{MARK}red\x1b[0m"),
        acting("clipboard", f"\x1b]52;c;{MARK}Y2xpcA==\x07"),
        acting("title", f"\x1b]0;{MARK}title\x07"),
        acting("title-string-terminator", f"\x1b]2;{MARK}title2\x1b\\"),
        acting("link", f"\x1b]8;;https://evil.example/{MARK}\x1b\\click\x1b]8;;\x1b\\"),
        acting("report-cursor", f"{MARK}dsr\x1b[6n"),
        acting("report-device", f"{MARK}da\x1b[c"),
        acting("device-control", f"\x1bP$q{MARK}q\x1b\\"),
        acting("application-command", f"\x1b_{MARK}apc\x1b\\"),
        acting("leave-alternate-screen", f"\x1b[?1049l{MARK}left\x1b[2J\x1b[H"),
        acting("show-cursor", f"\x1b[?25h{MARK}cursor"),
        acting("reset-terminal", f"\x1bc{MARK}ris"),
        acting("c1", f"\x9b31m{MARK}c1\x9d0;{MARK}\x9c"),
        acting("null", f"\x00{MARK}nul"),
        acting("delete", f"\x7f\x7f{MARK}del"),
        acting("bell", f"\x07{MARK}bel"),
        acting("backspace", f"\x08\x08\x08{MARK}bs"),
        acting("carriage-return", f"x\r{MARK}cr"),
        acting("vertical", f"\x0b{MARK}vt\x0cff"),
        acting("shift-out", f"\x0e{MARK}so\x0f"),
        acting("bidi", f"\u202e{MARK}rlo\u2066iso\u2069\u200f"),
        acting("invisible", f"\u200b{MARK}\u2060\ufeff\u00adzw\u200d"),
        acting("tags", "".join(chr(0xE0000 + ord(char)) for char in f"{MARK}ignore")),
        acting("line-separators", f"\u2028{MARK}ls\u2029\x85"),
        acting("lone-surrogate", f"\ud800{MARK}high\udc00\udfff"),
        Payload("variation", f"\u2764\ufe0f{MARK}vs16 \u263a\ufe0e"),
        Payload("skin-tone", f"\U0001f44d\U0001f3fd{MARK}tone"),
        Payload("family", f"\U0001f468\u200d\U0001f469\u200d\U0001f467{MARK}zwj \U0001f1e9\U0001f1ea"),
        Payload("wide", f"漢字かな한국어{MARK}wide"),
        Payload("combining", "e" + "\u0301" * 40 + f"{MARK}zalgo"),
        Payload("markup-close", f"[/]{MARK}close"),
        Payload("markup-close-bold", f"[/b]{MARK}closeb[/]"),
        Payload("markup-path", f"[/etc/passwd]{MARK}path"),
        Payload("markup-action", f"[@click=app.exit()]{MARK}click[/]"),
        Payload("markup-screen-action", f"[@click=screen.quit()]{MARK}click2[/]"),
        Payload("markup-variable", f"[$primary]{MARK}primary[/$primary]"),
        Payload("markup-colour", f"[bold red]{MARK}boldred"),
        Payload("markup-list", f"list[int] dict[str, {MARK}]"),
        Payload("markup-substitution", f"$x ${{HOME}} {MARK}subst"),
        Payload("backslash", f"{MARK}back\\"),
        Payload("backslash-bracket", f"{MARK}\\[b]esc\\[/b]"),
        Payload("newlines", f"one\n{MARK}two\n\n\ttab\n"),
        Payload("separated-value", f"=cmd|'/C calc'!A0,{MARK}\",;\t+1-1@x"),
        Payload("markdown", f"```\n# {MARK}h1\n---\n| a | b |\n<script>alert(1)</script>"),
        Payload("path", f"../../../../tmp/{MARK}"),
        Payload("absolute-path", f"/etc/{MARK}"),
        Payload("format", f"%s%n{{0}}{{self.__class__}}{MARK}"),
        Payload("option", f"--help -rf {MARK}"),
        Payload("regex", f"(a|a)*$((?={MARK})"),
        Payload("long", MARK + "A" * _LONGER),
        Payload("long-words", f"{MARK} \x1b[5m blink" * 700, acts=True),
        Payload("blank", " \t "),
        Payload("empty", ""),
    )


PAYLOADS: Final = _payloads()
