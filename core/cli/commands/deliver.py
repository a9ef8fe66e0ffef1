"""`ralphdeck loop inject --deliver`: print how the context gets to a loop of another runner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from core.base.masking import mask_secrets
from core.base.text import visible
from core.cli.json import loops as loops_json
from core.cli.render.output import end, print_json, remark, wants_json
from core.cli.support.project import find_loop, open_project
from core.show.pages.loops import delivery_explanation, delivery_text

if TYPE_CHECKING:
    from msgspec import Struct


def print_delivery(loop_id: str) -> None:
    """Print how the context for its task gets to a loop."""
    from core.index.findings import all_findings
    from core.project.reader import find_delivery

    project = open_project(asks=False)
    loop = find_loop(project, loop_id)
    delivery, obstacle = find_delivery(project, loop.id)
    explanation, text = delivery_explanation(loop, delivery, obstacle), delivery_text(delivery)
    findings = all_findings(project.view)

    def document() -> Struct:

        command, diff = ((), "") if delivery is None else (delivery.command, delivery.diff)
        return loops_json.DeliveryDocument.of(
            loop_id=loop.id, explanation=explanation, command=command, diff=diff, findings=findings
        )

    if wants_json():
        print_json(document())
    else:
        remark(explanation)
        click.echo(mask_secrets(visible(text)), nl=False)
    end(findings)
