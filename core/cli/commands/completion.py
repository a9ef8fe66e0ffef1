"""`ralphdeck completion`."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from core.cli.render.output import print_bytes
from core.cli.support.options import OneOf

SHELLS: Final = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=OneOf(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell; it completes commands, options and IDs.

    \b
    Examples:
      bash: ralphdeck completion bash > ~/.local/share/bash-completion/completions/ralphdeck
      zsh:  ralphdeck completion zsh  > ~/.zfunc/_ralphdeck   (with ~/.zfunc in $fpath)
      fish: ralphdeck completion fish > ~/.config/fish/completions/ralphdeck.fish
    """
    complete = get_completion_class(shell)
    assert complete is not None
    program = ctx.find_root().info_name or "ralphdeck"
    script = complete(ctx.find_root().command, {}, program, f"_{program}_COMPLETE".upper()).source()
    print_bytes(script.encode())
