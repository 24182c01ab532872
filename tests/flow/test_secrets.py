"""Secrets of the shell that starts a build reach no log, request, record, event, report, wheel, nor anything else."""

from __future__ import annotations

import base64
import io
import tarfile
import zipfile
import zlib
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from support.faulty import BOUND, LIBRARY, PYTHON, make_project, pylock, without_namespaces
from support.index_server import make_wheel, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.faulty import Ended, Project

SECRETS = {
    "GITHUB_TOKEN": "ghp_3fW9token0fGitHub",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCY",
    "DEPLOY_PRIVATE_KEY": "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEAsecondline\n-----END KEY-----",
    "SERVICE_PASSWORD": "correct horse battery",
}
PASSWORD = "pass/w0rd@index"
LOGIN = f"reader:{quote(PASSWORD, safe='')}"
TOKEN = "index-token-without-password"
TRACES = (
    *(line for value in SECRETS.values() for line in value.splitlines() if "KEY---" not in line),
    PASSWORD,
    quote(PASSWORD, safe=""),
    TOKEN,
    base64.b64encode(f"reader:{PASSWORD}".encode()).decode(),
)
"""What must be found nowhere."""

NOSY = LIBRARY.replace(
    '  "mkdir -p $AXLETREE_OUT/lib",\n',
    """  "mkdir -p $AXLETREE_OUT/lib",
  "echo '[1/1]' $(env); env; set; cat /proc/*/environ /proc/*/cmdline | tr '\\\\0' '\\\\n' || true",
  "env > $AXLETREE_OUT/lib/env.txt; set > $AXLETREE_OUT/lib/set.txt",
  "cat /proc/*/environ > $AXLETREE_OUT/lib/processes.txt || true",
""",
)
"""A build that prints and keeps whatever it can find of its surroundings."""


def shell(address: str) -> dict[str, str]:
    """The variables of a user who has credentials in every place that there is for them."""
    indexes = {
        f"{tool}_{kind}_URL": address.replace("://", f"://{login}@") + f"/{tool.lower()}-{kind.lower()}"
        for tool in ("PIP", "AXLETREE", "UV")
        for kind, login in (("INDEX", LOGIN), ("EXTRA_INDEX", TOKEN))
    }
    return {**SECRETS, **indexes, "AXLETREE_NO_INDEX": ""}


def contents(path: Path) -> Iterator[bytes]:
    """A file, and what is packed inside it."""
    data = path.read_bytes()
    yield data
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            yield from (archive.read(name) for name in archive.namelist())
    elif data.startswith(b"\x1f\x8b"):
        yield zlib.decompress(data, wbits=31)
        if tarfile.is_tarfile(io.BytesIO(data)):
            with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                yield from (stream.read() for member in tar if (stream := tar.extractfile(member)) is not None)


def leaks(project: Project) -> list[str]:
    """Files with a secret inside, among all that the project's builds wrote and said."""
    found = []
    files = [path for path in project.folder.rglob("*") if path.is_file() and path.name != "pip.conf"]
    assert len(files) > 10
    for path in files:
        whole = b"\0".join(contents(path))
        found += [f"{path.relative_to(project.folder)}: {trace}" for trace in TRACES if trace.encode() in whole]
    return found


def check_nosy(project: Project, ended: Ended) -> None:
    assert ended.code == 0, ended.out + ended.err
    log = next((project.store / "logs").glob("*.log"))
    assert any("AXLETREE_OUT=" in path.read_text(errors="replace") for path in log.parent.iterdir())
    assert len(project.wheels()) == 1
    assert leaks(project) == []


def test_a_build_that_prints_all_it_sees(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", NOSY).having(**shell("http://127.0.0.1:9"))
    check_nosy(project, project.build("--json"))
    check_nosy(project, project.build())


def test_a_build_that_looks_at_our_processes(tmp_path: Path) -> None:
    """Without a PID namespace a stage sees the processes that started it, and they belong to the same user."""
    project = make_project(tmp_path / "project", NOSY).having(**shell("http://127.0.0.1:9"))
    option = ("--index-url", f"http://{LOGIN}@127.0.0.1:9/simple")
    check_nosy(project, project.build("--json", *option, prefix=without_namespaces()))


def test_a_build_that_fails(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", NOSY).having(**shell("http://127.0.0.1:9"))
    project.edit('|| true",\n  "c++', '|| true; cat /proc/self/environ; exit 3",\n  "c++')
    assert project.build().code == 1
    assert leaks(project) == []


@pytest.mark.parametrize(
    ("place", "status"),
    [("variables", 200), ("variables", 404), ("pip.conf", 200), ("pip.conf", 401), ("option", 200), ("option", 403)],
)
def test_an_index_with_credentials(place: str, status: int, tmp_path: Path) -> None:
    name, data = make_wheel("helper", "1.0")
    recipe = BOUND.replace("[environments.plain]", '[environments.plain]\nrequires = ["helper"]')
    files = {f"small/pylock.plain-py{PYTHON.replace('.', '')}.toml": pylock({name: data}, requires=["helper"])}
    with serve() as server:
        server.add_project("helper", {name: data})
        address = server.address.replace("://", f"://{LOGIN}@") + "/simple"
        token = server.address.replace("://", f"://{TOKEN}@") + "/other"
        if status != 200:
            server.statuses += [status] * 100
        project = make_project(tmp_path / "project", recipe, files=files, AXLETREE_NO_INDEX="", **SECRETS)
        options: tuple[str, ...] = ()
        if place == "variables":
            project = project.having(PIP_INDEX_URL=address, PIP_EXTRA_INDEX_URL=token)
        elif place == "pip.conf":
            conf = project.folder / "pip.conf"
            conf.write_text(f"[global]\nindex-url = {address}\nextra-index-url = {token}\n", encoding="utf-8")
            project = project.having(PIP_CONFIG_FILE=str(conf))
        else:
            options = ("--index-url", address)
        ended = project.build(*options)
        assert ended.code == (0 if status == 200 else 3), ended.out + ended.err
        sent = {headers.get("authorization", "") for _, _, headers in server.requests}
    assert f"Basic {base64.b64encode(f'reader:{PASSWORD}'.encode()).decode()}" in sent
    assert leaks(project) == []
