"""Minimal Debian systems: a root file system of a suite with nothing but what is named, to run commands in.

mmdebstrap makes a root once, from the archive that apt is configured with here, and it is kept. A command runs in an
overlay over it, whose changes are thrown away, in namespaces of its own. Of this machine it sees the network, what pip
and uv are told of package indexes and certificates, and the folders that the test names. Works as root, and where an
ordinary user has namespaces and a range of user ids.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from axletree.app.images import make_image
from axletree.core.errors import HostError
from axletree.host.image import debian
from axletree.host.image import layers as image_layers
from axletree.recipe.image_locks import parse_image_lock, render_image_lock
from axletree.recipe.images import DebianTable, Image
from axletree.store import Store
from support.inputs import CACHE, debian_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.core.images import ImageRecord
    from axletree.recipe.image_locks import LockedImage

NOBODY = 65534
_HANDED = "/mnt/handed"
_PATH = re.compile(r"(?<![^\s,])(file://)?(/[^\s,]+)")
_VARIABLES = re.compile(r"^(PIP_|UV_|SSL_CERT_FILE|REQUESTS_CA_|CURL_CA_|(https?|all|no)_proxy$)", re.IGNORECASE)
"""Variables of this machine that say how package indexes are reached."""
_PIP_NAMES = ("index-url", "extra-index-url", "find-links", "trusted-host", "cert", "constraint")
_ENTER = """\
set -eu
work=$1 root=$2; shift 2
mount --make-rprivate /
mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/work" "$work/new"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$work/upper,workdir=$work/work" "$work/new"
for folder in proc sys dev; do mount --rbind "/$folder" "$work/new/$folder"; done
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mkdir -p "$work/new$2"; else mkdir -p "$(dirname "$work/new$2")"; touch "$work/new$2"; fi
  mount --bind "$1" "$work/new$2"
  shift 2
done
shift
# Not chroot alone: who is in one may make no user namespace, as Axletree's stages do.
cd "$work/new"
mkdir -p mnt/before
pivot_root . mnt/before
umount -l /mnt/before
exec "$@"
"""


def debian_root(suite: str, packages: Iterable[str]) -> Path:
    """The folder of a minimal system of a suite, with these packages; kept. Skips with the reason where none can be."""
    if shutil.which("mmdebstrap") is None:
        pytest.skip("a Debian system needs mmdebstrap (apt-get install mmdebstrap)")
    mode = "root" if os.geteuid() == 0 else "unshare"
    wanted = ",".join(sorted(packages))
    key = hashlib.sha256(f"{suite} {wanted} {mode}".encode()).hexdigest()[:8]
    folder = CACHE / f"system-{suite}-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "root").exists():
            _remove(folder / "new")
            include = [f"--include={wanted}"] if wanted else []
            # What mmdebstrap mounts in there is never seen outside: removing a half-made root must not reach /proc.
            apart = ["unshare", "--mount", "--propagation=private"] if mode == "root" else []
            command = [*apart, "mmdebstrap", f"--mode={mode}", "--variant=minbase", "--skip=output/dev", *include]
            command += [f"--aptopt={option}" for option in _apt_options()]
            line = f"deb {debian_line()} {suite} main"
            done = subprocess.run([*command, suite, folder / "new", line], capture_output=True, text=True, check=False)
            if done.returncode:
                _remove(folder / "new")
                pytest.skip(f"Debian {suite} can't be had here: {done.stderr.strip()[-300:]}")
            (folder / "new").replace(folder / "root")
    return folder / "root"


@dataclass(frozen=True)
class TwiceMade:
    """An image that was made twice, and the root of it."""

    first: LockedImage
    second: LockedImage
    record: ImageRecord
    root: Path


def debian_image_twice(suite: str, packages: tuple[str, ...]) -> TwiceMade:
    """An image of a suite, made by Axletree in two stores; kept. Skips with the reason where none can be."""
    image = Image(debian=DebianTable(suite=suite, packages=packages))
    code = [Path(module.__file__ or "").read_bytes() for module in (debian, image_layers)]
    key = hashlib.sha256(b"".join([*code, image.reference.encode()])).hexdigest()[:8]
    folder = CACHE / f"image-{suite}-{key}"
    folder.mkdir(parents=True, exist_ok=True)

    def make(name: str) -> tuple[ImageRecord, LockedImage]:
        note = folder / f"{name}.lock.toml"
        locked = parse_image_lock(note.read_text(), file=note.name)["x"] if note.exists() else None
        made = make_image(Store.open(folder / name), "x", image, locked, folder=folder)
        note.write_text(render_image_lock([made[1]]))
        return made

    with (folder / ".lock").open("w") as lock, ThreadPoolExecutor(max_workers=2) as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            (record, first), (_, second) = pool.map(make, ("first", "second"))
        except HostError as error:
            pytest.skip(f"Debian {suite} can't be had here: {error}"[-400:])
        return TwiceMade(first, second, record, Store.open(folder / "first").image_path(record.id) / "root")


def run_in_root(
    root: Path,
    *command: str,
    shown: Mapping[Path, str] | None = None,
    user: int = 0,
    network: bool = True,
    seconds: float = 900,
) -> subprocess.CompletedProcess[str]:
    """Run a command in a system, with standard error in its output; what it changes there is gone afterwards.

    ``shown`` maps files and folders of this machine to where the system has them, which the command may change.
    An ordinary ``user`` has a home, and no right to install anything. ``network=False`` leaves it none.
    """
    variables, handed = _index_settings()
    binds = handed | dict(shown or {})
    binds |= {path: str(path) for path in (Path("/etc/resolv.conf"), Path("/etc/hosts")) if path.exists()}
    home = "/root" if user == 0 else "/home/user"
    become = f"exec setpriv --reuid={user} --regid={user} --clear-groups"
    prepare = f"mkdir -p {home} && chown {user}:{user} {home} && {become}"
    inside = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", f"HOME={home}"]
    inside += ["LC_ALL=C.UTF-8", *(f"{name}={value}" for name, value in variables.items())]
    with tempfile.TemporaryDirectory(prefix="axletree-system-") as work:
        pairs = [text for source, target in binds.items() for text in (str(source.resolve()), target)]
        return subprocess.run(
            [
                *_unshare(),
                *([] if network else ["--net"]),
                *("sh", "-c", _ENTER, "sh", work, str(root), *pairs, "--"),
                *(*inside, "sh", "-c", f'{prepare} "$@"', "sh", *command),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=seconds,
        )


def _index_settings() -> tuple[dict[str, str], dict[Path, str]]:
    """Variables that tell pip and uv in a system what they are told here, and where it has the files that these name.

    Those lie below one folder: in their own place they would be in the way of packages that are installed.
    """
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    variables = {name: value for name, value in os.environ.items() if _VARIABLES.match(name)}
    for name in _PIP_NAMES:
        found = re.findall(rf"^(?:global|install)\.{name}='(.*)'$", listed, re.MULTILINE)
        if found:
            variables.setdefault("PIP_" + name.upper().replace("-", "_"), found[-1].replace("\\n", " ").strip())
    paths: dict[Path, str] = {}

    def moved(word: re.Match[str]) -> str:
        path = Path(unquote(word[2]))
        # An index lies beside the files that its pages name.
        shown = path.parent if path.name == "simple" else path
        if not shown.exists() or shown == Path("/"):
            return word[0]
        paths[shown] = f"{_HANDED}{shown}"
        return f"{word[1] or ''}{_HANDED}{word[2]}"

    return {name: _PATH.sub(moved, value) for name, value in variables.items()}, paths


def _apt_options() -> list[str]:
    """How apt reaches archives here, and whether it takes one whose date has passed."""
    listed = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False).stdout
    return [line for line in listed.splitlines() if re.match(r'Acquire::(Check-|https?::Proxy).* "[^"]+";', line)]


def _remove(folder: Path) -> None:
    """Remove a folder, in the namespace that made it where its files belong to others."""
    if folder.exists():
        subprocess.run([*_unshare(), "rm", "-rf", "--one-file-system", str(folder)], check=True)


@cache
def _unshare() -> tuple[str, ...]:
    """The start of a command line that runs the rest where it may mount and become another user."""
    if shutil.which("unshare") is not None:
        for options in (("--mount",), ("--user", "--map-root-user", "--map-auto", "--mount")):
            probe = ["unshare", *options, "sh", "-c", f"mount -t tmpfs tmpfs /mnt && setpriv --reuid={NOBODY} true"]
            if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
                return ("unshare", *options)
    pytest.skip("needs a mount namespace with a range of users: no unshare, or it may do nothing")
