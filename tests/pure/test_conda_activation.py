"""Variables that activating a conda environment sets: as a recipe states them, and as scripts."""

from __future__ import annotations

from axletree.package.conda.activation import activation_files
from axletree.recipe.conda import CondaTable, changed, resolve_conda


def test_the_scripts_are_called_by_the_package() -> None:
    assert activation_files("libtorch", {}) == ()
    files = {file.path: file.data for file in activation_files("libtorch", {"ARCHES": "9.0;10.0+PTX", "WHOSE": "it's"})}
    assert list(files) == ["etc/conda/activate.d/libtorch_activate.sh", "etc/conda/deactivate.d/libtorch_deactivate.sh"]
    activate, deactivate = (data for data in files.values() if isinstance(data, bytes))
    assert b"export ARCHES='9.0;10.0+PTX'\n" in activate
    assert rb"export WHOSE='it'\''s'" in activate
    assert deactivate.count(b"unset") == 2


def test_an_override_adds_variables() -> None:
    table = changed(CondaTable(activate={"A": "1", "B": "{gpu}"}), CondaTable(activate={"B": "2", "C": "{gpu}"}))
    assert table.activate == {"A": "1", "B": "2", "C": "{gpu}"}
    form = resolve_conda(
        table, lambda text, given: text.format(gpu="cu130", **given), version="1.0", axes={"gpu": "cu130"}, tokens=()
    )
    assert form.activate == {"A": "1", "B": "2", "C": "cu130"}
