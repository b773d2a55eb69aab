"""One self-contained HTML page about a spectrum, its schedule and finished runs."""
