"""Whatever is registered is saved and comes back: engines, models of one's own parts; states and trajectories too."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false

import copy
import pickle

import pytest
import torch

from physvision.camera import Camera
from physvision.core import (
    CheckpointError,
    Coordinates,
    InputError,
    Scene,
    SceneObject,
    State,
    Trajectory,
    load_states,
    save_states,
)
from physvision.core.serialization import configuration_of
from physvision.core.weights import write_weights
from physvision.models import (
    Encoder,
    LearnedForce,
    Observation,
    PassiveForce,
    PredictiveAutoencoder,
    StatePerceptron,
    learned_table,
    load,
    register,
    save,
)
from physvision.physics import Engine, Hybrid, PhysicsLayer, articulated, rigid2d

ANGLES = Coordinates(2, (0, 1))
XML = """<mujoco><worldbody>
  <body pos="0 0 1"><joint name="j" axis="0 1 0" damping=".1"/>
   <geom type="capsule" fromto="0 0 0 0 0 -.6" size=".1"/>
    <body pos="0 0 -.6"><joint type="ball"/><geom type="box" size=".1 .1 .1" rgba=".2 .3 .4 1"/></body></body>
</worldbody><actuator><motor joint="j" gear="2" ctrlrange="-1 1"/></actuator></mujoco>"""


def world():
    ball, block = rigid2d.Circle(1.0, (0, 5), name="ball"), rigid2d.Rectangle((2, 1), (3, 5), angle=0.1)
    floor = rigid2d.Rectangle((40, 2), (0, -3), static=True)
    joints = [
        rigid2d.Revolute(first=ball, second=block, at=(1, 5)),
        rigid2d.Spring(first=block, to=(3, 9), stiffness=2.0),
    ]
    return rigid2d.World([ball, block, floor], joints, gravity=(0, -9.81))


def chain():
    return articulated.chain([1.0, 2.0], dt=0.05, integrator="runge_kutta_4")


ENGINES = {
    "mjcf": lambda: articulated.load(XML, dt=0.02),
    "cartpole": lambda: articulated.cartpole(2, dt=0.02),
    "chain": chain,
    "world": world,
    "layer": lambda: PhysicsLayer(chain(), {"lengths": [1.0, 2.0]}, articulated.chain_properties),
    "table": lambda: learned_table(2),
    "passive hybrid": lambda: Hybrid(chain(), PassiveForce(ANGLES, hidden=8)),
    "hybrid": lambda: Hybrid(chain(), LearnedForce(StatePerceptron(ANGLES, outputs=1, hidden=8))),
}


@pytest.mark.parametrize("kind", ENGINES)
def test_an_engine_comes_back_as_it_was(tmp_path, kind):
    engine = ENGINES[kind]()
    with torch.no_grad():
        for parameter in engine.parameters():
            parameter.add_(0.05)
    again = load(save(tmp_path / "engine.safetensors", engine), Engine)
    start = engine.initial_state(2)
    start = State(start.q, start.v + 0.3)
    there, here = engine.rollout(start, 20), again.rollout(start, 20)
    assert torch.equal(here.q, there.q)
    assert torch.equal(here.v, there.v)
    if engine.mechanics is not None:
        single, reference = (entry.mechanics.appearance(start, entry.properties) for entry in (engine, again))
        torch.testing.assert_close(single.poses, reference.poses)
    # A copy knows what it was made of as well; torch pickles no module whose parameters are parametrized.
    pickled = [] if list(engine.physical_parameters()) else [pickle.loads(pickle.dumps(again))]
    for twin in (copy.deepcopy(again), *pickled):
        assert configuration_of(twin) == configuration_of(again)


@register("tests.Brightest")
class Brightest(Encoder):
    """The middle of the light; `scale` is learned."""

    def __init__(self, size: int, rate: float = 30.0) -> None:
        super().__init__()
        self.size, self.rate = size, rate
        self.scale = torch.nn.Parameter(torch.ones(()))

    def observe(self, frames):
        light, grid = frames.amax(2), torch.arange(self.size) + 0.5
        whole = light.sum((2, 3)).clamp_min(1e-6)
        x, y = (light.sum(2) * grid).sum(-1) / whole, (light.sum(3) * grid).sum(-1) / whole
        places = self.scale * torch.stack([x, y, torch.zeros_like(x)], -1)
        return Observation(places, self.rate * places.diff(dim=1))


def model_of(encoder):
    size = 24
    ball = rigid2d.Circle(3, (12, 12), color=(1.0, 0.5, 0.1))
    engine = rigid2d.World([ball], gravity=(0, 60), dt=1 / 30)
    scene = Scene(
        title="a ball. It falls, e.g. down",
        appearance="one ball of 3.0 px; see physvision.models.load",
        size=(size, size),
        color="rgb",
        fps=30.0,
        frames_in=2,
        coordinates={"x": "px", "y": "px", "angle": "rad"},
        objects=[SceneObject("ball", body=0, radius=3.0)],
        parameters={},
    )
    return PredictiveAutoencoder(encoder, engine, Camera.table(size, size, y_down=True).bind(engine), scene=scene)


def test_a_model_of_ones_own_encoder_and_a_camera_comes_back(tmp_path):
    """With full stops in the texts of its scene."""
    model = model_of(Brightest(24))
    with torch.no_grad():
        model.encoder.scale.fill_(0.9)
    again = load(save(tmp_path / "ball.safetensors", model))
    frames = torch.rand(2, 2, 3, 24, 24)
    assert torch.equal(again(frames, 3).frames, model(frames, 3).frames)
    assert again.scene == model.scene
    assert again.encoder.rate == 30.0


def test_a_part_that_was_exchanged_is_saved_as_it_is_now(tmp_path):
    model = model_of(Brightest(24))
    model.encoder = Brightest(24, rate=20.0)
    assert load(save(tmp_path / "ball.safetensors", model)).encoder.rate == 20.0


def test_what_is_not_registered_is_not_saved(tmp_path):
    class Other(Brightest):
        pass

    for module, match in ((Other(24), "Other is not registered"), (model_of(Other(24)), "Other is not registered")):
        with pytest.raises(InputError, match=match):
            save(tmp_path / "other.safetensors", module)
    layer = PhysicsLayer(chain(), {"lengths": [1.0, 2.0]}, lambda lengths: articulated.chain_properties(lengths))
    with pytest.raises(InputError, match=r"PhysicsLayer\.leaves: a function has no configuration"):
        save(tmp_path / "other.safetensors", layer)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match=r"'tests\.Brightest' is registered already"):
        register("tests.Brightest")(Other)


def test_an_engine_is_no_model(tmp_path):
    path = save(tmp_path / "engine.safetensors", chain())
    with pytest.raises(CheckpointError, match=r"expected a PredictiveAutoencoder, .*Articulation makes a "):
        load(path)


def test_states_come_back(tmp_path):
    run = chain().rollout(State(torch.ones(2, 2), torch.zeros(2, 2)), 4)
    for states in (run.final, run, Trajectory(run.q.double(), run.v.double())):
        again = load_states(save_states(tmp_path / "states.safetensors", states))
        assert type(again) is type(states)
        assert torch.equal(again.q, states.q)
        assert torch.equal(again.v, states.v)
    again = load_states(save_states(tmp_path / "states.safetensors", run))
    assert again.dt == run.dt
    assert torch.equal(again.status.converged, run.status.converged)
    assert torch.equal(again.status.first_failed_step, run.status.first_failed_step)


@pytest.mark.parametrize(
    ("tensors", "about", "match"),
    [
        ({"q": torch.zeros(2, 3)}, {}, "expected tensors q and v, got q"),
        ({"q": torch.zeros(2, 3), "v": torch.zeros(3, 3)}, {}, r"v: expected shape \(2, any\), got \(3, 3\)"),
        ({"q": torch.zeros(2, 3), "v": torch.zeros(2, 3)}, {"dt": 0.1}, r"q: expected shape \(any, any, any\)"),
        ({"q": torch.zeros(2, 4, 3), "v": torch.zeros(2, 4, 3)}, {"dt": "x"}, "dt: expected a number, got 'x'"),
        ({"q": torch.zeros(2, 3), "v": torch.zeros(2, 3)}, {"of": 3}, "unknown key 'of'; expected dt"),
    ],
)
def test_other_tensors_are_no_states(tmp_path, tensors, about, match):
    path = write_weights(tmp_path / "bad.safetensors", tensors, about, "physvision states 1")
    with pytest.raises(CheckpointError, match=match):
        load_states(path)
