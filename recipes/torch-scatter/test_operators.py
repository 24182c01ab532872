"""The installed wheel's operators, forwards and backwards, held against PyTorch's own and against plain loops."""

import pytest
import torch
import torch_scatter

VALUES = torch.tensor([[5.0, 1.0, 7.0], [2.0, 3.0, 2.0], [1.0, 3.0, 4.0], [4.0, 4.0, 8.0], [0.5, 6.0, 1.0]])
GROUPS = torch.tensor([0, 2, 0, 1, 2])
SORTED = torch.tensor([0, 0, 1, 2, 2])
BOUNDS = torch.tensor([0, 2, 3, 5])


def by_loop(values, groups, reduce):
    rows = [values[groups == group] for group in range(int(groups.max()) + 1)]
    functions = {
        "sum": lambda part: part.sum(0),
        "mul": lambda part: part.prod(0),
        "mean": lambda part: part.mean(0),
        "min": lambda part: part.amin(0),
        "max": lambda part: part.amax(0),
    }
    return torch.stack([functions[reduce](part) for part in rows])


def test_version_is_the_recipes():
    assert torch_scatter.__version__ == "2.1.2"


@pytest.mark.parametrize("reduce", ["sum", "mul", "mean", "min", "max"])
def test_scatter(reduce):
    assert torch.allclose(torch_scatter.scatter(VALUES, GROUPS, dim=0, reduce=reduce), by_loop(VALUES, GROUPS, reduce))


@pytest.mark.parametrize("reduce", ["sum", "mean", "min", "max"])
def test_segment_coo_and_csr_agree(reduce):
    expected = by_loop(VALUES, SORTED, reduce)
    assert torch.allclose(torch_scatter.segment_coo(VALUES, SORTED, reduce=reduce), expected)
    assert torch.allclose(torch_scatter.segment_csr(VALUES, BOUNDS, reduce=reduce), expected)


def test_scatter_sum_is_index_add():
    expected = torch.zeros(3, 3).index_add(0, GROUPS, VALUES)
    assert torch.equal(torch_scatter.scatter_sum(VALUES, GROUPS, dim=0), expected)


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64])
def test_types(dtype):
    out = torch_scatter.scatter(VALUES.to(dtype), GROUPS, dim=0, reduce="sum")
    assert out.dtype == dtype
    assert out.shape == (3, 3)


def test_argmax_points_at_the_value():
    out, where = torch_scatter.scatter_max(VALUES, GROUPS, dim=0)
    assert torch.equal(VALUES.gather(0, where), out)


@pytest.mark.parametrize("reduce", ["sum", "mean", "min", "max"])
def test_gradients(reduce):
    values = VALUES.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: torch_scatter.scatter(x, GROUPS, dim=0, reduce=reduce), (values,))


def test_segment_gradients():
    values = VALUES.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: torch_scatter.segment_csr(x, BOUNDS, reduce="sum"), (values,))


def test_gather_undoes_segments():
    sums = torch_scatter.segment_csr(VALUES, BOUNDS, reduce="sum")
    assert torch.equal(torch_scatter.gather_csr(sums, BOUNDS), sums[SORTED])


def test_scripted():
    @torch.jit.script
    def reduce(values, groups):
        return torch_scatter.scatter_sum(values, groups, dim=0)

    assert torch.equal(reduce(VALUES, GROUPS), torch_scatter.scatter_sum(VALUES, GROUPS, dim=0))


def test_softmax_sums_to_one():
    groups = GROUPS.unsqueeze(1).expand_as(VALUES)
    out = torch_scatter.scatter_softmax(VALUES, groups, dim=0)
    assert torch.allclose(torch_scatter.scatter_sum(out, groups, dim=0), torch.ones(3, 3))
