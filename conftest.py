"""Files that pytest must not import: Keras chooses its backend at import, and the tests use two backends."""

collect_ignore = ["src/eigencurve/adapters/keras.py", "tests/adapters/keras_loops.py"]
