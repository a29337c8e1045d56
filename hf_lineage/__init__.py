"""The models that led to today's, as transformers classes."""

__version__ = "0.1.0"
