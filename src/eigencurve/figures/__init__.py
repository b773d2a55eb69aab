"""Static figures (matplotlib, ``eigencurve[plot]``) and interactive charts (plotly, ``eigencurve[studio]``)."""
