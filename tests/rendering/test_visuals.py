"""Visual elements of model files are drawn in place of what collides."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from physvision.core import Capsule, Hull, Sphere
from physvision.physics import articulated
from physvision.rendering import Renderer, View
from physvision.rendering.framing import choose_framing

CORNERS = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
FACES = ("1 3 4 2", "5 6 8 7", "1 2 6 5", "3 7 8 4", "1 5 7 3", "2 4 8 6")
INERTIA = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


@pytest.fixture
def mesh(tmp_path):
    triangles = [f"f {a} {b} {c}\nf {a} {c} {d}" for a, b, c, d in (face.split() for face in FACES)]
    text = "".join(f"v {x} {y} {z}\n" for x, y, z in CORNERS) + "\n".join(triangles) + "\n"
    (tmp_path / "cube.obj").write_text(text)
    return tmp_path


def urdf(visual):
    return (
        f'<robot name="r"><material name="red"><color rgba="1 0 0 1"/></material><link name="base">{INERTIA}{visual}'
        '<collision><geometry><sphere radius="0.2"/></geometry></collision></link></robot>'
    )


def test_the_mesh_of_a_urdf_is_drawn_in_place_of_its_collision_shape(mesh):
    visual = '<visual><geometry><mesh filename="cube.obj"/></geometry><material name="red"/></visual>'
    (mesh / "r.urdf").write_text(urdf(visual))
    engine = articulated.load(mesh / "r.urdf", base="free")
    assert len(engine.geometry) == 1
    visuals = engine.visuals
    assert visuals.hidden == {0}
    (surface,) = visuals.surfaces
    assert surface.faces.shape == (12, 3)
    assert set(map(tuple, np.round(surface.vertices, 6).tolist())) == {tuple(map(float, corner)) for corner in CORNERS}
    view = View.look_at((0.5, 0.5, 0.5), -1.0, 0.4, 5.0, (90, 120))
    frame = Renderer(engine).render(engine.initial_state(dtype=torch.float64), view).astype(int)
    red = frame[..., 0] - frame[..., 1] > 60
    assert red[45, 60]
    assert red.sum() > 0.5 * (view.focal / 5.0) ** 2


COLLADA = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="centimeter" meter="0.01"/><up_axis>Y_UP</up_axis></asset><library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="a" count="12">0 0 0 100 0 0 0 100 0 0 0 100</float_array><technique_common>
<accessor source="#a" count="4" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/><p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles>
</mesh></geometry></library_geometries><library_visual_scenes><visual_scene id="s"><node>
<translate>0 0 50</translate><instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def test_a_mesh_in_collada_is_read_in_its_unit(mesh):
    pytest.importorskip("collada")
    (mesh / "tetrahedron.dae").write_text(COLLADA)
    (mesh / "r.urdf").write_text(urdf('<visual><geometry><mesh filename="tetrahedron.dae"/></geometry></visual>'))
    (surface,) = articulated.load(mesh / "r.urdf").visuals.surfaces
    assert surface.faces.shape == (4, 3)
    corners = {(0.0, 0.0, 0.5), (1.0, 0.0, 0.5), (0.0, 1.0, 0.5), (0.0, 0.0, 1.5)}
    assert set(map(tuple, np.round(surface.vertices, 6).tolist())) == corners


def test_shapes_and_missing_meshes_of_a_urdf(mesh):
    """A mesh in a format that cannot be read leaves the collision shape."""
    box = '<visual><geometry><box size="1 2 3"/></geometry></visual>'
    (mesh / "r.urdf").write_text(urdf(box))
    visuals = articulated.load(mesh / "r.urdf").visuals
    assert [placed.shape.sizes for placed, _ in visuals.shapes] == [(1.0, 2.0, 3.0)]
    (mesh / "r.urdf").write_text(urdf('<visual><geometry><mesh filename="arm.fbx"/></geometry></visual>'))
    engine = articulated.load(mesh / "r.urdf")
    with pytest.warns(UserWarning, match=r"arm\.fbx: expected one of \.stl"):
        visuals = engine.visuals
    assert not visuals.surfaces
    assert not visuals.hidden
    (mesh / "r.urdf").write_text(urdf('<visual><geometry><mesh filename="missing.obj"/></geometry></visual>'))
    engine = articulated.load(mesh / "r.urdf")
    with pytest.warns(UserWarning, match=r"visual elements are not drawn: .*missing.obj"):
        assert not engine.visuals.surfaces


def test_meshes_groups_and_materials_of_mjcf(mesh):
    """Colliding meshes have their own triangles, hidden groups are left out, and looks are those of the materials."""
    (mesh / "m.xml").write_text(
        '<mujoco><asset><mesh name="cube" file="cube.obj"/><material name="green" rgba="0 1 0 1"/></asset><worldbody>'
        '<geom type="plane" size="0 0 1"/><body pos="0 0 1"><freejoint/>'
        '<geom type="mesh" mesh="cube" material="green"/>'
        '<geom type="ellipsoid" size=".1 .2 .3" contype="0" conaffinity="0"/>'
        '<geom type="sphere" size="2" group="3" contype="0" conaffinity="0"/></body></worldbody></mujoco>'
    )
    engine = articulated.load(mesh / "m.xml")
    visuals = engine.visuals
    assert {type(engine.geometry[row].shape) for row in visuals.hidden} == {Hull, type(engine.geometry[-1].shape)}
    assert visuals.surfaces[0].look.color == (0.0, 1.0, 0.0)
    assert set(visuals.surfaces[0].bodies.tolist()) == {0}
    assert [placed.shape.sizes for placed, _ in visuals.shapes] == [(0.1, 0.2, 0.3)]
    assert engine.visuals is visuals


def test_each_body_without_shapes_is_drawn_as_rods():
    """Thigh and shin lead to the foot, the only shape; a knuckle within its wheel and a massless frame stay out."""
    links = "".join(f'<link name="{name}">{INERTIA}</link>' for name in ("trunk", "thigh", "shin", "knuckle"))
    ball = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    links += (
        "".join(f'<link name="{name}">{INERTIA}{ball}</link>' for name in ("foot", "wheel")) + '<link name="frame"/>'
    )
    joints = "".join(
        f'<joint name="{child}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{place}"/></joint>'
        for parent, child, place, kind in (
            ("trunk", "thigh", "1 0 0", "continuous"),
            ("thigh", "shin", "0 0 -1", "continuous"),
            ("shin", "foot", "0 0 -2", "fixed"),
            ("foot", "frame", "0 0 -1", "fixed"),
            ("foot", "knuckle", "0 1 0", "continuous"),
            ("knuckle", "wheel", "0 0 0", "continuous"),
        )
    )
    engine = articulated.load(f'<robot name="r">{links}{joints}</robot>', base="free", ignore=("contact",))
    shapes = [(engine.body_names[placed.body or 0], placed) for placed, _ in engine.visuals.shapes]
    rods = {name: placed.shape.length for name, placed in shapes if isinstance(placed.shape, Capsule)}
    assert rods == pytest.approx({"trunk": 1.0, "thigh": 1.0, "shin": 2.0})
    assert sorted(name for name, placed in shapes if isinstance(placed.shape, Sphere)) == ["shin", "thigh", "trunk"]
    # The whole robot is in the picture of a film, which shows the rod of the shin.
    renderer, state, size = Renderer(engine), engine.initial_state(dtype=torch.float64), (120, 160)
    framing = choose_framing(renderer, state, size)
    points = renderer.frames(state)[0][0, framing.movable, :3, 3]
    middle = framing.middle(points)
    view = framing.view(middle, framing.distance(points, middle))
    names = list(engine.body_names)
    names.remove("frame")
    rows = [engine.body_names.index(name) for name in names]
    origins = engine.poses(state)[0, rows, :3, 3].numpy()
    local = (origins - view.eye) @ view.rotation.T
    pixels = view.focal * local[:, :2] / local[:, 2:] + np.array(view.center)
    assert bool(((pixels > 0) & (pixels < size[::-1])).all())
    with_rods = renderer.render(state, view).astype(int)
    column, row = pixels[[names.index("shin"), names.index("foot")]].mean(0).round().astype(int)
    engine._cached["visuals"] = replace(engine.visuals, shapes=())
    without = Renderer(engine).render(state, view).astype(int)
    assert np.abs(with_rods - without)[row, column].max() > 20


def test_a_mass_without_shapes_beside_a_box_is_a_ball():
    source = """<mujoco><worldbody><body><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos="0 1 0"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>
    <body pos="0 2 0"/></worldbody></mujoco>"""
    ((ball, _),) = articulated.load(source).visuals.shapes
    assert (type(ball.shape), ball.body) == (Sphere, 1)


def test_rotors_of_actuator_states_and_markers_of_loops_are_no_bodies_to_draw(recwarn):
    inertia = '<inertial pos=".1 0 0" mass="1" diaginertia="1 1 1"/>'
    source = f"""<mujoco><worldbody><body name="a"><joint name="a" axis="0 1 0"/>{inertia}<geom size=".1"/>
      <body name="b" pos="1 0 0"><joint axis="0 1 0"/>{inertia}<body name="c" pos="1 0 0"><joint axis="0 1 0"/>{inertia}
      <body pos="1 0 0"><geom size=".1"/></body></body></body></body></worldbody>
      <equality><connect body1="c" anchor=".5 0 0"/></equality>
      <actuator><general joint="a" dyntype="filter" dynprm="1"/></actuator></mujoco>"""
    engine = articulated.load(source)
    assert engine.body_names[-1].startswith("activation of")
    shapes = [placed for placed, _ in engine.visuals.shapes]
    assert {engine.body_names[placed.body or 0] for placed in shapes} == {"b", "c"}
    assert not [warning for warning in recwarn if "are not drawn" in str(warning.message)]


SKINNED = """<mujoco><asset><skin name="hide" rgba="1 0 0 1" vertex="0 0 1  0 1 1  0 2 1  0 1 2" face="0 1 3  1 2 3">
  <bone body="thigh" bindpos="0 0 1" bindquat="1 0 0 0" vertid="0 1 3" vertweight="1 .6 .5"/>
  <bone body="shin" bindpos="0 1 1" bindquat=".70710678 .70710678 0 0" vertid="1 2 3" vertweight=".4 1 .6"/>
  </skin></asset>
  <worldbody><body name="thigh" pos="0 0 1"><joint axis="1 0 0"/><geom size=".1"/><body name="shin" pos="0 1 0">
  <joint axis="1 0 0"/><geom size=".1" group="3"/></body></body></worldbody></mujoco>"""


def test_each_vertex_of_a_skin_moves_with_its_main_bone():
    """The shin was bound when it was turned by a quarter about x."""
    engine = articulated.load(SKINNED, ignore=("contact",))
    visuals = engine.visuals
    (surface,) = visuals.surfaces
    assert visuals.hidden == {1}
    assert surface.look.color == (1.0, 0.0, 0.0)
    assert surface.bodies.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(surface.vertices, [(0, 0, 0), (0, 1, 0), (0, 0, -1), (0, 1, 0)], atol=1e-6)
    frame = Renderer(engine).render(
        engine.initial_state(dtype=torch.float64), View.look_at((0, 1, 1), 0.0, 0.2, 5.0, (90, 120))
    )
    assert ((frame[..., 0].astype(int) - frame[..., 1]) > 60).any()
