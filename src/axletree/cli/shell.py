"""``axletree shell``: look around in the folder of a stage that failed."""

from __future__ import annotations

import os
import sys

import click

from axletree.app.shell import find_place, run_in
from axletree.cli.opening import open_store


@click.command(context_settings={"allow_interspersed_args": False})  # options behind the stage are the command's own
@click.argument("stage")
@click.argument("argv", nargs=-1, metavar="[COMMAND]...")
def command(stage: str, argv: tuple[str, ...]) -> None:
    """Open a shell in a stage's folder and environment, or run a command there.

    STAGE is a stage id, or RECIPE:ID if several recipes have a stage with that id. The folder of a running stage cannot
    be opened.
    """
    argv = argv[1:] if argv[:1] == ("--",) else argv
    place = find_place(open_store(), stage)
    environ = {**place.environ, "TERM": os.environ.get("TERM", "dumb"), "PS1": f"({place.stage}) \\w $ "}
    if not argv:
        click.echo(f"{place.folder}\nlog: {place.log}\nleave with `exit`", err=True)
        argv = ("/bin/bash", "--norc", "--noprofile", "-i")
    sys.exit(run_in(place, argv, environ))
