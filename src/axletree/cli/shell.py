"""``axletree shell``: look around in the folder of a stage that failed."""

from __future__ import annotations

import os
import subprocess
import sys

import click

from axletree.app.shell import find_place
from axletree.cli.opening import open_store
from axletree.core.errors import UsageError


@click.command(
    help="Open a shell in a stage's folder and environment, or run a command there.\n\nSTAGE is a stage id, or "
    "RECIPE:ID where several recipes ran one of that name. The folder of a stage that is running stays closed.",
    context_settings={"allow_interspersed_args": False},  # options behind the stage are the command's own
)
@click.argument("stage")
@click.argument("argv", nargs=-1, metavar="[COMMAND]...")
def command(stage: str, argv: tuple[str, ...]) -> None:
    """Open a shell or run a command where a failed stage stopped, and exit with its exit code."""
    argv = argv[1:] if argv[:1] == ("--",) else argv
    place = find_place(open_store(), stage)
    environ = {**place.environ, "TERM": os.environ.get("TERM", "dumb"), "PS1": f"({place.stage}) \\w $ "}
    if not argv:
        click.echo(f"{place.folder}\nlog: {place.log}\nleave with `exit`", err=True)
        argv = ("/bin/bash", "--norc", "--noprofile", "-i")
    try:
        code = subprocess.run(argv, cwd=place.folder, env=environ, check=False).returncode
    except OSError as error:
        raise UsageError(f"cannot run {argv[0]} in stage {stage}: {error.strerror}") from error
    sys.exit(code if code >= 0 else 128 - code)
