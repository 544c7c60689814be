"""A few updates of a small autoencoder, alone or shared by processes: run by torchrun, or called."""

import sys

import torch
from lightning.fabric import Fabric
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from trainers.small import SIZE, configuration

from physvision.models import build


class Loss(nn.Module):
    """A model with its loss, so that what `forward` returns is a tensor."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, frames):
        forecast = self.model(frames, 5)
        return forecast.frames.square().mean() + forecast.trajectory.q.square().mean()


def updates(way, processes=1, steps=3):
    """Weights after updates with eight clips, shared by the processes; by "torch", "fsdp" or "fabric"."""
    torch.manual_seed(3)
    loss = Loss(build(configuration()))
    frames = torch.rand(8, 3, 1, SIZE, SIZE)
    rank, backward = 0, torch.Tensor.backward
    if way == "fsdp":
        mesh, rank = init_device_mesh("cpu", (processes,)), distributed.get_rank()
        fully_shard(loss.model.decoder, mesh=mesh)
        fully_shard(loss, mesh=mesh)
    optimizer = torch.optim.SGD(loss.parameters(), 1e-3)
    if way == "fabric":
        fabric = Fabric(accelerator="cpu", devices=processes, strategy="ddp" if processes > 1 else "auto")
        fabric.launch()
        loss, optimizer = fabric.setup(loss, optimizer)
        rank, backward = fabric.global_rank, fabric.backward
    for _ in range(steps):
        optimizer.zero_grad()
        backward(loss(frames.chunk(processes)[rank]))
        optimizer.step()
    return {
        name.removeprefix("model."): value.full_tensor() if isinstance(value, DTensor) else value
        for name, value in loss.state_dict().items()
    }


def main():
    """Save the weights of two processes."""
    way, file = sys.argv[1:]
    torch.set_num_threads(1)
    if way == "fsdp":
        distributed.init_process_group("gloo")
    weights = updates(way, processes=2)
    if distributed.get_rank() == 0:
        torch.save(weights, file)
    # torchrun stops the other process where one leaves early and fails.
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
