"""Data sets: exact truth, stored so that anyone can make it again."""
