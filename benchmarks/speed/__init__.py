"""Speed of the models, timed in pairs against what people would otherwise use."""
