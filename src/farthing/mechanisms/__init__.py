"""Mechanisms whose noise can be trusted: exact discrete laws, drawn from the system's randomness only."""
