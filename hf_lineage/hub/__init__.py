"""Models on the Hub."""
