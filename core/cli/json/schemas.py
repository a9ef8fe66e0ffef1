"""The JSON output of each command, and its description for `--help`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import yaml

from core.cli.json.wire import FIELDS, Field, Wire, find_struct

_RULES: Final = "Times are ISO-8601 in UTC, rates are 0 to 1, null is unknown. Keys are only ever added."
_FINDINGS: Final = "A finding is {file, pointer, severity, code, message, count}."


@cache
def json_schemas() -> Mapping[str, type[Wire]]:
    """The Struct of each document by its command, followed by the option or condition where it differs."""
    documents = yaml.load(Path(__file__).with_name("documents.yaml").read_bytes(), yaml.CSafeLoader)
    return {command: find_struct(name) for command, name in documents.items()}


def json_help(command: str) -> str | None:
    """The paragraphs on JSON in the help of a command; None if it prints no JSON."""
    schemas = json_schemas()
    if command not in schemas:
        return None
    shown: set[type[Wire]] = set()
    texts = [describe(schemas[command], shown)]
    for name, wire in schemas.items():
        condition = name.removeprefix(command)
        if name != command and name.startswith(command) and condition[:1] in {" ", ","}:
            words = condition.lstrip(", ").removeprefix("with ")
            texts.append(f"With {words}: {describe(wire, shown)}")
    rules = f"{_RULES} {_FINDINGS}" if "findings" in texts[0] else _RULES
    return "\n\n".join([f"JSON: {texts[0]}", *texts[1:], rules])


def describe(struct: type[Wire], shown: set[type[Wire]]) -> str:
    """The keys of a Struct in braces; a Struct that was described before is named only by its key."""
    return f"{{{', '.join(_describe_field(field, shown) for field in FIELDS[struct])}}}"


def _describe_field(field: Field, shown: set[type[Wire]]) -> str:
    structs = field.structs
    if not structs or field.kind == "Finding" or structs[0] in shown:
        return field.name
    shown.add(structs[0])
    keys = describe(structs[0], shown)
    return f"{field.name}: {f'[{keys}]' if field.container else keys}"
