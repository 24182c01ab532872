"""Who brings a header, a library of the system, a symbol or a module: what builds ask for most."""

from __future__ import annotations

import tomllib

import msgspec

from axletree.check.diagnosis.linear import expression
from axletree.core.errors import IntegrityError, Problem
from axletree.core.shipped import shipped_file


class Bringers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``backends/data/bringers.toml`` says."""

    headers: dict[str, tuple[str, str]] = {}
    """Header, or folder of headers -> Debian's package, conda-forge's."""
    libraries: dict[str, tuple[str, str]] = {}
    """Library without its suffix -> Debian's package, conda-forge's."""
    symbols: tuple[tuple[str, str], ...] = ()
    """Expression -> whose the symbols are that it fits."""

    def header_packages(self, header: str) -> tuple[str, str] | None:
        """Debian's and conda-forge's package of a header, as it stands in the ``#include``."""
        return next((packages for name, packages in self.headers.items() if header.startswith(name)), None)

    def library_packages(self, library: str) -> tuple[str, str] | None:
        """Debian's and conda-forge's package of a shared library of the system."""
        return self.libraries.get(library.rpartition("/")[2].partition(".so")[0])

    def symbol_owner(self, symbol: str) -> str | None:
        """Whose a symbol is, by its name: ``torch``, ``NCCL``."""
        return next((owner for pattern, owner in self.symbols if expression(pattern).search(symbol)), None)


def decode_bringers(data: bytes, *, file: str) -> Bringers:
    """Read the tables (TOML).

    Raises:
        IntegrityError: they are not in their form.
    """
    try:
        bringers = msgspec.convert(tomllib.loads(data.decode("utf-8")), Bringers)
        for pattern, _ in bringers.symbols:
            expression(pattern)
    except (ValueError, msgspec.ValidationError) as error:
        raise IntegrityError(
            Problem(file=file, message=f"the file is not a valid table of packages: {error}")
        ) from error
    return bringers


BRINGERS = shipped_file("bringers.toml", decode_bringers)
"""The tables that ship."""

MODULES: dict[str, str] = {
    "Crypto": "pycryptodome",
    "Cython": "cython",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "gitpython",
    "google.protobuf": "protobuf",
    "jwt": "pyjwt",
    "mesonpy": "meson-python",
    "nacl": "pynacl",
    "pkg_resources": "setuptools<81",
    "pywt": "pywavelets",
    "sklearn": "scikit-learn",
    "skbuild": "scikit-build",
    "skimage": "scikit-image",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
"""Module -> its distribution, where they have different names."""


def module_distribution(module: str) -> str:
    """The distribution that most likely contains a module."""
    whole = next((name for known, name in MODULES.items() if module == known or module.startswith(f"{known}.")), None)
    return whole or module.partition(".")[0].replace("_", "-").lower()
