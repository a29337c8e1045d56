"""Vectors of the words of a file, from any encoder, in a file that other programs read."""
