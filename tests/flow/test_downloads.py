"""Download stages: commands with a network, whose result the recipe pins by the digest of its files."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree.core.events import StageFinished
from axletree.core.values import Digest
from axletree.execute.actions.download import network_variables
from axletree.plan.actions.download import DownloadParameters
from axletree.store import Store
from support.elfs import need
from support.faulty import PYTHON, make_project
from support.index_server import serve
from support.repositories import Origin
from support.requests import run_action

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.faulty import Ended, Project
    from support.index_server import Server

RECIPE = """\
name = "small"
version = "1.0"
source = { path = "src" }

[stages.crates]
action = "download"
commands = [
  "mkdir -p $AXLETREE_OUT/a/.git $AXLETREE_OUT/b/__pycache__; date +%N > $AXLETREE_OUT/a/.git/index",
  "date +%N > $AXLETREE_OUT/b/__pycache__/x; python3 -c '$GET' > $AXLETREE_OUT/a/file",
]
env = { GET = "GET" }

[stages.lib]
action = "run"
source = false
inputs = ["crates"]
commands = ["find $AXLETREE_IN_CRATES -type f -printf '%P\\\\n' > $AXLETREE_OUT/found"]
"""
GET = "import urllib.request as r; print(r.urlopen('ADDRESS/file').read().decode())"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve() as server:
        server.files["/file"] = b"content"
        yield server


@pytest.fixture
def project(tmp_path: Path, server: Server) -> Project:
    need("python3")
    recipe = RECIPE.replace("'$GET'", '\\"$GET\\"').replace('"GET"', f'"{GET.replace("ADDRESS", server.address)}"')
    return make_project(tmp_path / "project", recipe).having(NO_PROXY="127.0.0.1")


def message(ended: Ended, stage: str = "crates") -> str:
    assert ended.code != 0
    return str(ended.finished(stage)["message"])


def pin(project: Project, ended: Ended) -> str:
    """Set the digest that the stage printed."""
    found = re.search(r'sha256 = "([0-9a-f]{64})"', message(ended))
    assert found is not None
    project.edit('action = "download"\n', f'action = "download"\nsha256 = "{found[1]}"\n')
    return found[1]


def test_the_digest_is_printed_and_pins_what_comes(project: Project, server: Server) -> None:
    first = project.build("--json")
    assert "nothing pins what the stage downloads" in message(first)
    assert "then set stages.crates.sha256 in small.toml, line 5" in message(first)
    assert first.statuses()["lib"] == "blocked"
    digest = pin(project, first)
    second = project.build("--json")
    assert (second.code, second.finished("crates")["tree"]) == (0, digest), second.out
    said = "".join(path.read_text() for path in (project.store / "logs").glob("*.log"))
    assert "left out, because it is different in each download: a/.git" in said
    assert "different in each download: b/__pycache__" in said
    server.files["/file"] = b"other"
    project.edit("a/file", "a/file; touch $AXLETREE_OUT/more")
    assert project.build("--json", "--offline").statuses()["crates"] == "done"  # the pinned files are in the store
    project.edit("OUT/more", "OUT/new")
    told = message(project.build("--json"))
    assert f"expected sha256 {digest}" in told
    differences = [line.strip() for line in told.splitlines() if line.startswith("    ")][2:]
    assert differences == ["changed: a/file", "new: new"]
    assert "correct stages.crates.sha256 in small.toml, line 7" in told


def test_a_difference_that_nobody_knows_is_said_to_be_unknown(project: Project) -> None:
    store = Store.open(project.store)
    unknown = Digest("ab" * 32)
    parameters = DownloadParameters(directory=".", commands=("echo x > $AXLETREE_OUT/x",), sha256=unknown)
    failed = run_action(store, "download", parameters, {})
    assert isinstance(failed, StageFinished)
    assert "it is not known which ones differ" in (failed.message or "")


def test_tools_reach_servers_as_in_the_users_shell(tmp_path: Path) -> None:
    (tmp_path / ".cargo").mkdir()
    environ = {"HOME": str(tmp_path), "https_proxy": "http://proxy.example:3128", "GITHUB_TOKEN": "secret"}
    passed = {"https_proxy": "http://proxy.example:3128"}
    assert network_variables(environ, mine=False) == passed
    assert network_variables(environ, mine=True) == {**passed, "CARGO_HOME": str(tmp_path / ".cargo")}
    (tmp_path / ".gitconfig").touch()
    environ["CARGO_HOME"] = "/opt/cargo"
    named = {"CARGO_HOME": "/opt/cargo", "GIT_CONFIG_GLOBAL": str(tmp_path / ".gitconfig")}
    assert network_variables(environ, mine=True) == {**passed, **named}


def test_other_stages_have_no_network(project: Project) -> None:
    project.edit('action = "download"\n', 'action = "run"\n')
    ended = project.build("--json")
    if ended.finished("crates")["lacks"]:
        pytest.skip("this host does not take the network away")
    assert ended.finished("crates")["status"] == "failed"
    (log,) = (path for path in (project.store / "logs").glob("*.log") if "urlopen" in path.read_text())
    assert "Connection refused" in log.read_text()


CARGO = """\
name = "small"
version = "1.0"
source = { path = "src" }

[stages.crates]
action = "download"
tools = ["cargo", "rustc"]
commands = ["cargo vendor --locked $AXLETREE_OUT/vendor"]

[stages.lib]
action = "run"
inputs = ["crates"]
tools = ["cargo", "rustc"]
commands = ['''
mkdir .cargo
cat > .cargo/config.toml <<END
[source."LEAF"]
git = "LEAF"
replace-with = "vendored"
[source.vendored]
directory = "$AXLETREE_IN_CRATES/vendor"
END
cargo build --offline --locked --release --target-dir $TMPDIR/target
cp $TMPDIR/target/release/small $AXLETREE_OUT/
$AXLETREE_OUT/small
''']
"""


def test_cargo_builds_offline_with_crates_that_were_vendored(tmp_path: Path) -> None:
    need("cargo", "rustc", "git")
    leaf = Origin(tmp_path / "leaf")
    manifest = '[package]\nname = "leaf"\nversion = "0.1.0"\nedition = "2021"\n'
    commit = leaf.commit(**{"Cargo.toml": manifest, "src/lib.rs": "pub fn answer() -> i32 { 42 }\n"})
    files = {
        "src/Cargo.toml": manifest.replace("leaf", "small") + f'[dependencies]\nleaf = {{ git = "{leaf.url}" }}\n',
        "src/src/main.rs": 'fn main() { println!("the answer is {}", leaf::answer()); }\n',
        "src/Cargo.lock": (
            'version = 4\n\n[[package]]\nname = "leaf"\nversion = "0.1.0"\n'
            f'source = "git+{leaf.url}#{commit}"\n\n'
            '[[package]]\nname = "small"\nversion = "0.1.0"\ndependencies = [\n "leaf",\n]\n'
        ),
    }
    project = make_project(tmp_path / "project", CARGO.replace("LEAF", leaf.url), files=files)
    home = os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup"))
    project = project.having(RUSTUP_HOME=home)  # a test has a home of its own
    pin(project, project.build("--json"))
    shutil.rmtree(tmp_path / "leaf")
    ended = project.build("--json", "--offline")
    assert ended.code == 0, ended.out
    said = "".join(path.read_text() for path in (project.store / "logs").glob("*.log"))
    assert "the answer is 42" in said


@pytest.mark.proof
def test_a_real_sdist_that_carries_its_crates_is_built_with_the_rust_of_this_host(tmp_path: Path) -> None:
    need("cargo", "rustc", "cc")
    project = make_project(tmp_path / "project").online()
    ended = project.start("wheel", "orjson==3.10.18", "--python", PYTHON, "--out", "dist").end(1200)
    assert ended.code == 0, ended.out + ended.err
    assert [name.startswith("orjson-3.10.18-") for name in project.wheels()] == [True]
