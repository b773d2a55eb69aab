"""The sections of the report, one per module. Each explains its figures before it shows them."""
