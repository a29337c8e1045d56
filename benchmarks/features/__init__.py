"""What the vectors of a frozen biLM are worth to a task, as in section 3 of Peters et al. 2018."""
