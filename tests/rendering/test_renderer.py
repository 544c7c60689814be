"""Pictures obey the geometry of light: what faces the sun is bright, shadows lie behind, near things hide far ones."""

import math

import numpy as np
import pytest
import torch

from physvision.core import InputError, State
from physvision.core.coordinates import Coordinates
from physvision.models import NetworkEngine, StatePerceptron
from physvision.physics import articulated, rigid2d, soft
from physvision.rendering import Renderer, RenderSettings, View

SIZE = (120, 160)
SUN = np.array(RenderSettings.sun) / np.linalg.norm(RenderSettings.sun)
MATT = RenderSettings(gloss=0.0, resolution=64)


def load(world, **options):
    return articulated.load(f"<mujoco><worldbody>{world}</worldbody></mujoco>", ignore=("contact",), **options)


def ball(x=0.0, y=0.0, z=0.0, size=0.5, color="1 1 1"):
    return f'<body pos="{x} {y} {z}"><freejoint/><geom type="sphere" size="{size}" rgba="{color} 1"/></body>'


def picture(engine, view, settings=MATT):
    """Linear light, (rows, columns, 3)."""
    frame = Renderer(engine, settings).render(engine.initial_state(dtype=torch.float64), view)
    return (frame.astype(float) / 255) ** 2


def test_the_brightest_point_of_a_sphere_faces_the_sun():
    view = View.look_at((0, 0, 0), math.radians(-120), 0.5, 3.0, SIZE)
    light = picture(load(ball(color=".8 .8 .8")), view).sum(2)
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
    rays = np.stack([(columns - view.center[0]) / view.focal, (rows - view.center[1]) / view.focal, np.ones(SIZE)], -1)
    rays = (rays / np.linalg.norm(rays, axis=-1, keepdims=True)) @ view.rotation
    # Points of the unit sphere about the origin on each ray.
    along = -(rays @ view.eye)
    inside = along**2 - view.eye @ view.eye + 0.5**2
    hit = inside > 0.06
    points = view.eye + (along - np.sqrt(inside.clip(0)))[..., None] * rays
    cosine = (points[hit] / 0.5) @ SUN
    lit = cosine > 0.3
    assert np.degrees(np.arccos((points[hit][light[hit].argmax()] / 0.5) @ SUN)) < 6
    # Lambert's law, beside the light of the sky, which depends on the height of the normal.
    sky = points[hit][:, 2] / 0.5
    design = np.stack([cosine, sky, np.ones_like(sky)], 1)[lit]
    fitted, *_ = np.linalg.lstsq(design, light[hit][lit], rcond=None)
    assert np.abs(design @ fitted - light[hit][lit]).max() < 0.02 * light.max()
    assert fitted[0] == pytest.approx(0.64 * sum(RenderSettings.sun_color), rel=0.05)


def test_a_shadow_lies_where_the_sun_does_not_reach_and_is_softer_far_away():
    view = View.look_at((0, 0, 0), math.radians(-90), 1.0, 8.0, (240, 320))
    widths = []
    for height in (0.8, 2.0):
        engine = load('<geom type="plane" size="0 0 1"/>' + ball(z=height, size=0.3))
        renderer = Renderer(engine)
        state = engine.initial_state(dtype=torch.float64)
        with_ball = renderer.render(state, view).astype(float).sum(2)
        away = renderer.render(State(state.q + torch.tensor([50.0, 0, 0, 0, 0, 0, 0]), state.v), view).astype(float)
        ratio = with_ball / away.sum(2)
        center = np.array([0, 0, height]) - SUN * height / SUN[2]
        x, y, _ = view.project(center)
        assert ratio[round(y), round(x)] < 0.8
        for side in (np.array([1.5, 0, 0]), np.array([-1.5, 0, 0]), np.array([0, 1.5, 0])):
            beside_x, beside_y, _ = view.project(center + side)
            assert ratio[round(beside_y), round(beside_x)] > 0.97
        across = ratio[round(y), round(x) : round(x) + 60]
        widths.append(np.count_nonzero((across > ratio[round(y), round(x)] + 0.05) & (across < 0.97)))
    assert widths[1] > widths[0]


def test_the_edge_of_a_disc_covers_parts_of_pixels():
    """A sphere at whole and half pixels covers its area, which jagged edges would miss."""
    view = View.look_at((0, 0, 0), 0.0, 0.0, 6.0, SIZE)
    settings = RenderSettings(sky_color=(5.0,) * 3, ground_color=(5.0,) * 3, resolution=96)
    angle = math.asin(0.5 / 6.0)
    exact = math.pi * (view.focal * math.tan(angle)) ** 2
    sky = picture(load(ball(y=90.0, color="1 0 0")), view, settings)[..., 2]
    for shift in (0.0, 0.004, 0.01):
        # The ball has no blue, the sky has.
        blue = picture(load(ball(y=shift, color="1 0 0")), view, settings)[..., 2]
        assert (1 - blue / sky).sum() == pytest.approx(exact, rel=0.01)


def test_the_nearer_of_two_bodies_is_seen_and_a_box_has_edges():
    view = View.look_at((0, 0, 0), 0.0, 0.0, 6.0, SIZE)
    red = '<body pos="1 0 0"><freejoint/><geom type="box" size=".1 .3 .3" rgba="1 0 0 1"/></body>'
    light = picture(load(red + ball(color="0 0 1", size=1.0, x=-1.0)), view)
    middle = light[SIZE[0] // 2, SIZE[1] // 2]
    assert middle[0] > 10 * middle[2]
    expected = 2 * view.focal * 0.3 / (6.0 - 1.1)
    assert (light[SIZE[0] // 2, :, 0] > 2 * light[SIZE[0] // 2, :, 2]).sum() == pytest.approx(expected, abs=2)


def test_a_floor_of_triangles_that_reaches_behind_the_camera_is_cut():
    floor = '<geom type="box" size="30 30 1" pos="0 0 -1" rgba="0 1 0 1"/>'
    light = picture(load(floor + ball(z=1.0)), View.look_at((0, 0, 0.5), 0.0, 0.2, 4.0, SIZE))
    green = (light[..., 1] > 1.5 * light[..., 0]) & (light[..., 1] > 1.5 * light[..., 2])
    assert green[-1].all()
    assert not green[0].any()


def test_the_grid_and_the_texture_of_a_plane_lie_in_the_world():
    """Squares of a checkered texture appear where the camera projects them."""
    texture = '<texture name="t" type="2d" builtin="checker" rgb1="1 1 1" rgb2="0 0 0" width="64" height="64"/>'
    material = '<material name="m" texture="t" texrepeat="1 1" texuniform="true"/>'
    engine = articulated.load(
        f'<mujoco><asset>{texture}{material}</asset><worldbody><geom type="plane" size="0 0 1" material="m"/>'
        f"{ball(x=100.0)}</worldbody></mujoco>",
        ignore=("contact",),
    )
    view = View.look_at((0, 0, 0), math.radians(-90), 1.2, 3.0, (240, 320))
    light = picture(engine, view).sum(2)
    values = {}
    for x in np.arange(-0.75, 1, 0.5):
        for y in np.arange(-0.75, 1, 0.5):
            px, py, _ = view.project(np.array([x, y, 0.0]))
            values.setdefault(bool(int(2 * x + 10.5) % 2 ^ int(2 * y + 10.5) % 2), []).append(
                light[round(py), round(px)]
            )
    # Haze brightens black squares a little.
    assert min(max(values[True]), max(values[False])) < 0.3
    assert max(min(values[True]), min(values[False])) > 1.5


def test_a_flat_world_is_drawn_to_scale_in_front_of_a_wall():
    circle = rigid2d.Circle(0.5, (1.0, 0.5), color=(1.0, 0.0, 0.0))
    world = rigid2d.World([circle, rigid2d.Rectangle((4, 0.2), (0, -1), static=True)], gravity=(0, -9.81), dt=0.01)
    rotation = np.diag([1.0, -1.0, -1.0])
    view = View(rotation, np.array([0.0, 0.0, 10.0]), 30.0, (79.5, 59.5), *SIZE, 10.0, True)
    frame = Renderer(world).render(world.initial_state(), view).astype(float)
    red = np.argwhere(frame[..., 0] - frame[..., 1] > 80)
    np.testing.assert_allclose(red.mean(0), [59.5 - 30 * 0.5, 79.5 + 30 * 1.0], atol=0.5)
    assert len(red) == pytest.approx(math.pi * 15**2, rel=0.03)


def test_cloth_is_drawn_where_its_nodes_are():
    body = soft.SoftBody(soft.cloth((1.0, 1.0), (4, 4), (-0.5, -0.5, 0.0)), soft.Material(1e5, thickness=1e-3), dt=0.01)
    view = View.look_at((0, 0, 0), math.radians(-90), 1.5, 4.0, SIZE)
    state = body.initial_state(dtype=torch.float64)
    lifted = State(state.q + torch.tensor([0.5, 0.0, 0.0], dtype=torch.float64).repeat(25), state.v)
    places = []
    renderer = Renderer(body)
    for moment in (state, lifted):
        frame = renderer.render(moment, view).astype(float)
        blue = np.argwhere(frame[..., 2] - frame[..., 0] > 70)
        places.append(blue[:, 1].mean())
    assert places[1] - places[0] == pytest.approx(view.focal * 0.5 / 4.0, abs=1.0)


def test_a_body_without_shapes_is_drawn_as_a_rod():
    body = articulated.Body("rod", None, [articulated.Joint("revolute", (0, 1, 0))], center_of_mass=(0, 0, -1.0))
    engine = articulated.tree([body], dt=0.01)
    view = View.look_at((0, 0, -0.5), math.radians(-90), 0.0, 4.0, SIZE)
    frame = Renderer(engine).render(engine.initial_state(dtype=torch.float64), view).astype(float)
    rows = np.flatnonzero((np.ptp(frame, axis=2) > 70).any(1))
    top, bottom = (view.project(np.array([0, 0, z]))[1] for z in (0.0, -1.0))
    assert rows.min() == pytest.approx(top, abs=4)
    assert rows.max() == pytest.approx(bottom, abs=4)


def test_what_has_no_bodies_is_not_rendered():
    with pytest.raises(InputError, match="has no bodies to render"):
        Renderer(NetworkEngine(StatePerceptron(Coordinates(3)), 0.1))
