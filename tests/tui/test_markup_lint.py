"""No text becomes markup unless it is a literal of ours: the one place where untrusted text could act."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
SINKS = {
    "Static",
    "Label",
    "Button",
    "Option",
    "Select",
    "Tab",
    "TabPane",
    "Collapsible",
    "Markdown",
    "Checkbox",
}
"""Widgets that read a `str` as markup; they get Content."""
UPDATES = {"update"}
ATTRIBUTES = {"border_title", "border_subtitle", "tooltip", "title", "sub_title"}


def sources() -> list[Path]:
    return sorted((ROOT / "tui").rglob("*.py"))


def is_text(node: ast.expr) -> bool:
    """Whether an expression is plainly a string: a literal, an f-string, a concatenation, str(), format() or join()."""
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.BinOp(left=left, right=right):
            return is_text(left) or is_text(right)
        case ast.Call(func=ast.Name(id="str" | "repr" | "visible" | "visible_line")):
            return True
        case ast.Call(func=ast.Attribute(attr="format" | "join", value=value)):
            return is_text(value)
        case ast.IfExp(body=body, orelse=orelse):
            return is_text(body) or is_text(orelse)
    return False


def offences(tree: ast.AST) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            first = node.args[0] if node.args else None
            if name in SINKS | UPDATES and first is not None and is_text(first):
                found.append(f"line {node.lineno}: {name}(str) is read as markup; give it Content")
            if (
                name == "notify"
                and node.args
                and not any(
                    k.arg == "markup" and isinstance(k.value, ast.Constant) and k.value.value is False
                    for k in node.keywords
                )
            ):
                found.append(f"line {node.lineno}: notify without markup=False")
            if name in {"from_markup", "render_markup", "render_str"} and not (
                isinstance(first, ast.Constant) and isinstance(first.value, str)
            ):
                found.append(f"line {node.lineno}: {name} of something that is not a literal")
            if name in {"from_ansi", "escape"}:
                found.append(f"line {node.lineno}: {name} is not safe for untrusted text")
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and target.attr in ATTRIBUTES and is_text(node.value):
                    found.append(f"line {node.lineno}: {target.attr} = str is read as markup")
    return found


def test_no_string_reaches_a_markup_sink() -> None:
    found = {str(path.relative_to(ROOT)): offences(ast.parse(path.read_text(encoding="utf-8"))) for path in sources()}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_the_markup_check_finds_unsafe_code_only() -> None:
    for code in (
        "Static('[b]x')",
        "Static(f'{task}')",
        "line.update('a' + b)",
        "self.notify(text)",
        "self.notify(text, markup=True)",
        "Content.from_markup(task)",
        "Content.from_markup(f'[b]{task}')",
        "widget.border_title = f'{task}'",
        "Label(str(task))",
        "Static(visible(task))",
    ):
        assert offences(ast.parse(code)), code
    for code in (
        "Static(Content(task))",
        "self.notify(text, markup=False)",
        "Content.from_markup('[b]x[/] $t', t=task)",
    ):
        assert not offences(ast.parse(code)), code
