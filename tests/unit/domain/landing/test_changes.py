"""What a diff says about tests: added, changed, deleted, skipped."""

from __future__ import annotations

import pytest

from fleet.domain.landing.changes import FileChange, is_test, read_changes


@pytest.mark.parametrize(
    "path",
    [
        "tests/a.py",
        "pkg/test/x.c",
        "test_a.py",
        "a_test.go",
        "src/a.test.ts",
        "src/a.spec.js",
        "A/FooTest.java",
        "spec/a.rb",
        "web/__tests__/a.js",
    ],
)
def test_a_path_names_a_test(path):
    assert is_test(path)


@pytest.mark.parametrize("path", ["src/latest.py", "contest.py", "src/testing.py", "attest/a.py"])
def test_a_path_names_no_test(path):
    assert not is_test(path)


def patch(path: str, *lines: str) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n" + "\n".join(
        lines
    )


def read(*lines: str, touches=(), path="tests/test_a.py"):
    files = [FileChange(path, "M", len(lines)), FileChange("src/a.py", "A", 5)]
    return read_changes(files, patch(path, *lines), touches)


def test_lines_files_and_tests_are_counted():
    changes = read("+def test_new():", "+    assert 1", touches=("tests",))
    assert (changes.lines, changes.files) == (7, 2)
    assert changes.tests == changes.changed_tests == ("tests/test_a.py",)
    assert changes.outside == ("src/a.py",)
    assert changes.deleted_tests == changes.skipped_tests == ()


def test_a_deleted_file_and_a_deleted_function_are_deleted_tests():
    gone = read_changes([FileChange("tests/test_a.py", "D", 9)], "")
    assert gone.deleted_tests == ("tests/test_a.py",)
    assert gone.tests == ()
    assert read("-def test_old():").deleted_tests == ("tests/test_a.py: test_old",)
    assert read("-  it('adds', () => {").deleted_tests == ("tests/test_a.py: adds",)
    assert read("-func TestOld(t *testing.T) {").deleted_tests == ("tests/test_a.py: TestOld",)


def test_a_test_that_was_moved_or_changed_is_not_deleted():
    assert read("-def test_a(): assert 1", "+def test_a(): assert 2").deleted_tests == ()


@pytest.mark.parametrize(
    "line",
    [
        "@pytest.mark.skip",
        "@pytest.mark.skipif(True)",
        "@unittest.skip('x')",
        "    pytest.skip('later')",
        "it.skip('adds', () => {",
        "xit('adds', () => {",
        "	t.Skip()",
        "#[ignore]",
        "@Disabled",
    ],
)
def test_a_new_skip_is_seen(line):
    assert read(f"+{line}").skipped_tests == ("tests/test_a.py",)
    assert read(f"-{line}", f"+{line}").skipped_tests == ()
    assert read(f"-{line}").skipped_tests == ()


def test_a_line_that_looks_like_a_header_is_a_line():
    changes = read("--- x", "+++ b/src/other.py", "+@pytest.mark.skip")
    assert changes.skipped_tests == ("tests/test_a.py",)


KEY = "AKIA" + "Q" * 16


@pytest.mark.parametrize(
    "line",
    [
        f"id = '{KEY}'",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "token: ghp_" + "a1" * 15,
        'KEY = "sk-' + 'proj-a1b2c3d4e5f6g7h8"',
    ],
)
def test_a_key_that_was_added_is_a_new_secret(line):
    whole = patch("src/a.py", f"+{line}")
    assert read_changes([], "", whole=whole).secrets == ("src/a.py",)


@pytest.mark.parametrize(
    "lines",
    [
        (f"-id = '{KEY}'",),
        (f"-id = '{KEY}'", f"+    id = '{KEY}'"),
        (f" id = '{KEY}'", "+password = read()"),
        ("+password = 'example'", "+url = 'postgres://user:pass@localhost/db'"),
    ],
)
def test_a_key_that_was_there_before_and_a_mere_name_are_none(lines):
    assert read_changes([], "", whole=patch("src/a.py", *lines)).secrets == ()
