"""Settings of real files, variables and options, and the command that shows them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from axletree.cli.main import cli
from axletree.cli.opening import open_store, settings
from axletree.core.errors import HostError, UsageError
from axletree.host.settings import load_settings, project_file, user_file

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.recipe.settings import Loaded


class Places:
    """A user with a configuration, and a project with a folder to work in."""

    def __init__(self, home: Path, project: Path) -> None:
        self.home, self.project, self.cwd = home, project, project / "deep" / "er"
        self.cwd.mkdir(parents=True)

    def user(self, text: str) -> Places:
        user_file().parent.mkdir(parents=True, exist_ok=True)
        user_file().write_text(text)
        return self

    def of_project(self, text: str) -> Places:
        (self.project / "axletree.toml").write_text(text)
        return self

    def load(self, **variables: str) -> Loaded:
        return load_settings(variables, home=self.home, cwd=self.cwd)


@pytest.fixture
def places(isolated_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.delenv("AXLETREE_STORE")
    found = Places(isolated_home, tmp_path / "project")
    monkeypatch.chdir(found.cwd)
    return found


def test_without_anything(places: Places) -> None:
    loaded = places.load()
    assert loaded.settings.store == str(places.home / ".cache" / "axletree" / "store")
    assert loaded.settings.out == "dist"
    assert set(loaded.origins.values()) == {("default",)}


def test_options_win_over_variables_variables_over_the_project_and_that_over_the_user(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.user('jobs = 1\nout = "of-the-user"\nindex-url = "https://user"\n').of_project('jobs = 2\nout = "here"\n')
    assert settings().jobs == 2
    monkeypatch.setenv("AXLETREE_JOBS", "3")
    monkeypatch.setenv("AXLETREE_INDEX_URL", "https://variable")
    assert (settings().jobs, settings().index_url) == (3, "https://variable")
    assert settings(index_url="https://option").index_url == "https://option"
    assert settings(out=None).out == str(places.project / "here")
    assert settings(out="there").out == "there"


def test_paths_of_a_file_are_relative_to_it(places: Places) -> None:
    places.user('store = "store"\nfind-links = ["wheels", "~/mine", "https://x/y"]\nextra-index-url = ["../index"]\n')
    found = places.load().settings
    folder = user_file().parent
    assert found.store == str(folder / "store")
    assert found.find_links == (str(folder / "wheels"), str(places.home / "mine"), "https://x/y")
    assert found.extra_index_url == ((folder.parent / "index").as_uri(),)
    places.of_project('out = "dist/wheels"\n')
    assert places.load().settings.out == str(places.project / "dist" / "wheels")


def test_paths_of_variables_are_relative_to_the_working_folder(places: Places) -> None:
    found = places.load(AXLETREE_STORE="store", AXLETREE_FIND_LINKS="wheels ~/mine", AXLETREE_OUT="out").settings
    assert found.store == str(places.cwd / "store")
    assert found.find_links == (str(places.cwd / "wheels"), str(places.home / "mine"))
    assert found.out == "out"


def test_the_nearest_project_file_counts(places: Places) -> None:
    assert project_file(places.cwd) is None
    places.of_project("jobs = 2\n")
    assert places.load().origins["jobs"] == (f"{places.project}/axletree.toml:1",)
    (places.cwd / "axletree.toml").write_text('\nout = "here"\n')
    loaded = places.load()
    assert (loaded.settings.jobs, loaded.settings.out, loaded.origins["out"]) == (None, "here", ("axletree.toml:2",))


def test_a_strangers_project_is_refused_with_file_line_and_key(places: Places) -> None:
    places.of_project('jobs = 2\nfind-links = ["wheels"]\nstore = "/tmp/theirs"\n')
    with pytest.raises(UsageError) as caught:
        places.load()
    file = str(places.project / "axletree.toml")
    assert [(problem.file, problem.line, problem.key) for problem in caught.value.problems] == [
        (file, 2, "find-links"),
        (file, 3, "store"),
    ]
    ended = CliRunner().invoke(cli, ["settings"])
    assert isinstance(ended.exception, UsageError)


def test_a_file_that_cannot_be_read(places: Places) -> None:
    places.user("")
    user_file().write_bytes(b"jobs = \xff")
    with pytest.raises(HostError, match="not UTF-8"):
        places.load()


def test_the_store_is_opened_where_the_settings_say(places: Places) -> None:
    places.user('store = "~/elsewhere"\n')
    assert open_store().root == places.home / "elsewhere"


def test_the_command_shows_each_with_its_place(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    places.user(
        '# mine\nindex-url = "https://me:secret@index/simple"\nfind-links = ["~/wheels", "https://me:secret@links/x?token=secret"]\n'
    )
    monkeypatch.setenv("AXLETREE_OFFLINE", "1")
    monkeypatch.setenv("AXLETREE_FIND_LINKS", "here")
    monkeypatch.setenv("COLUMNS", "500")
    ended = CliRunner().invoke(cli, ["settings"])
    assert ended.exit_code == 0
    lines = dict(line.split(maxsplit=1) for line in ended.output.splitlines())
    assert lines["offline"].split() == ["true", "AXLETREE_OFFLINE"]
    assert lines["jobs"].split() == ["-", "default"]
    assert lines["index-url"].split() == ["https://****@index/simple", f"{user_file()}:2"]
    assert lines["find-links"].startswith(f"{places.cwd}/here {places.home}/wheels https://")
    assert lines["find-links"].endswith(f"AXLETREE_FIND_LINKS, {user_file()}:3")
    assert ended.output.endswith(f"your own settings are in {user_file()}\n")
    told = json.loads(CliRunner().invoke(cli, ["settings", "--json"]).output)
    rows = {row["key"]: (row["value"], row["origins"]) for row in told["result"]["settings"]}
    assert rows["find-links"] == (
        [f"{places.cwd}/here", f"{places.home}/wheels", "https://****@links/x?token=****"],
        ["AXLETREE_FIND_LINKS", f"{user_file()}:3"],
    )
    assert "secret" not in ended.output + json.dumps(told)


def test_help_reads_no_settings(places: Places) -> None:
    places.of_project("this is no TOML")
    for argv in (["--help"], ["build", "--help"], ["settings", "--help"]):
        assert CliRunner().invoke(cli, argv).exit_code == 0
    assert os.listdir(places.cwd) == []  # noqa: PTH208
