"""After a torch model that predicts a mean and a standard deviation (needs howsure[deep])."""

from __future__ import annotations

import numpy as np
import torch

import howsure


def main(steps: int = 400) -> howsure.Assessment:
    """Train a small network on the Gaussian likelihood, and assess what it believes."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2_000, 1)).astype(np.float32)
    noise = (0.05 + 0.2 * x**2) * rng.normal(size=x.shape)
    y = (np.sin(3 * x) + noise).astype(np.float32)

    with torch.random.fork_rng():
        torch.random.default_generator.manual_seed(0)
        network = torch.nn.Sequential(
            torch.nn.Linear(1, 50), torch.nn.ReLU(), torch.nn.Linear(50, 2)
        )
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    inputs, targets = torch.from_numpy(x[:1_000]), torch.from_numpy(y[:1_000, 0])
    for _ in range(steps):
        mean, log_variance = network(inputs).unbind(dim=1)
        loss = ((targets - mean) ** 2 * torch.exp(-log_variance) + log_variance).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    with torch.no_grad():
        mean, log_variance = network(torch.from_numpy(x[1_000:])).unbind(dim=1)
    prediction = howsure.Distribution.normal(mean.numpy(), np.exp(0.5 * log_variance.numpy()))
    return howsure.assess(y[1_000:, 0], prediction, features={"x": x[1_000:, 0]})


if __name__ == "__main__":
    print(main().verdict)
