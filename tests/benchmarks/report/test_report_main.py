import sys

import pytest

from benchmarks.report.__main__ import main


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command; return its exit status and what it printed."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["benchmarks.report", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capsys.readouterr()

    return call


def test_without_a_file_markdown_goes_to_stdout(run, write, make_run):
    status, printed = run(write(make_run()))
    assert status == 0
    assert printed.out.startswith("### Scores by model\n")


def test_files_are_written_complete(run, write, make_run, tmp_path):
    page, text = tmp_path / "new" / "report.html", tmp_path / "report.md"
    status, printed = run(write(make_run()), "--output", page, "--markdown", text)
    assert (status, printed.out) == (0, f"Wrote {page}.\nWrote {text}.\n")
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert page.read_text().rstrip().endswith("</html>")
    assert text.read_text().startswith("### Scores by model\n")
    assert [path.name for path in page.parent.iterdir()] == ["report.html"]


def test_errors_are_one_line_and_write_nothing(run, tmp_path):
    status, printed = run(tmp_path, "--output", tmp_path / "report.html")
    assert status == 2
    assert printed.err.startswith("benchmarks.report: No results of benchmarks.glue")
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "report.html").exists()


def test_a_missing_library_is_named_before_anything_is_read(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "benchmarks.report.page", None)
    status, printed = run(tmp_path, "--output", tmp_path / "report.html")
    assert status == 2
    assert "pip install '.[report]'" in printed.err
