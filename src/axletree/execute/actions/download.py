"""Run a recipe's commands with a network: what they leave in ``$AXLETREE_OUT`` must have the recipe's digest.

So where it came from does not matter: proxies, mirrors and logins of the user count here, and are in no key.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.core.errors import ExpectationError, HostError
from axletree.core.units import some_lines
from axletree.execute.actions.hipify import compare
from axletree.execute.actions.run import run_commands
from axletree.execute.context import Outcome
from axletree.store.results import is_complete

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.core.values import Digest
    from axletree.execute.context import ActionContext
    from axletree.plan.actions.download import DownloadParameters

_NO_CONTENT = (".git", "__pycache__")
"""What is another each time, although what it is of is the same."""
_PASSED = (
    *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO"),
    *("PIP_CERT", "CARGO_HTTP_CAINFO", "NODE_EXTRA_CA_CERTS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"),
    *("GOPROXY", "NPM_CONFIG_REGISTRY", "npm_config_registry"),
)
_OFFLINE = ("PIP_NO_INDEX", "PIP_CONFIG_FILE", "UV_OFFLINE", "UV_NO_CONFIG")
"""What keeps tools of other stages from trying."""
_SHOWN = 10


def run(context: ActionContext[DownloadParameters]) -> Outcome:
    """Run the commands as in a ``run`` stage, and compare what they leave.

    Without a network, the result of an earlier run is taken if the recipe names its digest.

    Raises:
        StageError: a command fails, nothing was made, or it is not what the recipe pins; which files differ is said
            where the store still has what is pinned.
        HostError: offline, and the store does not have it.
    """
    pinned = context.parameters.sha256
    if context.settings.offline:
        if pinned is None or not is_complete(context.store, pinned):
            hint = "run the command once without --offline"
            raise HostError("the stage downloads files, and --offline is set", hint=hint)
        context.log.say("offline: the pinned files are in the store, so no command ran")
        return Outcome(tree=pinned)
    out = run_commands(
        context, compiles=False, more=network_variables(context.environ, mine=_is_mine(context)), less=_OFFLINE
    )
    for path in sorted(each for name in _NO_CONTENT for each in out.rglob(name)):
        context.log.say(f"left out, because it is different in each download: {path.relative_to(out)}")
    tree = context.store.ingest(out, adopt=True, exclude=tuple(f"**/{name}" for name in _NO_CONTENT))
    if tree != pinned:
        raise _wrong(context, pinned, tree)
    return Outcome(tree=tree)


def _is_mine(context: ActionContext[DownloadParameters]) -> bool:
    """Whether the commands see the user's own files."""
    return context.ingredients.image is None


def network_variables(environ: Mapping[str, str], *, mine: bool) -> dict[str, str]:
    """What tools need of the user's environment to reach servers as they do in the user's shell.

    Args:
        environ: The user's variables.
        mine: Whether the tools see the user's home, where cargo, git and pip keep settings, logins and caches.
    """
    passed = {name: environ[name] for name in _PASSED if name in environ}
    home = Path(environ.get("HOME", "/"))
    files = {
        "CARGO_HOME": (home / ".cargo",),
        "GIT_CONFIG_GLOBAL": (home / ".gitconfig", home / ".config/git/config"),
        "PIP_CONFIG_FILE": (home / ".config/pip/pip.conf", home / ".pip/pip.conf"),
    }
    for name, places in files.items() if mine else ():
        found = environ.get(name) or next((str(place) for place in places if os.access(place, os.R_OK)), None)
        if found is not None:
            passed[name] = found
    return passed


def _wrong(context: ActionContext[DownloadParameters], pinned: Digest | None, tree: Digest) -> ExpectationError:
    """The error of files that are not the pinned ones."""
    setting = context.request.local.setting
    table = f"stages.{context.request.stage.partition('[')[0]}"
    place = f"{table}.sha256" if setting is None else setting.place(f"{table}.sha256")
    if pinned is None:
        message = f'nothing pins what the stage downloads; for these files, the digest is\n    sha256 = "{tree}"'
        return ExpectationError(message, hint=f"check the files, then set {place}")
    message = (
        f"the downloaded files are not the pinned ones\n    expected sha256 {pinned}\n    got sha256      {tree}"
        f"{_difference(context, pinned, tree)}"
    )
    return ExpectationError(message, hint=f"if the change is intended, correct {place}")


def _difference(context: ActionContext[DownloadParameters], pinned: Digest, tree: Digest) -> str:
    """Which files differ, if the store still has the pinned ones."""
    if not is_complete(context.store, pinned):
        return "\n    the store does not have the pinned files, so it is not known which ones differ"
    found = compare(context.store.get_tree(pinned), context.store.get_tree(tree))
    lines = [
        *(f"changed: {path}" for path in found.edited),
        *(f"new: {path}" for path in found.made),
        *(f"missing: {path}" for path in found.removed),
    ]
    return "".join(f"\n    {line}" for line in some_lines(lines, _SHOWN, what="file"))
