"""Fine-tuning on GLUE-format tasks through accelerate."""
