"""Exported environments as their readers take them: PyYAML, and py-rattler, which pixi is made of."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement

from axletree.environment.delta import Order
from axletree.environment.description import Description, InstalledPackage, Provider
from axletree.environment.export import exported
from axletree.environment.layers import setting
from axletree.recipe.match_spec import parse_match_spec

yaml = pytest.importorskip("yaml")
rattler = pytest.importorskip("rattler")

SPECS = (
    "zlib",
    "zlib 1.3",
    "zlib==1.3",
    "zlib ==1.3 h1_0",
    "zlib=1.3",
    "zlib =1.3",
    "zlib=1.3.*",
    "zlib=1.3=h1_0",
    "zlib==1.3=h1_0",
    "zlib~=1.2",
    "zlib!=1.2",
    "zlib 1.8.*|1.9.*",
    "zlib >= 1.2 , < 2",
    "numpy<2",
    "numpy>=1.26,<2",
    "numpy >=1.26,<2 py311*",
    "libblas * *mkl",
    "libblas=*=*mkl",
    "_openmp_mutex=4.5=2_gnu",
    "conda-forge::zlib=1.3",
    "conda-forge/linux-64::zlib",
    "https://conda.example/ours::zlib >1",
    "zlib[version='>=1.2', build=\"h*\"]",
    "zlib >=1[build_number='>2', channel=ours]",
    "zlib[md5=0123456789abcdef0123456789abcdef]",
)
# https://pixi.sh/v0.77.0/schema/manifest/schema.json, MatchspecTable and Workspace
TABLE_KEYS = {"version", "build", "build-number", "file-name", "channel", "subdir", "md5", "sha256", "license"}
WORKSPACE_KEYS = {"name", "channels", "platforms"}
TRICKY = {
    "PLAIN": "/opt/rocm",
    "QUOTED": 'it\'s "q" \\ #: {}[]&*!|>%@`',
    "LINES": "a\n\tb",
    "YES": "yes",
    "NUMBER": "1",
}


def described(provider: Provider = "conda", **changes: Any) -> Description:
    fields: dict[str, Any] = {
        "folder": "/e",
        "recipe": "demo.toml",
        "variant": "py311-cpu",
        "name": "dev",
        "provider": provider,
        "python": "3.11",
        "requires": SPECS,
        "channels": ("conda-forge", "file:///a%20folder/channel"),
        "packages": (
            InstalledPackage(name="zlib", version="1.3.1", build="h1_0"),
            InstalledPackage(name="_openmp_mutex", version="4.5", build="2_gnu"),
            InstalledPackage(name="openssl", version="1!3.0.2+x_1", build="h7f8727e_0"),
        ),
        "order": Order(),
        "deltas": tuple(setting(name, value, "test") for name, value in TRICKY.items()),
    }
    return Description(**(fields | changes))


def parts(spec: Any) -> tuple[str, str, str | None]:
    version = "*" if spec.version is None else str(spec.version)
    return spec.name.normalized, version, None if spec.build is None else str(spec.build)


@pytest.mark.parametrize("text", SPECS)
def test_a_match_spec_means_what_it_means_to_rattler(text: str) -> None:
    mine = parse_match_spec(text)
    assert mine is not None
    theirs = rattler.MatchSpec(text, strict=False)
    words = " ".join(filter(None, (mine.name, mine.version, mine.build)))
    assert parts(rattler.MatchSpec(words, strict=True)) == parts(theirs)
    assert (mine.channel is None) == (theirs.channel is None)
    assert mine.more.get("subdir") == theirs.subdir


@pytest.mark.parametrize("text", ["", "==1", "file.conda extra [", "[name=x]"])
def test_what_is_no_match_spec(text: str) -> None:
    assert parse_match_spec(text) is None


@pytest.mark.parametrize("locked", [True, False])
def test_environment_yml_is_read_by_yaml_and_its_specs_by_rattler(*, locked: bool) -> None:
    description = described()
    document = yaml.safe_load(exported(description, "environment.yml", platform="linux-64", locked=locked))
    assert document["name"] == "dev-py311-cpu"
    assert document["channels"] == list(description.channels)
    assert document["variables"] == TRICKY
    read = [rattler.MatchSpec(text, strict=False) for text in document["dependencies"]]
    if locked:
        expected = [(each.name, f"=={each.version}", each.build) for each in description.packages]
        assert [parts(each) for each in read] == expected
    else:
        assert [parts(each) for each in read[:-1]] == [parts(rattler.MatchSpec(text, strict=False)) for text in SPECS]
        assert parts(read[-1]) == ("python", "3.11.*", None)


def test_environment_yml_of_wheels_is_read_by_yaml_and_its_requirements_by_packaging() -> None:
    requires = ("mkl", "a[x,y]>=1,<2; python_version >= '3.9'", "b @ https://wheels.example/b-1-py3-none-any.whl")
    description = described("venv", requires=requires, channels=(), python="3.13t")
    document = yaml.safe_load(exported(description, "environment.yml", platform="linux-64", locked=False))
    python, pip, wheels = document["dependencies"]
    assert (python, pip) == ("python-freethreading=3.13", "pip")
    assert [Requirement(text) for text in wheels["pip"]] == [Requirement(text) for text in requires]


def spec_of(name: str, value: Any) -> Any:
    """A match spec of a line of pixi's ``[dependencies]``."""
    table = {"version": value} if isinstance(value, str) else value
    assert table.keys() <= TABLE_KEYS
    assert all(isinstance(each, str) and each for each in table.values())
    return rattler.MatchSpec(" ".join(filter(None, (name, table["version"], table.get("build")))), strict=True)


@pytest.mark.parametrize("text", [each for each in SPECS if "python" not in each])
def test_each_spec_means_the_same_in_pixi_toml(text: str) -> None:
    loose = described(requires=(text, "python >=3.11"))
    document = tomllib.loads(exported(loose, "pixi.toml", platform="linux-64", locked=False))
    assert document["workspace"].keys() == WORKSPACE_KEYS
    assert document["dependencies"].pop("python") == ">=3.11"
    ((name, value),) = document["dependencies"].items()
    theirs = rattler.MatchSpec(text, strict=False)
    assert parts(spec_of(name, value)) == parts(theirs)
    assert (theirs.channel is None) == (isinstance(value, str) or "channel" not in value)


def test_pixi_toml_of_what_is_installed() -> None:
    description = described(deltas=(*described().deltas, setting("EMPTY", "", "test")))
    document = tomllib.loads(exported(description, "pixi.toml", platform="linux-64"))
    assert document["workspace"]["channels"] == list(description.channels)
    assert document["activation"] == {"env": TRICKY}  # its schema wants no empty values
    read = [parts(spec_of(name, value)) for name, value in document["dependencies"].items()]
    assert read == [(each.name, f"=={each.version}", each.build) for each in description.packages]


def test_pixi_toml_of_wheels() -> None:
    requires = ("mkl", "a[y,x]>=1; python_version >= '3.9'", "b @ https://wheels.example/b-1-py3-none-any.whl")
    text = exported(described("venv", requires=requires, channels=()), "pixi.toml", platform="linux-64", locked=False)
    assert tomllib.loads(text)["pypi-dependencies"] == {
        "mkl": "*",
        "a": {"version": ">=1", "extras": ["x", "y"]},
        "b": {"url": "https://wheels.example/b-1-py3-none-any.whl"},
    }
    assert 'extras = ["x", "y"] }  # only where python_version >= "3.9"\n' in text


@pytest.mark.parametrize("locked", [True, False])
def test_wheels_on_top_of_conda_packages_are_the_pip_half(*, locked: bool) -> None:
    packages = (
        InstalledPackage(name="zlib", version="1.3.1", build="h1_0"),
        InstalledPackage(name="demo", version="1.0", sha256="0" * 64),
    )
    description = described(python="", requires=("zlib",), wheels=("demo>=1",), packages=packages)
    document = yaml.safe_load(exported(description, "environment.yml", platform="linux-64", locked=locked))
    zlib = "zlib=1.3.1=h1_0" if locked else "zlib"
    assert document["dependencies"] == [zlib, "pip", {"pip": ["demo==1.0" if locked else "demo>=1"]}]
    table = tomllib.loads(exported(description, "pixi.toml", platform="linux-64", locked=locked))
    assert list(table["dependencies"]) == ["zlib"]
    assert table["pypi-dependencies"] == {"demo": "==1.0" if locked else ">=1"}
