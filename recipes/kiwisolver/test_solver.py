"""The installed wheel's solver, held against sums done by hand."""

import kiwisolver
import pytest
from kiwisolver import Constraint, Solver, UnsatisfiableConstraint, Variable, strength


def solved(*constraints):
    solver = Solver()
    for constraint in constraints:
        solver.addConstraint(constraint)
    solver.updateVariables()
    return solver


def test_version_is_the_recipes():
    assert kiwisolver.__version__ == "1.5.1"


def test_equations_have_their_solution():
    x, y = Variable("x"), Variable("y")
    solved(x + y == 10, x - y == 4)
    assert (x.value(), y.value()) == (7, 3)


def test_an_inequality_binds_where_it_must():
    left, right = Variable("left"), Variable("right")
    solved(left == 100, right >= left + 20, (right == 0) | "weak")
    assert right.value() == 120


@pytest.mark.parametrize(("first", "second", "expected"), [("strong", "weak", 1), ("weak", "strong", 2)])
def test_the_stronger_wish_wins(first, second, expected):
    x = Variable("x")
    solved((x == 1) | first, (x == 2) | second)
    assert x.value() == expected


def test_what_contradicts_is_refused():
    x = Variable("x")
    solver = solved(x >= 5)
    with pytest.raises(UnsatisfiableConstraint):
        solver.addConstraint(x <= 4)


def test_a_suggested_value_moves_what_depends_on_it():
    width, half = Variable("width"), Variable("half")
    solver = solved(2 * half == width)
    solver.addEditVariable(width, strength.strong)
    for value in (10, 31, 0):
        solver.suggestValue(width, value)
        solver.updateVariables()
        assert half.value() == value / 2


def test_a_constraint_can_be_taken_back():
    x = Variable("x")
    upper = Constraint(x - 3, "==")
    solver = solved(upper, (x == 8) | "weak")
    assert x.value() == 3
    solver.removeConstraint(upper)
    solver.updateVariables()
    assert x.value() == 8
