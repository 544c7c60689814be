"""Tuning numbers of the articulated engine: limits, tolerances and cost estimates, in one frozen class."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ArticulatedSettings:
    """Limits, tolerances and cost estimates of the articulated engine.

    Attributes:
        max_events: Largest number of flights and impacts in one step. Raising it lets more impacts happen within a
            step and enlarges the workspace; 64 is above what the scenes in tests/verification reach.
        max_tree_events: Number of flights and impacts in one step for each kinematic tree, where that is more: many
            bodies that land one after the other each end a flight of all.
        restitution_threshold: Approach speed, m/s, below which an impact has no restitution. Raising it brings bouncing
            bodies to rest earlier; 1 cm/s is the speed of a fall from 5 µm.
        max_initial_penetration: Penetration, m, or violation of a joint limit, rad, with which a world may start.
            Raising it lets deeper penetrations be simulated, whose contact features may be wrong; 1 cm.
        max_contacts: Number of contacts of a world that a workspace holds at first. A scene that needs more gets more,
            on a CPU. Raising it enlarges all workspaces quadratically; 48 holds six boxes of eight corners.
        max_contact_memory: Memory, bytes, to which the contacts of a launch may grow. Raising it allows more contacts
            in a world.
        friction_velocity: Speed, rad/s or m/s, below which smoothed dry friction falls to zero. Raising it makes
            friction smoother and lets joints creep faster; it is not used with contact="event".
        min_mobility: Smallest mobility of a compliant contact, 1/kg, MuJoCo's mjMINVAL.
        max_separation_iterations: Largest number of iterations of `resolve_penetration`. Raising it resolves deeper
            stacks of bodies; each iteration moves a body by up to `max_separation_step`.
        min_separation_step: Displacement, m or rad, below which `resolve_penetration` stops; 1 nm.
        max_separation_step: Largest displacement, m or rad, of an iteration. Raising it needs fewer iterations and
            makes contact normals less accurate; 0.1 m is the size of a small body.
        cached_workspaces: Number of batch sizes whose workspaces are reused. Raising it keeps more memory.
        forward_cost: Time per link and step of forward dynamics on one core, µs, measured by
            benchmarks/articulated.py. It decides the number of threads, as do the next two.
        backward_cost: Time per link and step of the adjoint on one core, µs.
        contact_cost_factor: Ratio of the cost of a step with contact to one without.
        actuator_state_inertia: Inertia of the rotor that stores an actuator's state, kg m². It must be negligible
            beside all other inertias; raising it adds energy and momentum to the mechanism.
        marker_radius: Radius of the spheres that mark the ends of a loop joint, m; visual only.
        rod_slenderness: Ratio of a rod's radius to its length in the builders. Raising it gives rods more inertia
            about their own axis, which planar pendulums do not feel.
        cart_inertia: Inertia of the cart of `cartpole` per mass, m²; the cart never rotates.
        min_link_gyration: Radius of gyration, m, of a link of `from_dh` whose frames coincide.
        small_angle_squared: Squared rotation angle, rad², below which quaternion functions use their series.
        prism_sides: Number of sides of the prism that stands for a cylinder among general convex shapes. Raising it
            makes a standing cylinder rounder and its contacts slower.
        face_contacts: Number of contact points between two flat faces beside the closest points.
        hull_tolerance: Relative difference between the vertices of a mesh and MuJoCo's copy of them, and largest
            relative distance of the vertices of a face from its plane.
        max_links: Largest number of links of `cartpole`. Raising it lets a configuration ask for more memory and time.
        max_replicas: Largest number of copies that the `replicate` elements of a model file may make in all.
        max_geom_pairs: Largest number of pairs of shapes that may collide. Raising it allows more memory.
        max_asset_numbers: Largest number of values in a height field, a texture or a soft body of a model file.
        max_model_file: Largest size of a model file, bytes. Raising it allows larger meshes within the XML.
        max_compiler_memory: Address space, bytes, of the process in which MuJoCo compiles model files. Raising it
            allows more and larger meshes.
        max_compiler_seconds: Processor time, s, that MuJoCo may take to compile a model file. Raising it lets larger
            meshes be read.
        max_include_depth: Largest depth of nested `include` elements of a model file.
    """

    max_events: int = 64
    max_tree_events: int = 4
    restitution_threshold: float = 1e-2
    max_initial_penetration: float = 1e-2
    max_contacts: int = 48
    max_contact_memory: float = 4e9
    friction_velocity: float = 1e-2
    min_mobility: float = 1e-15
    max_separation_iterations: int = 200
    min_separation_step: float = 1e-9
    max_separation_step: float = 0.1
    cached_workspaces: int = 8
    forward_cost: float = 0.15
    backward_cost: float = 0.3
    contact_cost_factor: int = 6
    actuator_state_inertia: float = 1e-9
    marker_radius: float = 1e-3
    rod_slenderness: float = 0.05
    cart_inertia: float = 0.01
    min_link_gyration: float = 0.03
    small_angle_squared: float = 1e-6
    prism_sides: int = 8
    face_contacts: int = 4
    hull_tolerance: float = 1e-6
    max_links: int = 10_000
    max_replicas: int = 10_000
    max_geom_pairs: int = 4_000_000
    max_asset_numbers: int = 10_000_000
    max_model_file: int = 100_000_000
    max_compiler_memory: int = 4_000_000_000
    max_compiler_seconds: int = 15
    max_include_depth: int = 20


SETTINGS = ArticulatedSettings()
