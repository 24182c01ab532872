"""File names of sdists, as PEP 625 has them and as they were before; what is said where a version has none."""

from __future__ import annotations

import msgspec
import pytest
from packaging.version import Version

from axletree.recipe.sdists import Absence, choose_sdist, explain_absence, readings, version_of


class File(msgspec.Struct, frozen=True):
    filename: str
    yanked: str | bool = False


def chosen(project: str, version: str, *names: str | File) -> str | None:
    file = choose_sdist(project, version, files(*names))
    return None if file is None else file.filename


def absence(project: str, version: str, *names: str | File) -> Absence:
    assert chosen(project, version, *names) is None
    return explain_absence(project, version, files(*names))


def files(*names: str | File) -> list[File]:
    return [name if isinstance(name, File) else File(name) for name in names]


CFFI = ("cffi-1.0.2-2.tar.gz", "cffi-1.0.2.tar.gz", "cffi-1.2.0-1.tar.gz", "cffi-1.17.1.tar.gz", "cffi-2.0.0.tar.gz")


@pytest.mark.parametrize(
    ("project", "version", "names", "wanted"),
    [
        ("cffi", "2.0.0", CFFI, "cffi-2.0.0.tar.gz"),
        ("cffi", "2", CFFI, "cffi-2.0.0.tar.gz"),
        ("cffi", "1.0.2.post2", CFFI, "cffi-1.0.2-2.tar.gz"),
        ("cffi", "1.0.2", CFFI, "cffi-1.0.2.tar.gz"),
        ("cffi", "1.2.0-1", CFFI, "cffi-1.2.0-1.tar.gz"),
        ("zope.interface", "5", ("zope.interface-5.0.tar.gz", "zope.interface-5.0.1.zip"), "zope.interface-5.0.tar.gz"),
        ("zope_interface", "5.0", ("Zope.Interface-5.0.0.tar.gz",), "Zope.Interface-5.0.0.tar.gz"),
        ("backports.zstd", "1.0.0", ("backports_zstd-1.0.0.tar.gz",), "backports_zstd-1.0.0.tar.gz"),
        ("my-pkg-name", "1.0", ("my-pkg-name-1.0.tar.gz",), "my-pkg-name-1.0.tar.gz"),
        ("my-pkg-name", "1.0", ("my--pkg__name-1.0.tar.gz",), "my--pkg__name-1.0.tar.gz"),
        ("foo", "2.post1", ("foo-2-1.0.tar.gz",), None),
        ("foo-2", "1.0", ("foo-2-1.0.tar.gz", "foo-2-1.tar.bz2"), "foo-2-1.0.tar.gz"),
        ("foo", "2.post1", ("foo-2-1.tar.gz", "foo-2.post1.zip"), "foo-2.post1.zip"),
        ("foo", "2.post1", ("foo-2-1.tar.gz",), "foo-2-1.tar.gz"),
        ("numpy", "1.19.5", ("numpy-1.19.5.zip", "numpy-1.19.5-cp39-cp39-win32.whl"), "numpy-1.19.5.zip"),
        ("numpy", "1.0", ("numpy-1.0.linux-x86_64.tar.gz", "numpy-1.0.win32-py2.5.exe", "numpy-1.0-py2.5.egg"), None),
        ("a", "1", ("a-1.tar", "a-1.tar.bz2", "a-1.tar.xz", "a-1.zip", "a-1.tgz", "a-1.tar.gz"), "a-1.tar.gz"),
        ("a", "1", ("a-1.tar", "a-1.tar.bz2", "a-1.tar.xz"), "a-1.tar.xz"),
        ("a", "1.0rc1", ("a-1.0.tar.gz", "a-1.0-rc.1.tar.gz"), "a-1.0-rc.1.tar.gz"),
        ("a", "1!2.0+cpu.1", ("a-2.0.tar.gz", "a-1!2.0+cpu.1.tar.gz"), "a-1!2.0+cpu.1.tar.gz"),
        ("a", "1", (File("a-1.tar.gz", yanked="bad"), File("a-1.zip")), "a-1.zip"),
        ("a", "1", (File("a-1.tar.gz", yanked="bad"),), "a-1.tar.gz"),
        ("a", "1", ("a-1.tar.Z", "a-b-1.tar.gz", "b-1.tar.gz", "a.tar.gz", "-1.tar.gz"), None),
    ],
)  # fmt: skip
def test_the_sdist_of_a_version_is_chosen(
    project: str, version: str, names: tuple[str | File, ...], wanted: str | None
) -> None:
    assert chosen(project, version, *names) == wanted
    assert chosen(project, version, *reversed(names)) == wanted


@pytest.mark.parametrize(
    ("filename", "said"),
    [
        ("torch_scatter-2.1.2.tar.gz", [("torch-scatter", "2.1.2")]),
        ("torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl", [("torch", "2.13.0+cpu")]),
        ("foo-1.0-2-py3-none-any.whl", [("foo", "1.0")]),
        ("cffi-1.0.2-2.tar.gz", [("cffi-1-0-2", "2"), ("cffi", "1.0.2.post2")]),
        ("foo-2-1.0.zip", [("foo-2", "1.0")]),
        ("notes.txt", []),
        ("broken.whl", []),
        ("foo-1.0.tar.Z", []),
    ],
)
def test_what_a_file_name_may_say(filename: str, said: list[tuple[str, str]]) -> None:
    assert [(name, str(version)) for name, version in readings(filename)] == said


def test_a_name_is_read_for_the_project_that_is_asked_for() -> None:
    assert version_of("foo-1-2.tar.gz", "foo") == Version("1.post2")
    assert version_of("foo-1-2.tar.gz", "Foo_1") == Version("2")
    assert version_of("foo-1-2.tar.gz", "fo") is None


def test_a_project_that_does_not_exist_is_told_as_that() -> None:
    said = absence("nothing", "1.0")
    assert said.path == ("source", "pypi")
    assert said.message == "the package index does not contain a project 'nothing'"


def test_a_version_that_does_not_exist_is_told_with_those_next_to_it() -> None:
    said = absence("cffi", "1.18", *CFFI, "cffi-2.1.0rc1.tar.gz", File("cffi-1.18.1.tar.gz", yanked="no"))
    assert said.path == ("version",)
    message = "neither an sdist nor a wheel of cffi 1.18; sdists exist for 1.17.1, 2.0.0 (the newest)"
    assert said.message == f"the package index has {message}"
    assert said.instead.startswith("name another release, such as cffi==2.0.0, or specify a different index")
    assert absence("cffi", "3", *CFFI).message.endswith("for 2.0.0 (the newest)")
    assert absence("cffi", "0.1", *CFFI).message.endswith("for 1.0.2, 2.0.0 (the newest)")


def test_a_version_with_wheels_alone_is_told_with_what_to_take_instead() -> None:
    wheels = [f"torch-2.5.0-cp3{minor}-cp3{minor}-manylinux1_x86_64.whl" for minor in (11, 12)]
    said = absence("torch", "2.5.0", *wheels)
    assert said.path == ("source", "pypi")
    assert said.message == "torch 2.5.0 has no sdist on the package index, only 2 wheels; no version has an sdist"
    assert "git = " in said.hint
    assert said.instead == "build from its repository: give its URL (https://...) instead of the name"
    assert "wheel = " in said.hint
    other = absence("torch", "2.5.0", *wheels, "torch-2.4.0.tar.gz", "torch-2.6.0.zip")
    assert other.message.endswith("only 2 wheels; sdists exist for 2.4.0, 2.6.0 (the newest)")
    yanked = absence("torch", "2.5.0", File(wheels[0], yanked=True))
    assert f"only {wheels[0]}" in yanked.message
    missing = absence("torch", "2.6.0", *wheels)
    assert missing.message.endswith("of torch 2.6.0; it has only wheels of torch: 2.5.0 (the newest)")


def test_an_archive_that_can_not_be_unpacked_is_named() -> None:
    said = absence("old", "1.0", "old-1.0.tar.Z", "old-0.9.tar.gz")
    assert said.message.startswith("old-1.0.tar.Z is not a supported archive (.tar.gz, .tgz,")


def test_files_of_other_kinds_are_told_without_control_characters() -> None:
    said = absence("old", "1.0", "old-1.0.win32.exe", "old-1.0-py2.4.egg\x1b[2J")
    assert "neither sdists nor wheels of old, only files such as old-1.0.win32.exe" in said.message
    assert "\x1b" not in said.message
