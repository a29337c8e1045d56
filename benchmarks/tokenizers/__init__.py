"""Checks of trained tokenizers on real text, and what training costs."""
