"""Parameters that only `make proof` tries, because the suite tries another of their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet


def proof_only(value: object) -> ParameterSet:
    """A value of ``pytest.mark.parametrize`` for `make proof`."""
    return pytest.param(value, marks=pytest.mark.proof)
