"""Facts of this host, or of another from the file that ``axletree facts`` wrote there."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

from axletree import __version__
from axletree.check.host.facts import HostFacts, decode_facts
from axletree.core.errors import Problem, UsageError
from axletree.host.facts.access import this_host
from axletree.host.facts.gather import gather_facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.recipe.settings import Settings


def take_facts(environ: Mapping[str, str], settings: Settings) -> HostFacts:
    """Everything that can be found out of this host, in seconds.

    Args:
        environ: the environment that a build would have.
        settings: say where the store is.
    """
    access = this_host(environ, cwd=Path.cwd(), store=Path(settings.store))
    return gather_facts(access, taken=dt.datetime.now(dt.UTC), version=__version__)


def read_facts(file: Path) -> HostFacts:
    """Facts from a file.

    Raises:
        UsageError: it can't be read, or holds none.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(Problem(file=str(file), message=f"the file cannot be read: {error.strerror}")) from error
    return decode_facts(data, file=str(file))
