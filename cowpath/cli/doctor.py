"""``cowpath doctor``: is this installation well?"""

from __future__ import annotations

from collections import Counter

import click

from cowpath.cli.output import settings_of, show, with_home, with_json

ILL = 90
"""Exit code where a check failed: the installation is not in the state it should be in."""


@click.command("doctor")
@with_home
@with_json
def doctor(home: str | None, as_json: bool) -> int:
    """Check this installation; send a test event through every path and read it back.

    Exits with 0 where nothing failed, with 90 where something did. The test event never becomes a call.
    """
    from collector.analysts.doctor import examine

    findings = list(examine(settings_of(home)))
    count = Counter(finding.level for finding in findings)
    document = {
        "healthy": not count["fail"],
        "passed": count["pass"],
        "warned": count["warn"],
        "failed": count["fail"],
        "findings": findings,
    }
    show(document, lambda: "\n".join(f"{f.level:4}  {f.check:17} {f.message}" for f in findings), as_json=as_json)
    return ILL if count["fail"] else 0
