"""Contact and other constraints: Delassus matrix, solvers, impacts and events, and their adjoints."""
