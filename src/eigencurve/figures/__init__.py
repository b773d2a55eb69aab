"""Static figures (matplotlib, ``eigencurve[plot]``) and interactive charts (plotly, ``eigencurve[studio]``)."""

# Endings of the files that a figure can be written to.
FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
