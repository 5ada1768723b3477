"""Engines that turn a composed loss into the curve delta(epsilon): atoms, lattice, contour, grid."""
