"""``axletree facts``: what this host is and has."""

from __future__ import annotations

import os

import click
import msgspec

from axletree.app.facts import take_facts
from axletree.cli.opening import settings


@click.command()
def command() -> None:
    """Print all facts of this host that builds depend on, as JSON.

    Each comes with its source, or with why it is not known. What can be tried is tried: compilers compile, links are
    made, job servers hand out tokens; in temporary folders, which are removed. The home folder becomes ~; names of the
    user and the machine, credentials and secrets are left out. `axletree doctor --facts FILE` judges such a file.
    """
    facts = take_facts(os.environ, settings())
    click.echo(msgspec.json.format(msgspec.json.encode(facts), indent=1))
