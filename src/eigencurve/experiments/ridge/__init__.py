"""The ridge regression experiment."""
