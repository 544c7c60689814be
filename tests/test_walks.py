"""The walks of CONTRIBUTING, taken: an engine with a property, a joint, an encoder and a scene."""

# pyright: reportAttributeAccessIssue=false

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from physvision import State
from physvision.camera import Camera
from physvision.core import InputError, Placed, Scene, SceneObject, Sphere, brightness
from physvision.core.shapes import Appearance
from physvision.models import Encoder, Observation, PredictiveAutoencoder, load, register, save
from physvision.physics import MechanicalEngine, PhysicsLayer, Properties, rigid2d
from physvision.physics.properties import leaf, register_properties
from physvision.physics.rigid2d.joints import HoldX
from physvision.physics.stepped import SteppedEngine


@register_properties
@dataclass(frozen=True)
class PuckProperties(Properties):
    """A puck's numbers."""

    mass: Tensor = leaf("bodies", unit="kg", range="positive", meaning="of the puck")
    push: Tensor = leaf(2, unit="N", meaning="of the wind, along x and y")


@register("walks.Puck")
class Puck(SteppedEngine, MechanicalEngine):
    """A puck without friction that a wind pushes: x and y."""

    def __init__(self, mass: float = 2.0, dt: float = 0.1) -> None:
        super().__init__()
        self.nq = self.nv = self.nu = 2
        self.dt = dt
        self.body_names, self.joint_names = ("puck",), ()
        self.geometry = (Placed(Sphere(0.2), 0),)
        self.rows = {"bodies": self.body_names}
        pair = torch.tensor([mass], dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
        self.set_properties(PuckProperties(*pair))

    def initial_state(self, batch=1, dtype=torch.float32):
        return State(torch.zeros(batch, 2, dtype=dtype), torch.zeros(batch, 2, dtype=dtype))

    def _advance(self, state, control, properties):
        known = (properties or self.properties).to(state.q.dtype)
        force = known.push if control is None else known.push + control
        v = state.v + self.dt * force / known.mass
        return State(state.q + self.dt * (state.v + v) / 2, v), None

    def _energy(self, state, properties):
        kinetic = (properties.to(state.q.dtype).mass * state.v.square()).sum(-1) / 2
        return kinetic, torch.zeros_like(kinetic)

    def _poses(self, state, properties):
        pose = torch.eye(4, dtype=state.q.dtype).repeat(state.batch, 1, 1, 1)
        place = torch.cat([state.q, torch.zeros_like(state.q)], 1)[:, None, :3, None]
        return torch.cat([pose[..., :3], torch.cat([place, pose[..., 3:, 3:]], 2)], -1)

    def _appearance(self, state, properties):
        sizes = torch.tensor([[0.2, 0.0, 0.0]]).to(state.q).expand(state.batch, 1, 3)
        return Appearance(self._poses(state, properties), sizes)


@register("walks.Brightest")
class Brightest(Encoder):
    """Reads where a bright thing is, in meters, and how it moved since the frame before."""

    def observe(self, frames):
        light = brightness(frames).float().mean(2)
        rows = torch.linspace(-1.0, 1.0, light.shape[-1])
        total = light.sum((-1, -2)).clamp_min(1e-6)
        places = torch.stack([(light.sum(-2) * rows).sum(-1), -(light.sum(-1) * rows).sum(-1)], -1) / total[..., None]
        return Observation(places, places.diff(dim=1) / 0.1)


def test_an_engine_with_a_property_is_learned_drawn_and_saved(tmp_path):
    layer = PhysicsLayer(Puck(), {"mass": [1.0]})
    force = torch.ones(1, 20, 2)
    goal = Puck(3.0).rollout(Puck().initial_state(), 20, force).q
    optimizer = torch.optim.Adam(layer.physical_parameters(), 0.05)
    for _ in range(200):
        optimizer.zero_grad()
        (layer.rollout(layer.initial_state(), 20, force).q - goal).square().mean().backward()
        optimizer.step()
    assert layer.learned_values["mass"].item() == pytest.approx(3.0, rel=1e-3)
    again = load(save(tmp_path / "puck.safetensors", layer), PhysicsLayer)
    assert torch.equal(again.learned_values["mass"], layer.learned_values["mass"])
    with pytest.raises(InputError, match=r"mass of 'puck': expected numbers above zero, got -1"):
        layer.checked({"mass": torch.tensor([-1.0])})
    work = layer.mechanics.energy(layer.rollout(layer.initial_state(), 20, force), layer.properties)[0]
    assert bool((work.detach().diff(dim=1) > 0).all())


def test_an_encoder_and_a_scene_make_a_model():
    engine = Puck()
    view = Camera.pinhole(32, 32, position=(0, 0, 5), target=(0, 0, 0), up=(0, 1, 0), fov=0.4)
    scene = Scene(
        title="a puck on ice. It is bright",
        appearance="a bright puck in front of black",
        size=(32, 32),
        color="rgb",
        fps=10.0,
        frames_in=2,
        coordinates={"x": "m", "y": "m"},
        objects=[SceneObject("puck", 0)],
        parameters={"mass": "kg"},
    )
    model = PredictiveAutoencoder(Brightest(), engine, view.bind(engine), scene=scene)
    start = State(torch.tensor([[0.2, -0.1]]), torch.tensor([[0.3, 0.2]]))
    frames = model.decoder(engine.rollout(start, 1).flatten())[None]
    observed = model.encoder(frames)
    torch.testing.assert_close(observed.q, engine.step(start).q, atol=0.02, rtol=0)
    forecast = model(frames, 3)
    assert forecast.frames.shape == (1, 3, 3, 32, 32)


def test_a_joint_is_a_class_of_rows():
    class Rail(HoldX):
        """Keeps the x of a point, and the angle: a carriage on an upright rail."""

        def __post_init__(self) -> None:
            super().__post_init__()
            self.rows = (0, 2)

    carriage = rigid2d.Rectangle((4, 2), (0, 0), velocity=(0, 3), mass=2)
    world = rigid2d.World([carriage], [Rail(carriage, at=(0, 0.5))], gravity=(5.0, -9.81), dt=0.05)
    end = world.rollout(world.initial_state(dtype=torch.float64), 10).final
    expected = [0.0, 3 * 0.5 - 9.81 * 0.5**2 / 2, 0.0]
    torch.testing.assert_close(end.q, torch.tensor([expected], dtype=torch.float64), atol=1e-9, rtol=0)
