"""A small suite of GLUE-format tasks that this project generates itself."""
