"""ELMo (Peters et al. 2018, https://arxiv.org/abs/1802.05365)."""
