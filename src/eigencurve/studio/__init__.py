"""The interactive page. Needs Streamlit and plotly: ``pip install eigencurve[studio]``."""
