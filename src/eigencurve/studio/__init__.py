"""The interactive page. It needs Streamlit and plotly: ``pip install eigencurve[studio]``."""
