"""The transformer experiment: a byte-level transformer trained with AdamW under many schedules."""
