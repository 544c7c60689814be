"""Contact methods and their settings, pairs of shapes that may collide, and their contact features."""

from physvision.physics.articulated.contact.contact_list import (
    ContactList as ContactList,
    select_contacts as select_contacts,
)
from physvision.physics.articulated.contact.features import (
    FeaturePairs as FeaturePairs,
    compile_feature_pairs as compile_feature_pairs,
    supported_pairs as supported_pairs,
)
from physvision.physics.articulated.contact.laws import (
    Compliant as Compliant,
    CompliantConstraints as CompliantConstraints,
    CompliantLaws as CompliantLaws,
    CompliantRow as CompliantRow,
    ConstraintCounts as ConstraintCounts,
    Contact as Contact,
    ContactLaw as ContactLaw,
)
from physvision.physics.articulated.contact.settings import (
    ContactSettings as ContactSettings,
    contact_settings as contact_settings,
)
from physvision.physics.articulated.contact.shape_pairs import (
    ShapePair as ShapePair,
    ShapePairs as ShapePairs,
    default_shape_pairs as default_shape_pairs,
)
