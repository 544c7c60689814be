"""A pendulum on a cart that is swung up from camera frames: scene, renderer, task, network and evaluation."""

from physvision.control.pixels.network import FramePolicy as FramePolicy
from physvision.control.pixels.policy_file import (
    build_policy as build_policy,
    load_policy as load_policy,
    save_policy as save_policy,
)
from physvision.control.pixels.renderer import CartPoleRenderer as CartPoleRenderer, SceneVariation as SceneVariation
from physvision.control.pixels.task import (
    CartPoleTask as CartPoleTask,
    PixelCartPoleTask as PixelCartPoleTask,
    StartDistribution as StartDistribution,
    StateCartPoleTask as StateCartPoleTask,
    is_upright as is_upright,
    upright_angle as upright_angle,
)
from physvision.control.pixels.trials import (
    TrialResults as TrialResults,
    run_trials as run_trials,
    task_for_policy as task_for_policy,
)
