"""Tables and plots of what `benchmarks.glue` and `benchmarks.speed` wrote."""
