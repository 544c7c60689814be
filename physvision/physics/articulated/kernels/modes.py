"""What a block of the complementarity problem is, and how it may be at a solution."""

import warp as wp

# Laws of blocks.
TOUCHES = wp.constant(0)  # a contact: normal and two tangents
BOUNDED = wp.constant(1)  # one direction, whose impulse lies between bounds
TURNS = wp.constant(2)  # friction against turning about a contact's normal and tangents
TIES = wp.constant(3)  # three rows that always stick

# Modes of contacts.
OPEN = wp.constant(0)
STICKS = wp.constant(1)
SLIDES = wp.constant(2)

# A bounded block sticks, or is at one of its bounds.
AT_LOW = wp.constant(3)
AT_HIGH = wp.constant(4)

# A block that turns is open with its contact; else it neither spins nor rolls (STICKS), spins, rolls, or does both.
SPINS = wp.constant(2)
ROLLS = wp.constant(3)
SPINS_AND_ROLLS = wp.constant(4)
