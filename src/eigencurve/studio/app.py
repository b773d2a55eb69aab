"""The interactive page. Streamlit runs this file from top to bottom whenever a setting changes."""

from __future__ import annotations

import streamlit as st

from eigencurve.studio import texts
from eigencurve.studio.forecast_page import forecast_page
from eigencurve.studio.spectrum_page import spectrum_page


def main() -> None:
    """Draw the page that the address names."""
    st.set_page_config(page_title="eigencurve studio", page_icon="📉", layout="wide")
    pages = [
        st.Page(spectrum_page, title=texts.SPECTRUM_TITLE, default=True),
        st.Page(forecast_page, title=texts.FORECAST_TITLE, url_path="forecast"),
    ]
    st.navigation(pages, position="top").run()


if __name__ == "__main__":
    main()
