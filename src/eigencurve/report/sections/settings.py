"""Section with the settings and package versions behind the report."""

from __future__ import annotations

from collections.abc import Mapping

from eigencurve.report.page import Section, table
from eigencurve.runs.origin import Origin


def settings_section(settings: Mapping[str, str], origin: Origin) -> Section:
    """Build the section with settings and versions."""
    versions = {**origin.versions, **({"revision": origin.revision} if origin.revision else {})}
    tables = [
        table(name, columns, [list(pair) for pair in pairs.items()], text_columns=2)
        for name, columns, pairs in (
            ("Settings", ("setting", "value"), settings),
            ("Versions", ("package", "version"), versions),
        )
        if pairs
    ]
    return Section("Settings and versions", tables)
