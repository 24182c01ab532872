"""``axletree facts``: what this host is and has."""

from __future__ import annotations

import os

import click

from axletree.app.facts import take_facts
from axletree.check.host.facts import HostFacts
from axletree.cli.opening import settings
from axletree.cli.reporting import ReportCommand, Reported, terminal_width
from axletree.view.facts import facts_lines


@click.command(cls=ReportCommand, report=HostFacts)
def command() -> Reported:
    """Print all facts about this host that builds depend on.

    Each fact is shown with its source, or with the reason why it is unknown. Facts are tested where possible, for
    example by compiling a file, creating links or taking tokens from a job server; temporary folders are removed. The
    home folder becomes ~; the names of the user and the machine, credentials and secrets are left out. `axletree
    doctor --facts FILE` checks the facts that `axletree facts --json` wrote to a file.
    """
    facts = take_facts(os.environ, settings())
    return Reported(facts, lambda: facts_lines(facts, width=terminal_width(120)))
