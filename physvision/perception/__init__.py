"""What moves in frames, and how: colour masks, identities over time, optical flow, and what an encoder is given."""
