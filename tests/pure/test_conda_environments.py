"""Environments of conda in parts: lines of pip, the Python that specs pin, addresses of packages, what rattler says."""

from __future__ import annotations

import pytest

from axletree.environment.channels import unreadable_channel
from axletree.environment.conda_file import spec_of_address
from axletree.environment.imported import name_from, secret_in, without_secrets
from axletree.environment.pip_lines import read_pip_line
from axletree.environment.python_pin import PythonPin, python_pin
from axletree.recipe.match_spec import parse_match_spec


@pytest.mark.parametrize(
    ("text", "kind", "value", "why"),
    [
        ("numpy", "wheel", "numpy", ""),
        ("numpy>=1,<2 ; python_version>'3.9'  # why", "wheel", "numpy>=1,<2 ; python_version>'3.9'", ""),
        ("a#b", "wrong", "", "'a#b' is not a valid requirement"),
        ("# only a comment", "empty", "", ""),
        ("-r requirements.txt", "file", "requirements.txt", ""),
        ("-rrequirements.txt", "file", "requirements.txt", ""),
        ("--requirement=sub/r.txt # why", "file", "sub/r.txt", ""),
        ("-r", "wrong", "", "needs the name of a file"),
        ("-e .[dev]", "left", "", "axletree dev"),
        ("--editable=git+https://x.example/y", "left", "", "axletree dev"),
        ("-i https://pypi.example/simple", "left", "", "index-url"),
        ("--extra-index-url https://me:pw@pypi.example/simple", "left", "", "login"),
        ("-f ./wheels", "left", "", "find-links"),
        ("--pre", "left", "", "no such option"),
        ("x @ https://me:pw@x.example/x-1-py3-none-any.whl", "left", "", "login"),
        ("a==1 --hash=sha256:00 --hash sha256:11", "wheel", "a==1", "without digests"),
        ("https://x.example/A_b-1.0-py3-none-any.whl#sha256=00", "wheel", "a-b @ https://x.example/A_b-1.0", ""),
        ("https://x.example/A_b.whl", "wrong", "", "not a valid file name of a wheel"),
        ("https://x.example/a-1.tar.gz", "left", "", "has no name"),
        ("git+ssh://git@x.example/a", "left", "", "login"),
        (".", "left", "", "is a path"),
        ("dist/a-1-py3-none-any.whl", "left", "", "is a path"),
        ("a==${VERSION}", "left", "", "variables of the shell"),
    ],
)
def test_a_line_of_pip(text: str, kind: str, value: str, why: str) -> None:
    line = read_pip_line(text)
    assert line.kind == kind
    assert line.text.startswith(value)
    assert why in line.why
    assert bool(why) == bool(line.why)


@pytest.mark.parametrize(
    ("specs", "python", "keeps"),
    [
        (["python=3.11"], "3.11", False),
        (["python 3.11.*"], "3.11", False),
        (["python==3.11"], "3.11", True),  # exactly 3.11.0 for conda
        (["python=3.11.9"], "3.11", True),
        (["python=3.11.9=h1_0_cpython"], "3.11", True),
        (["conda-forge::python=3.11"], "3.11", True),
        (["python=3.11", "python<3.11.9"], "3.11", True),
        (["python>=3.9,<3.12"], "3.11", True),
        (["python 3.9.*|3.10.*"], "3.10", True),
        (["python>3.11.5"], "3.15", True),
        (["python>=3.11.5"], "3.15", True),
        (["python=3.13=*_cp313t"], "3.13t", True),
        (["python-freethreading=3.13"], "3.13t", False),
        (["python 3.13.*", "python-freethreading"], "3.13t", False),
    ],
)
def test_the_python_that_specs_pin(specs: list[str], python: str, *, keeps: bool) -> None:
    read = [spec for text in specs if (spec := parse_match_spec(text)) is not None]
    pythons = [spec for spec in read if spec.name == "python"]
    pin = python_pin(pythons, [spec for spec in read if spec not in pythons], own="3.8")
    assert (pin.python, pin.keeps) == (python, keeps)


def test_axletrees_own_python_comes_before_others() -> None:
    wide = [parse_match_spec("python>=3.9")]
    assert python_pin([spec for spec in wide if spec], (), own="3.12").python == "3.12"
    assert python_pin((), (), own="3.12") == PythonPin(
        python="3.12", keeps=False, why="the Python of Axletree, because the file names none"
    )
    odd = [parse_match_spec("python=2.7"), parse_match_spec("python<3")]
    assert "no known version matches" in python_pin([spec for spec in odd if spec], (), own="3.12").why


@pytest.mark.parametrize(
    ("address", "channel", "spec"),
    [
        (
            "https://conda.anaconda.org/conda-forge/linux-64/zlib-1.3-h1_0.conda",
            "conda-forge",
            "zlib ==1.3 h1_0",
        ),
        (
            "https://conda.anaconda.org/nvidia/label/cuda-12.4.1/noarch/a-b-c-1!2.0+x-0.tar.bz2#" + "0" * 64,
            "nvidia/label/cuda-12.4.1",
            f"a-b-c ==1!2.0+x 0[sha256={'0' * 64}]",
        ),
        ("file:///srv/ours/noarch/x-1-0.conda#" + "a" * 32, "file:///srv/ours", f"x ==1 0[md5={'a' * 32}]"),
    ],
)
def test_the_address_of_a_package(address: str, channel: str, spec: str) -> None:
    found = spec_of_address(address)
    assert found is not None
    assert (found.channel, found.spec) == (channel, spec)
    assert parse_match_spec(found.spec) is not None


@pytest.mark.parametrize(
    "text",
    ["zlib", "https://x.example/zlib", "https://x.example/c/noarch/zlib-1.conda", "ftp://x/c/noarch/a-1-0.conda", ""],
)
def test_what_is_no_address_of_a_package(text: str) -> None:
    assert spec_of_address(text) is None


def test_secrets_and_names() -> None:
    assert secret_in("https://conda.example/t/tk-1/ours")
    assert secret_in("a @ git+https://u:p@x.example/a")
    assert not secret_in("a @ git+https://x.example/a@1.0")
    assert without_secrets("https://u:p@x.example/t/tk-1/ours\x1b[1m " + "y" * 300).startswith(
        "https://***@x.example/t/***/ours"
    )
    assert len(without_secrets("y" * 300)) == 200
    assert name_from("My Env (GPU)") == "my-env-gpu"
    assert name_from("...") == ""


OFFLINE = """\
GatewayError: error sending request for url (https://conda.anaconda.org/conda-forge/linux-64/repodata_shards.msgpack.zst)
    Caused by: client error (Connect)
    Caused by: dns error
    Caused by: failed to lookup address information: Name or service not known
"""
ABSENT = (
    "GatewayError: HTTP status client error (404 Not Found) for url (https://c.example/ours/noarch/repodata.json)\n"
)


def test_a_channel_that_can_not_be_read() -> None:
    """Other failures keep the client's own words."""
    offline = unreadable_channel(OFFLINE, ["pytorch", "conda-forge"])
    assert offline is not None
    assert offline.message.startswith("channel conda-forge cannot be reached: failed to lookup address information")
    assert "HTTPS_PROXY" in str(offline.hint)
    absent = unreadable_channel(ABSENT, ["https://c.example/ours"])
    assert absent is not None
    assert absent.message.startswith("channel https://c.example/ours cannot be read: the server answered 404 Not Found")
    unknown = unreadable_channel(ABSENT, ["pytorch"])
    assert unknown is not None
    assert "channel https://c.example/ours/noarch/repodata.json cannot" in unknown.message
    assert unreadable_channel("SolverError: nothing provides zlib", ["pytorch"]) is None
