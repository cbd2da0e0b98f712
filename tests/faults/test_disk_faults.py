"""The disk under a running service is full, or its file may not be written.

The long form, with the figures: ``python -m benchmarks.faults --fault disk-full --fault read-only``.
"""

from __future__ import annotations

import os

import pytest

from benchmarks.faults_disk import can_drop_privileges, full_disk, read_only_file
from tests.faults.test_database_faults import assert_promises_kept
from tests.small_file_system import CannotMount

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system and drop its privileges"),
]


def test_a_full_disk_refuses_says_so_and_is_over_when_there_is_space() -> None:
    try:
        seen = full_disk(4.0)
    except CannotMount as error:
        pytest.skip(str(error))
    assert_promises_kept(seen)
    assert seen["answers"]["507"] > 0
    assert set(seen["answers"]) <= {"200", "202", "409", "503", "507"}
    assert (seen["ready_while_full"], seen["ready_afterwards"]) == (False, True)
    assert seen["sound"]


@pytest.mark.skipif(not can_drop_privileges(), reason="setpriv cannot take privileges from root here")
def test_a_read_only_file_is_a_503_and_what_is_stored_is_read() -> None:
    seen = read_only_file()
    # The list and the known answer; a new question and a label.
    assert seen["answers"] == {"200": 2, "503": 2}
    assert seen["answers_at_fault"] == []
    assert (seen["ready_while_read_only"], seen["ready_afterwards"]) == (False, True)
    assert seen["sound"]
