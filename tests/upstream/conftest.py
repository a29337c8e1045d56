import pytest

# these are named like tests, as the modules of transformers that they stand for, and hold none
collect_ignore = ["stand_ins"]

UPSTREAM_MARKERS = (
    "accelerate_tests",
    "flash_attn_test",
    "flash_attn_3_test",
    "flash_attn_4_test",
    "order",
    "slow",
    "torch_compile_test",
)


def pytest_configure(config: pytest.Config) -> None:
    for name in UPSTREAM_MARKERS:
        config.addinivalue_line("markers", f"{name}: set by transformers' own tests")
