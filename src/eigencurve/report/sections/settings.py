"""The part about where everything comes from."""

from __future__ import annotations

from collections.abc import Mapping

from eigencurve.report.page import Section, table
from eigencurve.runs.origin import Origin


def settings_section(settings: Mapping[str, str], origin: Origin) -> Section:
    """What the page was made from, and with."""
    versions = {**origin.versions, **({"revision": origin.revision} if origin.revision else {})}
    tables = [
        table(name, columns, [list(pair) for pair in pairs.items()], text_columns=2)
        for name, columns, pairs in (
            ("Settings", ("setting", "value"), settings),
            ("Versions", ("of", "version"), versions),
        )
        if pairs
    ]
    return Section("Settings and versions", tables)
