"""What pytest must not import here: Keras takes its backend when it is imported, and tests use two of them."""

collect_ignore = ["src/eigencurve/adapters/keras.py", "tests/adapters/keras_loops.py"]
