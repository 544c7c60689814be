"""What is seen of three MuJoCo models, against MuJoCo's own rays."""

# pyright: reportAttributeAccessIssue=false

import os
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from physvision.camera import Camera, RayCaster
from physvision.core import State
from physvision.physics import articulated

HEIGHT, WIDTH = 60, 80
PENDULUM = """
<mujoco>
  <worldbody>
    <camera name="fixed" pos="0.3 -3.5 0.5" xyaxes="1 0.1 0 0 0.05 1"/>
    <body pos="0 0 1"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.5" size=".08"/>
      <body pos="0 0 -.5"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.5" size=".06"/>
        <body pos="0 0 -.5"><joint axis="0 1 0"/><geom type="cylinder" fromto="0 0 0 0 0 -.5" size=".05"/></body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def cartpole(folder: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        suite = pytest.importorskip("dm_control.suite.cartpole")
    xml, assets = suite.get_model_and_assets(1)
    model = mujoco.MjModel.from_xml_string(xml if isinstance(xml, str) else xml.decode(), dict(assets))
    mujoco.mj_saveLastXML(str(folder / "cartpole.xml"), model)
    return str(folder / "cartpole.xml")


def pendulum(folder: Path) -> str:
    (folder / "pendulum.xml").write_text(PENDULUM)
    return str(folder / "pendulum.xml")


def ant(folder: Path) -> str:
    gymnasium = pytest.importorskip("gymnasium")
    return os.path.join(os.path.dirname(gymnasium.__file__), "envs", "mujoco", "assets", "ant.xml")  # noqa: PTH118, PTH120


def rays(model: mujoco.MjModel, data: mujoco.MjData, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Geom and depth along the camera's axis of the rays through pixel coordinates x, y of camera 0."""
    focal = HEIGHT / (2 * np.tan(np.radians(model.cam_fovy[0]) / 2))
    local = np.stack([(x - (WIDTH - 1) / 2) / focal, -(y - (HEIGHT - 1) / 2) / focal, -np.ones_like(x)], -1)
    length = np.linalg.norm(local, axis=-1)
    direction = (local / length[:, None]) @ data.cam_xmat[0].reshape(3, 3).T
    geoms, distances = np.full(len(x), -1, np.int32), np.zeros(len(x))
    mujoco.mj_multiRay(
        model, data, data.cam_xpos[0], direction.flatten(), None, 1, -1, geoms, distances, None, len(x), mujoco.mjMAXVAL
    )
    return geoms, distances / length


@pytest.mark.parametrize("make", [cartpole, pendulum, ant])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_bodies_at_the_same_depth(make, seed, tmp_path):
    file = make(tmp_path)
    model = mujoco.MjModel.from_xml_path(file)
    data = mujoco.MjData(model)
    random = np.random.default_rng(seed)
    data.qpos[:] += 0.3 * random.standard_normal(model.nq)
    if make is ant:
        data.qpos[2] += 0.5
        data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
    mujoco.mj_forward(model, data)

    engine = articulated.load(file, ignore=("contact", "limit"))
    camera = Camera.from_mujoco(
        HEIGHT, WIDTH, position=data.cam_xpos[0], rotation=data.cam_xmat[0], fovy=float(model.cam_fovy[0])
    )
    bound = camera.bind(engine)
    q = torch.as_tensor(data.qpos.copy())[None]
    poses = bound.appearance(State(q, torch.zeros(1, engine.nv, dtype=torch.float64))).poses
    visible = RayCaster(camera, bound.geometry).inspect(poses)

    y, x = (grid.flatten().astype(float) for grid in np.mgrid[:HEIGHT, :WIDTH])
    geoms, depth = rays(model, data, x, y)
    crossed = np.zeros(len(x), bool)
    for dx in (-0.5, 0.5):
        for dy in (-0.5, 0.5):
            crossed |= rays(model, data, x + dx, y + dy)[0] != geoms
    ids = visible.shapes[0].flatten().numpy()
    assert len(np.unique(ids)) > 3
    assert crossed.mean() < 0.25
    np.testing.assert_array_equal(ids[~crossed], geoms[~crossed])
    hit = ~crossed & (geoms >= 0)
    np.testing.assert_allclose(visible.depth[0].flatten().numpy()[hit], depth[hit], atol=1e-4, rtol=0)
