"""Images in registries, which skopeo fetches: it knows their logins, certificates, mirrors and short names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import HostError, Problem
from axletree.core.values import Digest, digest_of
from axletree.host.image.oci import read_layout
from axletree.host.run import finish
from axletree.package.image.choice import for_platform
from axletree.package.image.documents import Index, bare_digest, decode

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.host.image.source import SourceImage

_SECONDS = 3600.0
_ASK_SECONDS = 120.0
_TAG = re.compile(r"(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(?:@sha256:[0-9a-f]{64})?$")
_TAG_BEFORE_DIGEST = re.compile(r":[A-Za-z0-9_.-]+(?=@)")
_HINT = "install skopeo (Debian, Ubuntu: apt-get install skopeo)"


class Skopeo(msgspec.Struct, frozen=True, kw_only=True):
    """How skopeo is called."""

    environ: Mapping[str, str]
    platform: str

    def ask(self, *words: str | Path, seconds: float = _ASK_SECONDS) -> bytes:
        """Run it; what it prints.

        Raises:
            HostError: it is not installed, or fails; with its message.
        """
        system, _, machine = self.platform.partition("/")
        chosen = ("--override-os", system, "--override-arch", machine)
        command = ["skopeo", *chosen, *words]
        done = finish(command, environ=self.environ, seconds=seconds, hint=_HINT)
        if done.code:
            raise HostError(_message(done.err.decode(errors="replace")))
        return done.out


def pinned_digest(reference: str, skopeo: Skopeo) -> Digest:
    """The manifest that a reference means now, for the platform.

    Raises:
        HostError: the registry can't be reached, or has no such image.
        IntegrityError: its answer is damaged.
        UsageError: it is not built for the platform.
    """
    exact = _TAG_BEFORE_DIGEST.sub("", reference)  # skopeo takes no name with both
    try:
        data = skopeo.ask("inspect", "--raw", f"docker://{exact}")
    except HostError as error:
        raise _unreachable(reference, None, error) from error
    if b'"manifests"' not in data:
        return digest_of(data)
    index = decode(data, Index, file=reference, what="image index")
    return bare_digest(for_platform(index.manifests, skopeo.platform, file=reference).digest, file=reference)


def fetch_image(reference: str, pinned: Digest, skopeo: Skopeo, scratch: Path) -> SourceImage:
    """An image of a registry, by the digest of its manifest.

    Args:
        reference: as the recipe has it.
        pinned: the digest.
        skopeo: how it is called.
        scratch: a private folder.

    Raises:
        HostError: the registry can't be reached, or no longer has it.
        IntegrityError: what came is damaged.
        UsageError: it is not built for the platform.
    """
    exact = f"{_TAG.sub('', reference)}@sha256:{pinned}"
    try:
        # Short names, logins and mirrors are skopeo's business. What it writes is checked like any other layout.
        skopeo.ask("copy", "--quiet", f"docker://{exact}", f"oci:{scratch / 'layout'}", seconds=_SECONDS)
    except HostError as error:
        raise _unreachable(reference, pinned, error) from error
    found = read_layout(scratch / "layout", None, platform=skopeo.platform, name=reference)
    # Its own manifest may be in docker's format, which skopeo converts: the lock has the one of the registry.
    return msgspec.structs.replace(found, manifest_digest=pinned)


def _unreachable(reference: str, pinned: Digest | None, error: HostError) -> HostError:
    problem = error.problems[0]
    if problem.hint == _HINT:
        return error
    locked = f" (locked: sha256:{pinned})" if pinned else ""
    exact = f"{_TAG.sub('', reference)}@sha256:{pinned}" if pinned else reference
    hint = "check the network and `skopeo login`; or copy the image on another machine with `skopeo copy "
    hint += f'docker://{exact} oci:DIR`, copy that folder to this machine, and set from = "oci:DIR"'
    return HostError(Problem(message=f"cannot fetch the image {reference}{locked}: {problem.message}", hint=hint))


def _message(text: str) -> str:
    """What skopeo says, without its log's decoration."""
    lines = [line for line in text.splitlines() if line.strip()]
    last = lines[-1] if lines else "skopeo failed without a message"
    found = re.search(r'msg="(.*)"$', last)
    return (found[1].replace('\\"', '"') if found else last)[:500]
