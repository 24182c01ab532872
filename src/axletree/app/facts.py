"""Facts of this host, or of another from the file that ``axletree facts`` wrote there."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

from axletree import __version__
from axletree.check.host.facts import HostFacts, decode_facts
from axletree.core.errors import HostError, Problem, UsageError
from axletree.host.facts.access import this_host
from axletree.host.facts.gather import gather_facts
from axletree.store.layout import default_root

if TYPE_CHECKING:
    from collections.abc import Mapping


def take_facts(environ: Mapping[str, str]) -> HostFacts:
    """Everything that can be found out of this host, in seconds.

    Args:
        environ: the environment that a build would have.

    Raises:
        HostError: the working folder is not there any more.
    """
    try:
        cwd = Path.cwd()
    except FileNotFoundError as error:
        raise HostError("the working folder was removed", hint="cd to an existing folder") from error
    access = this_host(environ, cwd=cwd, store=default_root(environ))
    return gather_facts(access, taken=dt.datetime.now(dt.UTC), version=__version__)


def read_facts(file: Path) -> HostFacts:
    """Facts from a file.

    Raises:
        UsageError: it can't be read, or holds none.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(Problem(file=str(file), message=f"cannot be read: {error.strerror}")) from error
    return decode_facts(data, file=str(file))
