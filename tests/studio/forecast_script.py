"""The page about forecasts alone, as a script that Streamlit runs."""

from eigencurve.studio.forecast_page import forecast_page

forecast_page()
