"""Every sharing mode from BERT to ALBERT (Lan et al. 2020, https://arxiv.org/abs/1909.11942)."""
