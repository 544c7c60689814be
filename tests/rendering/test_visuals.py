"""Visual elements of model files are drawn in place of what collides."""

import numpy as np
import pytest
import torch

from physvision.core import Hull
from physvision.physics import articulated
from physvision.rendering import Renderer, View

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
