"""The members of a wheel at their places in a conda package."""

import csv
import hashlib
import io

import pytest

from axletree.core.errors import IntegrityError
from axletree.package.conda.check import check_conda
from axletree.package.conda.dist import conda_package_from_dist
from axletree.package.conda.model import PLACEHOLDER, CondaFile, CondaPackage
from axletree.package.conda.pyc import plan_pyc
from axletree.package.conda.writer import content_chunks
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.metadata import Metadata
from axletree.package.wheel.record import encode_hash
from axletree.package.wheel.writer import Member
from support.conda import scanned
from support.wheels import demo_metadata

POINTS = b"""\
[console_scripts]
demo = demo.cli : main [extra]
Demo2 = demo:App.run
[gui_scripts]
ui = demo:ui
[other]
a = b:c
"""
MEMBERS = [
    Member(path="demo/__init__.py", data=b"x = 1\n"),
    Member(path="demo/_c.so", data=b"\x7fELF\0", executable=True),
    Member(path="demo/__pycache__/__init__.cpython-39.pyc", data=b"old"),
    Member(path="demo-1.0.data/purelib/extra.py", data=b""),
    Member(path="demo-1.0.data/scripts/tool", data=b"#!python -u\nprint(1)\n"),
    Member(path="demo-1.0.data/scripts/shell", data=b"#!/bin/sh\n"),
    Member(path="demo-1.0.data/data/etc/demo.cfg", data=b"a=1\n"),
    Member(path="demo-1.0.data/headers/demo.h", data=b"//\n"),
    Member(path="demo-1.0.dist-info/entry_points.txt", data=POINTS),
    Member(path="demo-1.0.dist-info/licenses/LICENSE", data=b"free\n"),
    Member(path="demo-1.0.dist-info/direct_url.json", data=b"{}"),
    Member(path="demo-1.0.dist-info/RECORD", data=b""),
]
INFO = WheelInfo(tags=("cp311-cp311-manylinux_2_28_x86_64",), purelib=False)


def convert(
    members: list[Member] | None = None, *, metadata: Metadata | None = None, info: WheelInfo = INFO, **options: object
) -> tuple[CondaPackage, dict[str, CondaFile]]:
    given = {"subdir": "linux-64", "python": "3.11"} | options
    package, files = conda_package_from_dist(
        MEMBERS if members is None else members,
        metadata or demo_metadata(requires=["numpy>=1.21"]),
        info,
        **given,  # type: ignore[arg-type]
    )
    return package, {file.path: file for file in files}


def content(file: CondaFile) -> bytes:
    return b"".join(content_chunks(file))


def test_everything_has_its_place() -> None:
    _, files = convert()
    site = "lib/python3.11/site-packages"
    assert set(files) == {
        f"{site}/demo/__init__.py",
        f"{site}/demo/_c.so",
        f"{site}/extra.py",
        "bin/tool",
        "bin/shell",
        "bin/demo",
        "bin/Demo2",
        "bin/ui",
        "etc/demo.cfg",
        "include/python3.11/demo/demo.h",
        *(f"{site}/demo-1.0.dist-info/{name}" for name in ("entry_points.txt", "licenses/LICENSE")),
        *(f"{site}/demo-1.0.dist-info/{name}" for name in ("INSTALLER", "METADATA", "RECORD", "WHEEL")),
    }
    assert files[f"{site}/demo/_c.so"].executable
    assert content(files[f"{site}/demo-1.0.dist-info/INSTALLER"]) == b"conda\n"


def test_scripts_start_the_python_of_the_prefix() -> None:
    _, files = convert()
    assert content(files["bin/tool"]).startswith(f"#!{PLACEHOLDER}/bin/python3.11 -u\n".encode())
    assert content(files["bin/shell"]) == b"#!/bin/sh\n"
    assert b"\nfrom demo.cli import main\n" in content(files["bin/demo"])
    assert b"\nfrom demo import App\n" in content(files["bin/Demo2"])
    assert b"sys.exit(App.run())" in content(files["bin/Demo2"])
    assert all(files[f"bin/{name}"].executable for name in ("tool", "shell", "demo", "Demo2", "ui"))
    assert len(PLACEHOLDER) == 255


def test_the_package_is_described_by_the_metadata() -> None:
    metadata = demo_metadata(requires=["numpy>=1.21", "typing-extensions"], summary="A demo", license="MIT")
    urls = (("Project-URL", "Source Code, https://example.org/src"), ("Home-page", "https://example.org"))
    package, _ = convert(
        metadata=Metadata(fields=metadata.fields + urls), names={"typing-extensions": ("typing_extensions",)}
    )
    assert (package.name, package.version, package.subdir, package.noarch) == ("demo", "1.0", "linux-64", None)
    assert package.build == "py311hbf21a9e_0"
    assert package.depends == (
        "__glibc >=2.28,<3.0.a0",
        "numpy >=1.21",
        "python >=3.11,<3.12.0a0",
        "python_abi 3.11.* *_cp311",
        "typing_extensions",
    )
    about = package.about
    assert (about.summary, about.license, about.home, about.dev_url) == (
        *("A demo", "MIT", "https://example.org", "https://example.org/src"),
    )
    assert [file.path for file in package.info] == ["licenses/LICENSE"]


def test_a_given_dependency_takes_the_place_of_the_metadatas() -> None:
    package, _ = convert(depends=["numpy 2.0 h_0", "__cuda"], constrains=["demo-cpu <0.0a0"])
    assert [spec for spec in package.depends if "numpy" in spec] == ["numpy 2.0 h_0"]
    assert "__cuda" in package.depends
    assert package.constrains == ("demo-cpu <0.0a0",)


def test_record_lists_what_is_installed_with_true_hashes() -> None:
    package, files = convert()
    facts = scanned(package, list(files.values()))
    assert check_conda(facts) == ()
    late = files["lib/python3.11/site-packages/demo-1.0.dist-info/RECORD"].data
    digests = {member.path: member.sha256 for member in facts.members}
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(late.render(digests).decode()))}  # type: ignore[union-attr]
    assert len(rows) == len(files)
    assert rows["demo/__init__.py"] == [encode_hash(hashlib.sha256(b"x = 1\n").digest()), "6"]
    assert rows["../../../bin/demo"] == ["", ""]  # the prefix is put in: no hash would hold
    assert rows["../../../bin/shell"][1] == "10"
    assert rows["demo-1.0.dist-info/RECORD"] == ["", ""]
    assert "demo-1.0.dist-info/direct_url.json" not in rows


def test_for_any_python_the_installer_makes_scripts() -> None:
    members = [member for member in MEMBERS if "headers" not in member.path and not member.path.endswith(".so")]
    info = WheelInfo(tags=("py3-none-any",), purelib=True)
    package, files = convert(members, info=info, subdir="noarch", python=None)
    assert package.noarch == "python"
    assert package.entry_points == ("Demo2 = demo:App.run", "demo = demo.cli:main", "ui = demo:ui")
    assert "site-packages/demo/__init__.py" in files
    assert "python-scripts/tool" in files
    assert not any(path.startswith(("bin/", "lib/")) for path in files)
    assert check_conda(scanned(package, list(files.values()))) == ()


def test_a_package_of_one_platform_for_every_python() -> None:
    info = WheelInfo(tags=("py3-none-manylinux_2_28_x86_64",), purelib=False)
    package, files = convert([Member(path="torch/lib/libtorch.so", data=b"\x7fELF")], info=info, python=None)
    assert (package.subdir, package.noarch) == ("linux-64", "python")
    assert package.depends == ("__glibc >=2.28,<3.0.a0", "numpy >=1.21", "python")
    assert "site-packages/torch/lib/libtorch.so" in files


@pytest.mark.parametrize(
    ("tags", "options", "message"),
    [
        ("cp312-cp312-manylinux_2_28_x86_64", {}, "does not support Python 3.11"),
        ("cp311-cp311-manylinux_2_28_x86_64", {"python": None}, "does not support all Python versions"),
        ("cp311-cp311-manylinux_2_28_x86_64", {"subdir": "noarch"}, "contains machine code"),
        ("cp311-cp311-manylinux_2_28_x86_64", {"python": "3.11t"}, "does not support Python 3.11t"),
        ("cp311-cp311-win_amd64", {"subdir": "win-64"}, "they have a different layout"),
        ("cp311-cp311-musllinux_1_2_x86_64", {}, "cannot be converted to a conda package for linux-64"),
        ("py2-none-any", {}, "does not support Python 3.11"),
    ],
)
def test_what_does_not_fit_is_refused(tags: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(IntegrityError, match=message):
        convert(info=WheelInfo(tags=(tags,), purelib=False), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "tags", ["cp39-abi3-manylinux_2_28_x86_64", "py3-none-any", "py2.py3-none-any", "cp311-none-any"]
)
def test_wheels_that_fit_more_pythons(tags: str) -> None:
    package, _ = convert(info=WheelInfo(tags=(tags,), purelib=False))
    assert "python >=3.11,<3.12.0a0" in package.depends


def test_members_without_a_place_are_listed() -> None:
    members = [
        Member(path="demo-1.0.data/nowhere/a", data=b""),
        Member(path="demo-1.0.dist-info/entry_points.txt", data=b"[console_scripts]\na = not a function\n../b = c:d\n"),
    ]
    with pytest.raises(IntegrityError) as caught:
        convert(members)
    assert len(caught.value.problems) == 3


def test_sources_to_compile_are_those_that_can_be_imported() -> None:
    site = "lib/python3.11/site-packages"
    paths = ["a/b.py", "a/data-dir/c.py", "a/not-a-module.py", "d.py", "__pycache__/d.cpython-311.pyc", "e.pyi"]
    files = [CondaFile(path=f"{site}/{path}") for path in paths] + [CondaFile(path="bin/tool.py")]
    assert [file.path for file in plan_pyc(files, python="3.11")] == [f"{site}/a/b.py"]
    assert plan_pyc(files, python="3.12") == ()


def test_the_variant_is_kept() -> None:
    package, _ = convert(variant={"python": "3.11"})
    assert package.hash_input == {"python": "3.11"}
