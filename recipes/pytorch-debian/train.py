"""A training step, a model saved and loaded, NumPy both ways: what a torch that was put together must do."""

import io

import numpy as np
import torch

torch.manual_seed(0)
inputs, wanted = torch.randn(64, 8), torch.randn(64, 1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
losses = []
for _ in range(20):
    optimiser.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    loss.backward()
    optimiser.step()
    losses.append(loss.item())
assert losses[-1] < losses[0], losses

stream = io.BytesIO()
torch.save(model.state_dict(), stream)
stream.seek(0)
model.load_state_dict(torch.load(stream, weights_only=True))

array = np.arange(6, dtype=np.float32).reshape(2, 3)
assert torch.from_numpy(array).sum().item() == 15
assert (torch.ones(2, 2).numpy() == 1).all()
matrix = torch.randn(16, 16)
assert torch.allclose(torch.linalg.inv(matrix) @ matrix, torch.eye(16), atol=1e-3)
assert torch.fft.fft(torch.ones(8)).real[0].item() == 8
assert torch.jit.script(torch.nn.Linear(2, 2))(torch.ones(1, 2)).shape == (1, 2)
