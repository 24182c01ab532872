"""``axletree facts``: what this host is and has."""

from __future__ import annotations

import os

import click
import msgspec

from axletree.app.facts import take_facts


@click.command()
def command() -> None:
    """Print all facts of this host that builds depend on, as JSON.

    Each fact has its source, or the reason why it is unknown. Facts are tested where possible: compilers compile, links
    are made and job servers hand out tokens, in temporary folders that are removed. The home folder becomes ~; names of
    the user and the machine, credentials and secrets are left out. `axletree doctor --facts FILE` checks such a file.
    """
    facts = take_facts(os.environ)
    click.echo(msgspec.json.format(msgspec.json.encode(facts), indent=1))
