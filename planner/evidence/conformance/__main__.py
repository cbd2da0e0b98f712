"""``python -m planner.evidence.conformance NAME...``: a line a check; all back-ends without a name."""

from __future__ import annotations

import sys

from planner.evidence.conformance.checks import asked, conformance
from profiles.errors import MeshwrightError


def main(arguments: list[str]) -> int:
    """The exit code: 0 when every check holds, 1 when one does not, else that of the error."""
    try:
        wanted = asked(arguments)
    except MeshwrightError as error:
        print(f"{error.what}; {error.hint}", file=sys.stderr)
        return error.exit_code
    failed = 0
    for each in wanted:
        for outcome in conformance(each):
            print(
                f"{'FAULT' if outcome.faults else 'ok':5}  {outcome.backend}  {outcome.check}: {outcome.promise}",
                flush=True,
            )
            for fault in outcome.faults[:10]:
                print(f"         {fault}")
            failed += bool(outcome.faults)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
