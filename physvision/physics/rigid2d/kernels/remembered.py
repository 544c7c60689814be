"""What contacts did in the crowd before: the first guess at what they do in this one.

Contacts are known again by their bodies and features. In both tables those of a pair follow each other, and pairs are
in one order, so that each contact is looked for near the one that was found last.
"""

import warp as wp

from . import scalar
from .data import REMEMBERED, SLIDES, Workspace

# How many contacts are looked at in search of one.
NEAR_BY = wp.constant(12)


@wp.func
def remember_modes(t: Workspace, contacts: wp.int32):
    """Keep the contacts at hand and what they do; what slides backward has a negative mode."""
    t.counts[REMEMBERED] = contacts
    for i in range(contacts):
        t.old_mode[i] = t.mode0[i]
        if t.mode0[i] == SLIDES and t.slide0[i] < scalar(0.0):
            t.old_mode[i] = -t.mode0[i]
        for k in range(5):
            t.old_contact[5 * i + k] = t.contact[5 * i + k]


@wp.func
def recall_modes(t: Workspace, contacts: wp.int32):
    """Let contacts that there were before do, in `mode0` and `slide0`, what they did then."""
    known = t.counts[REMEMBERED]
    at = wp.int32(0)
    for i in range(contacts):
        found = wp.int32(-1)
        looked = wp.int32(0)
        while found < 0 and looked < wp.min(NEAR_BY, known):
            other = (at + looked) % known
            same = wp.int32(1)
            for k in range(5):
                if t.contact[5 * i + k] != t.old_contact[5 * other + k]:
                    same = wp.int32(0)
            if same == 1:
                found = other
            looked += 1
        if found >= 0:
            at = (found + 1) % known
            t.mode0[i] = wp.abs(t.old_mode[found])
            t.slide0[i] = scalar(0.0)
            if t.mode0[i] == SLIDES:
                t.slide0[i] = scalar(wp.sign(t.old_mode[found])) * t.coefficient[i]
