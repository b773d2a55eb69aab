import io

import numpy as np
import pytest

from paper.forecasts.drawings import curves_figure, file_name, shapes_figure


@pytest.fixture
def outcomes(found):
    return [found.outcomes[place] for place in (2, 5)]


def test_every_run_has_two_panels(outcomes):
    for outcome in outcomes:
        page = curves_figure(outcome)
        assert len(page.axes) == 2 * len(outcome.runs)
        titles = [axes.get_title() for axes in page.axes]
        assert [title for title in titles if title] == [one.name for one in outcome.runs]


def test_the_differences_are_logged_minus_forecast(outcomes):
    one = outcomes[0].runs[0]
    page = curves_figure(outcomes[0])
    below = next(axes for axes in page.axes if axes.get_ylabel() == "minus forecast")
    drawn, forecast = (line.get_ydata() for line in below.lines)
    assert np.allclose(drawn, one.run.losses - one.prediction.loss)
    assert not forecast.any()


def test_the_shapes_are_drawn(found):
    page = shapes_figure(found.improvements[2:3])
    assert [axes.get_title() for axes in page.axes] == ["Llama 124M, peak 0.01"]
    assert len(page.axes[0].lines) == 3
    buffer = io.BytesIO()
    page.savefig(buffer, format="png")
    assert buffer.getvalue().startswith(b"\x89PNG")


def test_file_names(outcomes):
    assert [file_name(outcome) for outcome in outcomes] == [
        "forecast_llama_124m_peak_0.01.png", "forecast_llama_124m_peak_0.005_0.01.png",
    ]  # fmt: skip
