"""Pendulum of textured links, filmed by a tilted, moving camera."""

from physvision.datasets.swing.recipe import SwingRecipe as SwingRecipe
