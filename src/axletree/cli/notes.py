"""What a command says while it works, beside its result."""

from __future__ import annotations

import click

from axletree.view.tables import printable


def say_aside(text: str) -> None:
    """Say it on stderr: what is on stdout is the result."""
    click.echo(printable(text), err=True)
