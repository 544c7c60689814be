"""Collision detection: broad phase, closest points of pairs of shapes, contact manifolds, joint limits."""
