"""For a module that the source distribution lacks: the checks of `torch.export`, inherited by `ModelTesterMixin`."""


class ExportTesterMixin:
    """No checks, as those of transformers are not to be had."""
