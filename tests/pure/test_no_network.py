"""Stages that download something: who wants what, by logs of real tools, and what of a recipe has it instead."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec
import pytest

from axletree.check.diagnosis.decode import FAILURE_KINDS
from axletree.check.diagnosis.engine import Diagnosed, Engine
from axletree.check.diagnosis.no_network import Wanted, wanted_by
from axletree.core.setting import StageSetting
from axletree.host.shipped_data import read_shipped

STAGE = StageSetting(
    recipe="small.toml", table="stages.lib", environment="build", action="run", lines={"stages.lib.commands": 7}
)
OFFLINE = msgspec.structs.replace(STAGE, network=False)


LOGS = {
    name: table["log"]
    for name, table in tomllib.loads(
        (Path(__file__).parents[1] / "support" / "stage_downloads.toml").read_text(encoding="utf-8")
    ).items()
}


@cache
def engine() -> Engine:
    return Engine(read_shipped(FAILURE_KINDS))


def first(log: str, setting: StageSetting = OFFLINE) -> Diagnosed:
    return engine().diagnose([log.encode()], setting=setting).findings[0]


TITLES = {
    "ext-url": "CMake's ExternalProject zlib_external downloads https://zlib.example/zlib-1.3.1.tar.gz",
    "ext-git": "CMake's ExternalProject gloo_external downloads https://git.example/gloo.git",
    "fetch-git": "CMake's FetchContent fmt downloads https://git.example/fmt.git",
    "fetch-url": "CMake's FetchContent fmt downloads https://files.example/fmt-10.2.1.zip",
    "file-download": "The build downloads something",
    "cargo": "cargo downloads crate itoa",
    "cargo-git": "cargo downloads crate leaf",
    "cargo-offline": "cargo downloads crate itoa",
    "pip": "pip downloads six==1.16.0",
    "submodule": "git clones submodule r/third_party/gloo from https://git.example/gloo.git",
    "curl": "The build downloads something",
    "wget": "The build downloads something",
    "urllib": "The build downloads something",
}


@pytest.mark.parametrize("name", TITLES)
def test_a_log_of_a_stage_is_told_as_a_lack_of_network_not_of_dns(name: str) -> None:
    found = first(LOGS[name])
    assert (found.rule, found.message) == ("fetch/offline", f"{TITLES[name]}, but stages have no network")
    usual = first(LOGS[name], STAGE)
    assert usual.rule != "fetch/offline" or name == "cargo-offline"
    assert "stages have no network" not in usual.message


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ext-url", ['    url = "https://zlib.example/zlib-1.3.1.tar.gz"', '    into = "third_party/zlib-external"']),
        (
            "ext-git",
            ['    git = "https://git.example/gloo.git"', '    ref = "TAG OR COMMIT"'],
        ),
        ("fetch-git", ["    [sources.fmt]", '    git = "https://git.example/fmt.git"']),
        ("cargo", ['    action = "download"', '    commands = ["cargo vendor --locked $AXLETREE_OUT/vendor"]']),
        ("pip", ['Add "six==1.16.0" to environments.build.requires in small.toml, then:']),
        ("submodule", ["    source.submodules = true"]),
        ("curl", ["    [sources.name]", '    sha256 = "DIGEST OF THE FILE"']),
    ],
)
def test_the_advice_is_tables_of_the_recipe(name: str, said: list[str]) -> None:
    lines = (first(LOGS[name]).fix or "").splitlines()
    assert [line for line in said if line not in lines] == []


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (
            "run",
            "-DFETCHCONTENT_SOURCE_DIR_FMT=$AXLETREE_SOURCE/third_party/fmt to the cmake command in stages.lib",
        ),
        ("compile", 'stages.lib.options = { FETCHCONTENT_SOURCE_DIR_FMT = "third_party/fmt" }'),
        ("build", 'stages.lib.env = { CMAKE_ARGS = "-DFETCHCONTENT_SOURCE_DIR_FMT=third_party/fmt" }'),
    ],
)
def test_cmake_is_told_where_content_is_in_the_way_of_the_stage(action: str, said: str) -> None:
    assert said in (first(LOGS["fetch-git"], msgspec.structs.replace(OFFLINE, action=action)).fix or "")


def test_pip_without_an_index_is_sent_to_the_environment() -> None:
    found = first(LOGS["pip-noindex"])
    assert found.rule == "env/no-matching-distribution"
    assert 'Add "six==1.16.0" to environments.build.requires in small.toml, then:' in (found.fix or "")


@pytest.mark.parametrize(
    "log",
    [
        "[ 25%] Performing download step for 'gloo'\nfoo.c:1:10: fatal error: a.h: No such file\nFAILED: x\n",
        "    Updating `mirror` index\n   Compiling itoa v1.0.11\nerror[E0425]: cannot find value `x` in this scope\n",
        "-- Build step for fmt\nld: cannot find -lz\ncollect2: error: ld returned 1 exit status\n",
    ],
)
def test_a_failure_of_another_kind_is_not_told_so(log: str) -> None:
    found = engine().diagnose([log.encode()], setting=OFFLINE).findings
    assert "fetch/offline" not in {each.rule for each in found}


def test_nothing_is_made_up_of_lines_that_tell_nothing() -> None:
    assert wanted_by(["Could not resolve host: files.example"]) == Wanted()
    assert wanted_by(["get https://h.example/a.tar.gz: no"]).url == "https://h.example/a.tar.gz"


def test_an_archive_is_no_repository_whatever_words_report_it() -> None:
    said = "fatal: unable to access 'https://git.example/{}': Could not resolve host: git.example"
    assert wanted_by([said.format("zmq")]) == Wanted(url="https://git.example/zmq", git=True)
    assert wanted_by([said.format("zmq-4.3.5.tar.gz")]) == Wanted(url="https://git.example/zmq-4.3.5.tar.gz")
