"""Publishing models on the Hub, with this package as their code or with their code in the repository."""
