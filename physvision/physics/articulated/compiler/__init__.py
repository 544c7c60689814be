"""Compiler from the description of a mechanism and its properties to the arrays and structs that kernels read."""
