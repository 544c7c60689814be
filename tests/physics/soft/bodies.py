"""Small bodies that use everything, and a step's energy written anew in torch, from the page's formulas."""

import torch

from physvision.physics import soft

LAWS = ("linear", "st_venant_kirchhoff", "neo_hookean")
METHODS = ("backward_euler", "symplectic_euler")


def everything(axes, law, method):
    """Two materials, a muscle, a pushed and a held node, ground with friction, viscosity and decay."""
    if axes == 2:
        mesh, up = soft.rectangle((0.4, 0.2), (2, 1)), (0.1, 1.0)
    else:
        mesh, up = soft.box((0.3, 0.2, 0.2), (1, 1, 1)), (0.1, 0.0, 1.0)
    load = torch.zeros(len(mesh.nodes), axes)
    load[1] = 2.0
    return soft.SoftBody(
        mesh,
        dt=0.01,
        youngs_modulus=[2e4, 3e4],
        poissons_ratio=[0.3, 0.2],
        density=[1000.0, 800.0],
        viscous_time=[0.01, 0.02],
        materials=[k % 2 for k in range(len(mesh.elements))],
        law=law,
        integrator=method,
        held=(0,),
        pushed=(2,),
        muscles=[soft.Muscle((1, 2), (1.0, *[0.5] * (axes - 1)), 3e3)],
        grounds=[soft.Ground((0.0,) * (axes - 1) + (0.02,), up, 0.4)],
        load=load,
        velocity_decay=0.3,
        slip=0.05,
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
    total = -(p.load * x).sum()
    mass = torch.zeros(len(x), dtype=x.dtype)
    areas = torch.from_numpy(body.mesh.node_areas)
    for e, corners in enumerate(body.mesh.elements.tolist()):
        kind = int(body.indices("material", x.device)[e])
        young, poisson = p.youngs_modulus[kind], p.poissons_ratio[kind]
        mu, lam = young / (2 + 2 * poisson), young * poisson / ((1 + poisson) * (1 - 2 * poisson))

        def matrix(places, corners=corners):
            return torch.stack([places[k] - places[corners[0]] for k in corners[1:]], 1)

        inverse = torch.linalg.inv(matrix(p.rest))
        volume = 1 / (torch.linalg.det(inverse) * (2 if body.axes == 2 else 6))
        for corner in corners:
            mass[corner] += p.density[kind] * volume / len(corners)
        F, F0 = matrix(x) @ inverse, matrix(x0) @ inverse
        unit = torch.eye(body.axes, dtype=x.dtype)

        def strain(F, unit=unit):
            return 0.5 * (F + F.T) - unit if body.law == 0 else 0.5 * (F.T @ F - unit)

        def quadratic(E, mu=mu, lam=lam):
            return mu * (E * E).sum() + lam / 2 * E.trace() ** 2

        J = torch.linalg.det(F)
        cost = quadratic(strain(F))
        if body.law == 2:
            cost = mu / 2 * ((F * F).sum() - body.axes) - mu * torch.log(J) + lam / 2 * torch.log(J) ** 2
        cost = cost + p.viscous_time[kind] / h * quadratic(strain(F) - strain(F0))
        for k, muscle in enumerate(body.muscles):
            if e in muscle.elements:
                fibre = torch.tensor(muscle.direction, dtype=x.dtype)
                cost = cost + control[k] * p.tension[k] / 2 * (F @ (fibre / fibre.norm())).square().sum()
        total = total + volume * cost
    for k, node in enumerate(body.pushed):
        first = len(body.muscles) + k * body.axes
        total = total - (control[first : first + body.axes] * x[node]).sum()
    for k, ground in enumerate(body.grounds):
        n = torch.tensor(ground.normal, dtype=x.dtype)
        n = n / n.norm()
        point = torch.tensor(ground.point, dtype=x.dtype)
        press = p.contact_stiffness * areas
        overlap, before = ((-(places - point) @ n).clamp(min=0) for places in (x, x0))
        w = (x - x0) / h
        w = w - torch.outer(w @ n, n)
        slipping = (w.square().sum(1) + body.slip**2).sqrt()
        total = total + (press * overlap**2 / 2 + p.friction[k] * press * before * h * slipping).sum()
    return total - (mass[:, None] * x * p.gravity).sum(), mass
