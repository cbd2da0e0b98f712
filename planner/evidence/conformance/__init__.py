"""The conformance checks: what every back-end must pass, ours and those of third parties.

    python -m planner.evidence.conformance NAME...        a line a check; exit code 1 if one does not hold
    pytest -p planner.evidence.conformance.option --pyargs planner.evidence.conformance --backend NAME

The space and the writer must agree: every plan of the space can be written, reads back equal and is accepted by the
back-end's own validator where that is installed; what the space refuses, it refuses with a cited line.
"""
