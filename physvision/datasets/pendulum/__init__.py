"""The n-link compound pendulum: MuJoCo's dynamics and MuJoCo's rays."""

from physvision.datasets.pendulum.recipe import PendulumRecipe as PendulumRecipe
