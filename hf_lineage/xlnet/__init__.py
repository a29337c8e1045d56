"""Permutation language models (Yang et al. 2019, https://arxiv.org/abs/1906.08237)."""
