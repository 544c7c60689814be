"""Small bodies that use everything, and a step's energy written anew in torch, from the page's formulas."""

from dataclasses import fields

import torch

from physvision.physics import soft

LAWS = ("linear", "st_venant_kirchhoff", "neo_hookean")
METHODS = ("backward_euler", "symplectic_euler")


def soft_body(mesh, **options):
    """A body whose material and contact are given one by one beside the other arguments."""
    material = {field.name: options.pop(field.name) for field in fields(soft.Material) if field.name in options}
    contact = {field.name: options.pop(field.name) for field in fields(soft.SoftContact) if field.name in options}
    return soft.SoftBody(mesh, soft.Material(**material), contact=soft.SoftContact(**contact), **options)


def everything(axes, law, method, cloth=False):
    """Two materials, a muscle, a pushed and a held node, ground and solids with friction, viscosity and decay."""
    if axes == 2:
        mesh, up = soft.rectangle((0.4, 0.2), (2, 1)), (0.1, 1.0)
    else:
        mesh = soft.cloth((0.3, 0.2), (2, 1)) if cloth else soft.box((0.3, 0.2, 0.2), (1, 1, 1))
        up = (0.1, 0.0, 1.0)
    ball, box = mesh.nodes[-1] + 0.06, mesh.nodes[1] + 0.01
    box[-1] += 0.055
    load = torch.zeros(len(mesh.nodes), axes)
    load[1] = 2.0
    material = soft.Material(
        [2e4, 3e4],
        poissons_ratio=[0.3, 0.2],
        density=[1000.0, 800.0],
        law=law,
        viscous_time=[0.01, 0.02],
        velocity_decay=0.3,
        regions=[k % 2 for k in range(len(mesh.elements))],
        **({"thickness": 0.02, "bending": 0.7} if cloth else {}),
    )
    contact = soft.SoftContact(
        grounds=[soft.Ground((0.0,) * (axes - 1) + (0.02,), up, 0.4)],
        colliders=[
            soft.Collider(ball.tolist(), 0.06 * axes**0.5 + 0.015, mass=3.0, friction=0.3, actuated=True),
            soft.Collider(box.tolist(), 0.05, [0.08, 0.05, 0.03][3 - axes :], friction=0.2, kinematic=True),
        ],
        slip_speed=0.05,
    )
    return soft.SoftBody(
        mesh,
        material,
        dt=0.01,
        integrator=method,
        kinematic=(0,),
        actuated=(2,),
        muscles=[soft.Muscle((1, 2), (1.0, *[0.5] * (axes - 1)), 3e3)],
        contact=contact,
        load=load,
    )


def moved(body, seed=0, batch=2, size=0.01):
    """States away from rest, and controls of two steps."""
    torch.manual_seed(seed)
    start = body.initial_state(batch, torch.float64)
    q, v = start.q + size * torch.randn_like(start.q), 0.3 * torch.randn_like(start.q)
    controls = torch.rand(batch, 2, body.nu, dtype=torch.float64)
    return q, v, controls


def inner_energy(body, x, x0, control):
    """What elements, muscles, planes, loads and pushes cost, one world, in plain torch."""
    p, h = body.properties, body.dt
    count = len(body.mesh.nodes)
    total = -(p.load * x[:count]).sum()
    mass = torch.zeros(len(x), dtype=x.dtype)
    mass[count:] = p.collider_mass
    areas = torch.from_numpy(body.mesh.node_areas)
    for e, corners in enumerate(body.mesh.elements.tolist()):
        kind = int(body._compiled.indices("material", x.device)[e])
        young, poisson = p.youngs_modulus[kind], p.poissons_ratio[kind]
        mu, lam = young / (2 + 2 * poisson), young * poisson / ((1 + poisson) * (1 - 2 * poisson))
        if body.mesh.cloth:
            lam = young * poisson / (1 - poisson**2)

        def matrix(positions, corners=corners):
            return torch.stack([positions[k] - positions[corners[0]] for k in corners[1:]], 1)

        at_rest = matrix(p.rest)
        if body.mesh.cloth:
            own, at_rest = torch.linalg.qr(at_rest)  # axes of the cloth's own, the first along its first edge
            at_rest = torch.diag(at_rest.diagonal().sign()) @ at_rest
            own = matrix(p.rest) @ torch.linalg.inv(at_rest)
        inverse = torch.linalg.inv(at_rest)
        volume = 1 / (torch.linalg.det(inverse) * (6 if len(corners) == 4 else 2))
        if body.mesh.cloth:
            volume = volume * p.thickness[0]
            bent = (
                p.bending[0] * p.thickness[0] ** 2 / 12 * curved(p.rest, x, corners, own, body.mesh.elements, mu, lam)
            )
            total = total + volume * bent
        for corner in corners:
            mass[corner] += p.density[kind] * volume / len(corners)
        F, F0 = matrix(x) @ inverse, matrix(x0) @ inverse
        unit = torch.eye(F.shape[1], dtype=x.dtype)

        def strain(F, unit=unit):
            return 0.5 * (F + F.T) - unit if body.law == 0 else 0.5 * (F.T @ F - unit)

        def quadratic(E, mu=mu, lam=lam):
            return mu * (E * E).sum() + lam / 2 * E.trace() ** 2

        cost = quadratic(strain(F))
        if body.law == 2:
            J = torch.linalg.det(F)
            cost = mu / 2 * ((F * F).sum() - body.axes) - mu * torch.log(J) + lam / 2 * torch.log(J) ** 2
        cost = cost + p.viscous_time[kind] / h * quadratic(strain(F) - strain(F0))
        for k, muscle in enumerate(body.muscles):
            if e in muscle.elements:
                fibre = torch.tensor(muscle.direction, dtype=x.dtype)
                fibre = own.T @ fibre if body.mesh.cloth else fibre
                cost = cost + control[k] * p.tension[k] / 2 * (F @ (fibre / fibre.norm())).square().sum()
        total = total + volume * cost
    for k, node in enumerate(body.actuated):
        first = len(body.muscles) + k * body.axes
        total = total - (control[first : first + body.axes] * x[node]).sum()
    for k, ground in enumerate(body.grounds):
        n = torch.tensor(ground.normal, dtype=x.dtype)
        n = n / n.norm()
        point = torch.tensor(ground.point, dtype=x.dtype)
        press = p.contact_stiffness * areas
        penetration, before = ((-(positions[:count] - point) @ n).clamp(min=0) for positions in (x, x0))
        w = (x - x0)[:count] / h
        w = w - torch.outer(w @ n, n)
        slipping = (w.square().sum(1) + body.slip_speed**2).sqrt()
        total = total + (press * penetration**2 / 2 + p.friction[k] * press * before * h * slipping).sum()
    for k, solid in enumerate(body.colliders):
        half = torch.tensor(solid.half_size or [0.0] * body.axes, dtype=x.dtype)
        r, r0 = (positions[:count] - positions[count + k] for positions in (x, x0))
        d, d0 = (entry - entry.clamp(min=-half, max=half) for entry in (r, r0))
        penetration, before = ((p.radius[k] - entry.norm(dim=1)).clamp(min=0) for entry in (d, d0))
        n = d0 / d0.norm(dim=1, keepdim=True)
        w = (r - r0) / h
        w = w - (w * n).sum(1, keepdim=True) * n
        press, slipping = p.contact_stiffness * areas, (w.square().sum(1) + body.slip_speed**2).sqrt()
        friction = p.friction[len(body.grounds) + k]
        total = total + (press * penetration**2 / 2 + friction * press * before * h * slipping).sum()
    return total - (mass[:, None] * x * p.gravity).sum(), mass


def curved(rest, x, corners, own, elements, mu, lam):
    """μ |K|² + λ/2 |tr K|² of a triangle: K by the divergence theorem, of slopes in it and in what is unfolded."""
    area = torch.linalg.cross(rest[corners[1]] - rest[corners[0]], rest[corners[2]] - rest[corners[0]]).norm() / 2

    def slope(flat, positions):
        """∂x/∂X, of three corners' places in the triangle's plane."""
        sides = torch.stack([flat[1] - flat[0], flat[2] - flat[0]], 1)
        return torch.stack([positions[1] - positions[0], positions[2] - positions[0]], 1) @ torch.linalg.inv(sides)

    def in_plane(place):
        return (place - rest[corners[0]]) @ own

    K = torch.zeros(3, 2, 2, dtype=x.dtype)
    inside = slope([in_plane(rest[node]) for node in corners], x[corners])
    for node in corners:
        side = [k for k in corners if k != node]
        for entry in elements.tolist():
            if set(side) < set(entry) and node not in entry:
                (far,) = set(entry) - set(side)
                # Turned about the side into the triangle's plane, to where the corner is not.
                line = rest[side[1]] - rest[side[0]]
                axis = line / line.norm()
                up, off = (rest[k] - rest[side[0]] for k in (node, far))
                up, across = up - (up @ axis) * axis, off - (off @ axis) * axis
                n = -up / up.norm()
                turned = rest[side[0]] + (off @ axis) * axis + across.norm() * n
                flat = [in_plane(place) for place in (rest[side[0]], rest[side[1]], turned)]
                jump = (slope(flat, x[[*side, far]]) - inside) / 2  # from the triangle's slope to the mean of both
                K = K + line.norm() / area * jump[:, :, None] * (own.T @ n)
    return mu * K.square().sum() + lam / 2 * K.diagonal(dim1=1, dim2=2).sum(-1).square().sum()
