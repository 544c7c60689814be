# ruff: noqa: E501
"""The table of MJCF in docs/articulated.md: it is complete, and every line of it is tried against MuJoCo."""

# pyright: reportAttributeAccessIssue=false

import re
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from mujoco_versions import ADDED_IN_4, IS_4, REMOVED_IN_4

from physvision import State
from physvision.core import UnsupportedError
from physvision.physics import articulated
from physvision.physics.articulated.loading.unsupported import IGNORABLE

PAGE = (Path(__file__).parents[3] / "docs" / "articulated.md").read_text()
SHORT = 1e-8
VERDICTS = ("supported", "rejected", "call", "harmless")


def table() -> dict[str, dict[str, str]]:
    """Element: attribute: verdict. The attribute `*` stands for all that have no verdict of their own."""
    results: dict[str, dict[str, str]] = {}
    for line in PAGE.split("## Supported MJCF and URDF features")[1].splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 1 + len(VERDICTS) and cells[0].startswith("`"):
            for element in re.findall(r"`([^`]+)`", cells[0]):
                row = results.setdefault(element, {})
                for verdict, cell in zip(VERDICTS, cells[1:], strict=True):
                    # In the column of refusals the kind that `ignore` takes stands in brackets behind its attributes.
                    for group, kind in re.findall(r"((?:`[^`]+`[ ,]*)+)(?:\((\w+)\))?", cell):
                        row |= {name: f"{verdict} {kind}".strip() for name in re.findall(r"`([^`]+)`", group)}
    return results


def schema() -> dict[str, set[str]]:
    """MuJoCo's own list: element by its path, with its attributes."""
    results: dict[str, set[str]] = {}
    path: list[str] = []
    for line in mujoco.mj_printSchema(False, False).splitlines():
        if not line.strip():
            continue
        head, attributes = line[:26], line[26:].split()
        if head.strip():
            name, depth = head.split("(")[0].replace("world)", "").strip(), (len(head) - len(head.lstrip())) // 3
            if "(world)" in head:
                name, attributes = "body", line[30:].split()
            path = [*path[:depth], name]
            results["/".join(path[1:]) or "mujoco"] = set()
        results["/".join(path[1:]) or "mujoco"] |= set(attributes)
    return results


def verdict(rows: dict[str, dict[str, str]], element: str, attribute: str) -> str | None:
    row = rows.get(element, {})
    return row.get(attribute, row.get("*"))


def test_the_table_is_complete():
    rows, missing = table(), []
    for element, attributes in schema().items():
        parts = element.split("/")
        covering = ["/".join(parts[: k + 1]) for k in range(len(parts))]
        whole = any(rows.get(f"{cover}/…") for cover in covering)  # a row for an element with all that is in it
        missing += [
            f"{element} {attribute}" for attribute in attributes if not whole and not verdict(rows, element, attribute)
        ]
    assert not [name for name in missing if not name.startswith(REMOVED_IN_4)]


def test_the_table_names_nothing_that_is_not_there():
    known = schema()
    for element, row in table().items():
        path = element.removesuffix("/…")
        assert path in known, element
        family = set().union(*(known[entry] for entry in known if entry.split("/")[0] == path.split("/")[0]))
        assert set(row) - {"*"} <= (family if IS_4 else family | ADDED_IN_4), element


def test_names_to_ignore_are_those_of_the_loader():
    """The page lists what the loader leaves out, and the table names nothing else as a reason of a refusal."""
    rows = [f"| `{name}` | {text} |" for name, text in IGNORABLE.items()]
    assert "\n".join(["| name for `ignore=` | leaves out |", "|---|---|", *rows, ""]) in PAGE
    kinds = {result.split()[1] for row in table().values() for result in row.values() if result.startswith("rejected")}
    assert kinds
    assert kinds <= set(IGNORABLE)


FREE = 'contype="0" conaffinity="0"'
MODEL = """<mujoco><compiler {compiler}/><option {option}><flag {flag}/></option>{top}
<worldbody {worldbody}>
  <body name="a" {body}>{inertial}
    <joint name="ja" {joint}/><geom name="ga" {geom}/><site name="s"/>
    <body name="b" pos="0 0.1 -0.5"><joint name="jb" type="ball" damping="0.1"/>
      <geom type="capsule" size="0.05 0.2" contype="0" conaffinity="0"/></body>
  </body>
  <body name="f" pos="1 1 1" euler="10 20 30"><freejoint {freejoint}/><geom size="0.1" pos="0.1 0 0" contype="0" conaffinity="0"/></body>
  {world}
</worldbody>{bottom}<actuator>{actuators}<{kind} name="m" {actuator}/></actuator></mujoco>"""
BASE = {
    "joint": 'axis="0 1 0" stiffness="3" damping="0.2"',
    "geom": f'type="box" size="0.1 0.2 0.3" pos="0.1 0 0" {FREE}',
    "kind": "motor",
    "actuator": 'joint="ja"',
    "body": 'pos="0.1 0.2 0.3"',
}
PLACES = {
    "compiler": "compiler", "option": "option", "option/flag": "flag", "body": "body", "body/joint": "joint",
    "body/freejoint": "freejoint", "body/geom": "geom", "actuator/general": "actuator", "actuator/motor": "actuator",
    "actuator/position": "actuator", "actuator/velocity": "actuator",
}  # fmt: skip
LIMITED, TWO_SITES = 'range="-900 900" limited="true"', 'joint1="ja" polycoef="0.1 0 0 0 0"'
FIXED = '<tendon><fixed name="t" {}><joint joint="ja" coef="1"/></fixed></tendon>'
SPATIAL = '<tendon><spatial name="t" {}><site site="s"/><site site="o"/></spatial></tendon>'

TWO = '<body pos="9 0 0"><freejoint/><geom size=".1" {}/></body><body pos="9 0 1"><freejoint/><geom size=".1"/></body>'

# What is put into the model to try an attribute, by element. A value with "<" replaces the place named before the colon.
EXAMPLES: dict[str, dict[str, str]] = {
    "compiler": {"angle": 'angle="radian" autolimits="false"', "settotalmass": 'settotalmass="9"', "eulerseq": 'eulerseq="zyx"',
                 "boundmass": 'boundmass="20"', "boundinertia": 'boundinertia="5"',
                 "fusestatic": 'fusestatic="true"', "usethread": 'usethread="false"', "meshdir": 'meshdir="x"'},
    "option": {"gravity": 'gravity="1 2 -3"', "density": 'density="1.2"', "viscosity": 'viscosity="0.1"', "wind": 'wind="1 0 0"',
               "magnetic": 'magnetic="1 0 0"', "timestep": 'timestep="0.004"', "integrator": 'integrator="RK4"', "cone": 'cone="elliptic"',
               "jacobian": 'jacobian="dense"', "solver": 'solver="PGS"', "iterations": 'iterations="3"', "tolerance": 'tolerance="1e-3"',
               "impratio": 'impratio="10"', "o_margin": 'o_margin="1"', "actuatorgroupdisable": 'actuatorgroupdisable="0"'},
    "option/flag": {"gravity": 'gravity="disable"', "spring": 'spring="disable"', "damper": 'damper="disable"', "actuation": 'actuation="disable"',
                    "energy": 'energy="enable"', "eulerdamp": 'eulerdamp="disable"', "sleep": 'sleep="enable"', "warmstart": 'warmstart="disable"',
                    "filterparent": 'filterparent="disable"', "constraint": 'constraint="disable"', "sensor": 'sensor="disable"',
                    "midphase": 'midphase="disable"', "autoreset": 'autoreset="disable"', "fwdinv": 'fwdinv="enable"', "island": 'island="disable"'},
    "body": {"pos": 'pos="1 2 3"', "quat": 'quat="1 .2 .3 .4"', "axisangle": 'axisangle="1 2 3 40"', "euler": 'euler="10 20 30"',
             "xyaxes": 'xyaxes="1 .5 0 0 1 .2"', "zaxis": 'zaxis="1 2 3"', "gravcomp": 'gravcomp="1"', "sleep": 'sleep="never"',
             "user": 'user="1"', "childclass": 'childclass="main"'},
    "body/joint": {"type": 'type="slide"', "axis": 'axis="1 2 3"', "pos": 'pos=".1 .2 .3"', "ref": 'ref="20"', "stiffness": 'stiffness="7"',
                   "springref": 'springref="30"', "damping": 'damping="2"', "armature": 'armature="0.3"', "springdamper": 'springdamper="0.3 0.7"',
                   "frictionloss": 'frictionloss="0.1"', "limited": LIMITED, "range": LIMITED, "springyield": 'springyield="2"',
                   "group": 'group="2"', "margin": 'margin="0.1"', "user": 'user="1"', "solreflimit": 'solreflimit="0.1 1"',
                   "solimplimit": 'solimplimit=".8 .9 .1"', "solreffriction": 'solreffriction="0.1 1"', "solimpfriction": 'solimpfriction=".8 .9 .1"',
                   "actuatorfrclimited": 'actuatorfrclimited="true" actuatorfrcrange="-1 1"', "actuatorfrcrange": 'actuatorfrcrange="-1 1"',
                   "actuatorgravcomp": 'actuatorgravcomp="true"'},
    "body/freejoint": {"align": 'align="true"', "group": 'group="1"', "name": 'name="root"'},
    "body/geom": {"type": 'type="ellipsoid"', "size": 'size=".2 .3 .4"', "pos": 'pos="0 .3 0"', "quat": 'quat="1 .2 .3 .4"', "mass": 'mass="9"',
                  "density": 'density="77"', "euler": 'euler="10 20 30"', "fromto": f'geom:type="capsule" size=".1" fromto="0 0 0 .1 .2 .9" {FREE}',
                  "shellinertia": 'shellinertia="true"', "rgba": 'rgba="1 0 0 1"',
                  "gap": 'gap="0.1"',
                  "solref": 'solref="0.1 1"', "solimp": 'solimp=".8 .9 .1"', "solmix": 'solmix="2"', "group": 'group="2"', "user": 'user="1"',
                  "adhesion": "world:" + TWO.format('adhesion="1"'), "surfacevel": "world:" + TWO.format('surfacevel="1 0 0 0 0 0"'),
                  "fluidshape": 'fluidshape="ellipsoid"',
                  "fluidcoef": 'fluidcoef="1 1 1 1 1"', "castshadow": 'castshadow="false"'},
    "actuator/motor": {"gear": 'gear="3"', "ctrlrange": 'ctrlrange="-0.2 0.3"', "ctrllimited": 'ctrllimited="true" ctrlrange="-0.2 0.3"',
                       "group": 'group="3"', "user": 'user="1"', "forcerange": 'forcerange="-1 1"', "forcelimited": 'forcelimited="true" forcerange="-1 1"',
                       "armature": 'armature="0.2"', "damping": 'damping="0.2"', "delay": 'delay="0.01" nsample="3"', "nsample": 'nsample="3" delay="0.01"',
                       "lengthrange": 'lengthrange="0 1"'},
    "actuator/position": {"kp": 'kp="7"', "forcerange": 'kp="7" forcerange="-1 2"', "forcelimited": 'kp="7" forcelimited="true" forcerange="-1 2"', "kv": 'kp="7" kv="2"', "dampratio": 'kp="7" dampratio="0.4"', "timeconst": 'timeconst="0.1"', "gear": 'kp="2" gear="3"'},
    "tendon/fixed": {"stiffness": "bottom:" + FIXED.format('stiffness="3" springlength="0.2"'), "springlength": "bottom:" + FIXED.format('stiffness="3" springlength="0.2"'),
                     "damping": "bottom:" + FIXED.format('damping="0.7"'), "frictionloss": "bottom:" + FIXED.format('frictionloss="0.3"'),
                     "limited": "bottom:" + FIXED.format(LIMITED), "range": "bottom:" + FIXED.format(LIMITED), "armature": "bottom:" + FIXED.format('armature="1"'),
                     "springyield": "bottom:" + FIXED.format('stiffness="1" springyield="3"')},
    "tendon/spatial": {"stiffness": "bottom:" + SPATIAL.format('stiffness="3"'), "damping": "bottom:" + SPATIAL.format('damping="3"'),
                       "frictionloss": "bottom:" + SPATIAL.format('frictionloss="3"'), "limited": "bottom:" + SPATIAL.format(LIMITED)},
    "actuator/cylinder": {"timeconst": 'actuators:<cylinder joint="ja" timeconst="0.3"/>', "area": 'actuators:<cylinder joint="ja" area="2"/>',
                          "diameter": 'actuators:<cylinder joint="ja" diameter="2"/>', "bias": 'actuators:<cylinder joint="ja" bias="0 -2 -1"/>'},
    "actuator/velocity": {"kv": 'kv="4"', "gear": 'gear="3" kv="4"'},
    "actuator/general": {"gainprm": 'gainprm="4"', "biasprm": 'biastype="affine" biasprm="1 -2 -3"', "biastype": 'biastype="affine" biasprm="0 -2 -3"',
                         "gaintype": 'gaintype="affine" gainprm="1 1 0"', "dyntype": 'dyntype="integrator"', "dynprm": 'dyntype="filter" dynprm="2"',
                         "actrange": 'dyntype="integrator" actrange="0 1"', "actdim": 'dyntype="integrator" actdim="1"',
                         "actlimited": 'dyntype="integrator" actlimited="true" actrange="0 1"', "actearly": 'dyntype="integrator" actearly="true"',
                         "jointinparent": "actuator:jointinparent=\"ja\"", "site": 'actuator:site="s"'},
}  # fmt: skip
# Elements as a whole: the verdict stands under "*".
ELEMENTS = {
    "body/inertial": 'inertial:<inertial pos="0 .1 0" mass="3" fullinertia="2 2 2 .1 .2 .3"/>',
    "tendon/fixed": "bottom:" + FIXED.format(""),
    "tendon/spatial": "bottom:" + SPATIAL.format(""),
    "equality/joint": f"bottom:<equality><joint {TWO_SITES}/></equality>",
    "equality/weld": 'bottom:<equality><weld body1="a"/></equality>',
    "equality/connect": 'bottom:<equality><connect body1="a" anchor="0.1 0.2 0.3"/></equality>',
    "equality/tendon": "bottom:" + FIXED.format("") + '<equality><tendon tendon1="t"/></equality>',
    "actuator/intvelocity": 'actuators:<intvelocity joint="ja" kp="1" actrange="-1 1"/>',
    "actuator/pid": 'actuators:<pid joint="ja" kp="1" ki="1"/>',
    "actuator/damper": 'actuators:<damper joint="ja" kv="1" ctrlrange="0 1"/>',
    "actuator/muscle": 'actuators:<muscle joint="ja" lengthrange="0 1"/>',
    "actuator/adhesion": 'actuators:<adhesion body="a" ctrlrange="0 1"/>',
    "sensor/jointpos": 'bottom:<sensor><jointpos joint="ja"/></sensor>',
    "keyframe/key": 'bottom:<keyframe><key name="k"/></keyframe>',
    "custom/numeric": 'bottom:<custom><numeric name="n" data="1"/></custom>',
    "statistic": 'top:<statistic extent="3"/>',
    "size": 'top:<size nuser_body="2"/>',
    "visual/…": 'top:<visual><global fovy="20"/></visual>',
    "body/camera": 'world:<camera pos="0 0 1"/>',
    "body/light": 'world:<light pos="0 0 1"/>',
    "body/site": 'world:<site pos="0 0 1"/>',
    "body/flexcomp/…": 'world:<flexcomp name="x" type="grid" count="3 1 1" spacing=".1 .1 .1" radius=".01" dim="1"><contact contype="0" conaffinity="0"/></flexcomp>',
    "asset/material": 'top:<asset><material name="red" rgba="1 0 0 1"/></asset>',
    "asset/hfield": 'top:<asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>',
}  # fmt: skip


def model_text(element: str, addition: str) -> str:
    kind = element.split("/")[1] if element.startswith("actuator/") and element in PLACES else "motor"
    filled = dict.fromkeys(re.findall(r"{(\w+)}", MODEL), "") | BASE | {"kind": kind}
    if 'site="o"' in addition:
        filled["world"] = '<site name="o" pos="0 0 2"/>'
    place, colon, content = addition.partition(":")
    if colon and place in filled:
        filled[place] = content
    else:
        given = dict(re.findall(r'(\w+)="([^"]*)"', filled[PLACES[element]]))
        given |= dict(re.findall(r'(\w+)="([^"]*)"', addition))
        filled[PLACES[element]] = " ".join(f'{name}="{value}"' for name, value in given.items())
    return MODEL.format(**filled)


def motion(source: str) -> tuple[mujoco.MjModel, np.ndarray, list[np.ndarray]]:
    """MuJoCo's accelerations in three states, and what they belong to: position, velocity, control."""
    spec = mujoco.MjSpec.from_string(source)
    spec.compiler.fusestatic = False
    model = spec.compile()
    rng, data, result, inputs = np.random.default_rng(0), mujoco.MjData(model), [], []
    for _ in range(3):
        q = model.qpos0.copy()
        mujoco.mj_integratePos(model, q, rng.normal(size=model.nv), 1.0)
        data.qpos[:], data.qvel[:] = q, rng.normal(size=model.nv)
        data.ctrl[:] = rng.uniform(-1.5, 1.5, size=model.nu)
        inputs.append((q, data.qvel.copy(), data.ctrl.copy()))
        mujoco.mj_forward(model, data)
        result.append(np.concatenate([data.qacc, data.xpos.ravel()]))
    return model, np.array(result), inputs


def ours(engine: articulated.Articulation, inputs: list) -> np.ndarray:
    q, v, u = (torch.tensor(np.array(column)) for column in zip(*inputs, strict=True))
    # Activations, which are zero here, are speeds of wheels behind all else.
    wheels = torch.zeros(len(q), engine.nq - q.shape[1], dtype=q.dtype)
    moving, bodies = v.shape[1], len(engine.body_names) - wheels.shape[1]
    q, v = torch.cat([q, wheels], 1), torch.cat([v, wheels], 1)
    control = u if engine.nu == u.shape[1] else None
    state = State(q, v)
    controls = None if control is None else control.unsqueeze(1)
    # What rows of the contact problem do, as dry friction, is part of a step alone.
    stepped = (engine.rollout(state, 1, controls).final.v - v) / SHORT
    rows = engine.properties.transmission_rest_position.numel() or bool(engine.properties.friction_loss.any())
    acceleration = (stepped if rows else engine.acceleration(state, control))[:, :moving].numpy()
    positions = engine.poses(State(q, v))[:, :bodies, :3, 3].reshape(len(q), -1).numpy()
    return np.concatenate([acceleration, np.zeros((len(q), 3)), positions], 1)  # the world's own place comes first


# They decide on names, on looks, on what is refused, or on impulses; or put into other words what the model says already.
WITHOUT_OWN_EFFECT = (
    "filterparent",
    "constraint",
    "limited",
    "range",
    "name",
    "rgba",
    "jointinparent",
    "usethread",
    "fusestatic",
    "meshdir",
)

CASES = [(element, attribute, example) for element, row in EXAMPLES.items() for attribute, example in row.items()]
CASES = [case for case in CASES if IS_4 or case[1] not in ADDED_IN_4]
CASES += [(element, "*", example) for element, example in ELEMENTS.items()]


@pytest.mark.parametrize(("element", "attribute", "example"), CASES, ids=[f"{e} {a}" for e, a, _ in CASES])
def test_each_line_of_the_table(element, attribute, example):
    result = verdict(
        table(), element if "…" in element or element in table() else f"{element.split('/')[0]}/…", attribute
    )
    source = model_text(element, example)
    if result.startswith("rejected"):
        kind = result.split()[1]
        with pytest.raises(UnsupportedError, match=f"{kind}: ") as caught:
            articulated.load(source)
        assert f"ignore=({kind!r},)" in str(caught.value)
        assert articulated.load(source, ignore=(kind,)).nv
        return
    engine = articulated.load(source, dt=SHORT)
    _, expected, inputs = motion(source)
    if not element.startswith("equality"):  # soft in MuJoCo
        rows = engine.properties.transmission_rest_position.numel() or bool(engine.properties.friction_loss.any())
        # A short step tells accelerations to its length times what they change in a second.
        exact = (1e-6 if rows else 1e-8) * np.abs(expected).max()
        np.testing.assert_allclose(ours(engine, inputs), expected, atol=exact)
    kind = element if element in PLACES else "actuator/motor"
    plain = motion(model_text(kind, {"actuator": 'user="0"', "option": 'cone="pyramidal"'}.get(PLACES[kind], "")))[1]
    if result == "harmless":
        assert np.array_equal(expected, plain), "this changes MuJoCo's motion"
    elif result == "supported" and attribute not in WITHOUT_OWN_EFFECT:
        assert not np.array_equal(expected, plain), "the example shows nothing"


# Everything overlaps; what MuJoCo finds to touch, and how, is what the engine has.
CROWD = """<mujoco><option {option}><flag {flag}/></option><worldbody><geom name="floor" type="plane" size="9 9 1" {floor}/>
  <body name="a"><freejoint/><geom name="ga" size="0.2" {a}/></body>
  <body name="b"><freejoint/><geom name="gb" type="box" size="0.1 0.2 0.3" {b}/>
    <body name="c"><joint/><geom name="gc" type="capsule" size="0.1 0.2" friction="0.4"/>
      <body name="d"><joint/><geom name="gd" size="0.1"/></body></body></body>
</worldbody>{bottom}</mujoco>"""
CONTACTS = {
    "plain": {}, "contype": {"a": 'contype="2"'}, "conaffinity": {"a": 'contype="2" conaffinity="2"', "b": 'contype="4" conaffinity="6"'},
    "condim": {"a": 'condim="1"', "b": 'condim="1"'}, "friction": {"a": 'friction="2"', "b": 'friction="0.3"'},
    "priority": {"a": 'friction="0.1" priority="2" condim="1"'}, "margin": {"a": 'margin="0.1"', "floor": 'margin="0.03" gap="0.01"'},
    "exclude": {"bottom": '<contact><exclude body1="a" body2="c"/></contact>'},
    "pair": {"bottom": '<contact><pair geom1="gb" geom2="gc" condim="3" friction="0.6 0.6 0.1" margin="0.2"/></contact>'},
    "filterparent": {"flag": 'filterparent="disable"'},
    "override": {"flag": 'override="enable"', "option": 'o_margin="0.07" o_friction="0.9 0.9 0.1 0.1 0.1"'},
}  # fmt: skip


# In two of them a box may touch a box, for which kernels are compiled on demand.
@pytest.mark.parametrize(
    "attribute",
    [
        pytest.param(entry, marks=pytest.mark.extended if entry in ("pair", "filterparent") else ())
        for entry in CONTACTS
    ],
)
def test_what_touches_is_what_mujoco_lets_touch(attribute):
    source = CROWD.format(**dict.fromkeys(re.findall(r"{(\w+)}", CROWD), "") | CONTACTS[attribute])
    model = mujoco.MjModel.from_xml_string(source)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    expected = {
        frozenset(model.geom(geom).name for geom in contact.geom): 0.0 if contact.dim == 1 else contact.friction[0]
        for contact in data.contact
    }
    engine = articulated.load(source)
    listed = engine.contacts(engine.initial_state(1, torch.float64), max_separation=0.0)
    results = {
        frozenset(engine.geometry[row].name for row in (first, second)): friction
        for first, second, friction in zip(
            listed.first[0].tolist(), listed.second[0].tolist(), listed.friction[0].tolist(), strict=True
        )
    }
    assert results == pytest.approx(expected)


def test_a_margin_is_where_shapes_touch():
    """MuJoCo's margins add up."""
    source = CROWD.format(**dict.fromkeys(re.findall(r"{(\w+)}", CROWD), "") | CONTACTS["margin"])
    engine = articulated.load(source)
    q = engine.initial_state(1, torch.float64).q
    q[0, 2], q[0, 9] = 0.5, 9.0
    listed = engine.contacts(State(q, torch.zeros(1, engine.nv, dtype=torch.float64)), max_separation=1.0)
    names = [engine.geometry[row].name for row in listed.first[0].tolist()]
    assert float(listed.separation[0, names.index("ga")]) == pytest.approx(0.5 - 0.2 - 0.1 - 0.03)
