"""Index settings are put together from configuration as pip and uv read it, from values alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from axletree.core.errors import HostError
from axletree.host.indexes import (
    IndexSettings,
    Layer,
    environment_layers,
    file_url,
    local_path,
    merge_layers,
    parse_emitted,
    parse_pip_config,
    pip_config_files,
    redact,
)

HOME = Path("/home/u")
CWD = Path("/place/here")


def merge(*layers: Layer, default: Layer | None = None) -> IndexSettings:
    return merge_layers(layers, home=HOME, cwd=CWD, default=lambda: default or Layer())


def test_the_first_place_that_names_an_index_wins_and_lists_add_up() -> None:
    settings = merge(
        Layer(find_links=("/a",)),
        Layer(index_url="https://one.example/simple/", extra_index_urls=("https://x.example/s",)),
        Layer(index_url="https://two.example/simple", extra_index_urls=("https://y.example/s/",), find_links=("/b",)),
    )
    assert settings.index_url == "https://one.example/simple"
    assert settings.extra_index_urls == ("https://x.example/s", "https://y.example/s")
    assert settings.find_links == ("/a", "/b")


def test_uv_is_asked_only_where_nothing_else_names_an_index() -> None:
    def never() -> Layer:
        pytest.fail("asked although an index was named")

    named = merge_layers([Layer(index_url="https://one.example")], home=HOME, cwd=CWD, default=never)
    forbidden = merge_layers([Layer(no_index=True)], home=HOME, cwd=CWD, default=never)
    asked = merge(default=Layer(index_url="https://default.example/simple", find_links=("/from-uv",)))
    assert named.index_url == "https://one.example"
    assert forbidden.index_url is None
    assert asked.index_url == "https://default.example/simple"
    assert asked.find_links == ("/from-uv",)


def test_no_index_silences_the_indexes_of_its_place_and_below_but_no_folders() -> None:
    settings = merge(
        Layer(extra_index_urls=("https://given.example",)),
        Layer(no_index=True, extra_index_urls=("https://same.example",), find_links=("/a",)),
        Layer(index_url="https://below.example", find_links=("/b",)),
    )
    assert settings.index_url is None
    assert settings.extra_index_urls == ("https://given.example",)
    assert settings.find_links == ("/a", "/b")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("/srv/wheels", "/srv/wheels"),
        ("/srv/wheels/", "/srv/wheels"),
        ("wheels", "/place/here/wheels"),
        ("../wheels", "/place/wheels"),
        ("~/wheels", "/home/u/wheels"),
        ("file:///srv/my%20wheels", "/srv/my wheels"),
        ("https://files.example/page.html", "https://files.example/page.html"),
    ],
)
def test_find_links_become_absolute_paths_or_stay_addresses(written: str, meant: str) -> None:
    assert merge(Layer(find_links=(written,))).find_links == (meant,)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("https://one.example/simple/", "https://one.example/simple"),
        ("mirror/simple", "file:///place/here/mirror/simple"),
        ("file:///srv/a%20b/simple/", "file:///srv/a%20b/simple"),
    ],
)
def test_indexes_become_addresses(written: str, meant: str) -> None:
    assert merge(Layer(index_url=written)).index_url == meant


def test_the_same_index_twice_is_asked_once() -> None:
    settings = merge(Layer(index_url="https://a.example"), Layer(extra_index_urls=("https://a.example/", "file:///b")))
    assert settings == IndexSettings(index_url="https://a.example", extra_index_urls=("file:///b",))


def test_variables_of_pip_and_uv() -> None:
    pip, uv = environment_layers(
        {
            "PIP_EXTRA_INDEX_URL": "https://x.example\nhttps://y.example",
            "PIP_NO_INDEX": "1",
            "UV_INDEX": "named=https://n.example https://m.example",
            "UV_DEFAULT_INDEX": "https://d.example",
            "UV_FIND_LINKS": "/c,/d",
        }
    )
    assert pip == Layer(extra_index_urls=("https://x.example", "https://y.example"), no_index=True)
    assert uv.index_url == "https://d.example"
    assert uv.extra_index_urls == ("https://n.example", "https://m.example")
    assert uv.find_links == ("/c", "/d")


def test_pip_configuration_files_in_the_order_of_pip() -> None:
    files = pip_config_files({"XDG_CONFIG_DIRS": "/x:/y", "VIRTUAL_ENV": "/venv"}, home=HOME, prefix=Path("/p"))
    assert [str(file) for file in files] == [
        "/x/pip/pip.conf",
        "/y/pip/pip.conf",
        "/etc/pip.conf",
        "/home/u/.pip/pip.conf",
        "/home/u/.config/pip/pip.conf",
        "/venv/pip.conf",
    ]


def test_a_named_configuration_file_replaces_the_users_and_the_null_device_all() -> None:
    named = pip_config_files({"PIP_CONFIG_FILE": "/my.conf"}, home=HOME, prefix=Path("/p"))
    assert [str(file) for file in named] == ["/etc/xdg/pip/pip.conf", "/etc/pip.conf", "/p/pip.conf", "/my.conf"]
    assert pip_config_files({"PIP_CONFIG_FILE": "/dev/null"}, home=HOME, prefix=Path("/p")) == ()


def test_pip_configuration_values_span_lines_and_later_files_override() -> None:
    layer = parse_pip_config(
        [
            ("a", "[global]\nfind-links = /a\nextra-index-url = https://x.example https://y.example\n"),
            ("b", "[global]\nfind_links =\n    /b\n    /c\nindex-url = https://g.example/%41\n"),
            ("c", "[install]\nindex-url = https://i.example\n[list]\nformat = json\n"),
        ]
    )
    assert layer.find_links == ("/b", "/c")
    assert layer.extra_index_urls == ("https://x.example", "https://y.example")
    assert layer.index_url == "https://i.example"
    assert not layer.no_index


def test_a_broken_configuration_file_is_named_and_all_of_them_at_once() -> None:
    with pytest.raises(HostError) as caught:
        parse_pip_config([("/etc/pip.conf", "find-links = /a\n"), ("/p/pip.conf", "[global\nx")])
    assert [problem.file for problem in caught.value.problems] == ["/etc/pip.conf", "/p/pip.conf"]


def test_what_uv_emits() -> None:
    layer = parse_emitted(
        "# comment\n--index-url https://d.example/simple\n--extra-index-url https://x.example\n--find-links /w x\n\n"
    )
    assert layer == Layer(
        index_url="https://d.example/simple", extra_index_urls=("https://x.example",), find_links=("/w x",)
    )


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@h.example:8080/a?b#c", "https://****@h.example:8080/a?b#c"),
        ("https://token@h.example/a@b", "https://****@h.example/a@b"),
        ("https://h.example/a@b", "https://h.example/a@b"),
        ("/a/path@with", "/a/path@with"),
    ],
)
def test_credentials_are_not_shown(url: str, shown: str) -> None:
    assert redact(url) == shown


def test_local_paths_and_addresses_convert_both_ways() -> None:
    path = Path("/a b/c#d/é%")
    assert local_path(file_url(path)) == path
    assert local_path("https://h.example/x") is None
    assert local_path("rel/x") == Path("rel/x")
