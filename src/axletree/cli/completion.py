"""``axletree completion``: the script that completes command lines in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from axletree.cli.main import COMPLETE, cli

SHELLS = ("bash", "zsh", "fish")


@click.command(
    help="Print the script that completes axletree's commands, options and recipes in a shell.\n\n"
    'bash and zsh: eval "$(axletree completion bash)"\n\nfish: axletree completion fish | source'
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script for a shell."""
    made = get_completion_class(shell)
    assert made is not None  # noqa: S101 (click has all three)
    click.echo(made(cli, {}, "axletree", COMPLETE).source())
