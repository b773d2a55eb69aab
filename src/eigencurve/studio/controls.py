"""Widgets of the page: they start from the settings in the address and return the current settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from eigencurve.planning.code import FRAMEWORKS
from eigencurve.planning.labels import LABELS
from eigencurve.planning.loss_view import SCALES
from eigencurve.schedules.eigencurve import ALLOCATIONS
from eigencurve.spectrum.files import SUFFIXES
from eigencurve.spectrum.noise import NoiseEstimate
from eigencurve.spectrum.source import ASSUMED_NOISE, zoo_source
from eigencurve.spectrum.start import StartEstimate
from eigencurve.spectrum.zoo import ZOO
from eigencurve.studio import texts
from eigencurve.studio.source import MOST_MEGABYTES, Upload, read_upload
from eigencurve.studio.state import (
    AXES,
    KINDS,
    MOST_MOMENTUM,
    MOST_SCHEDULES,
    MOST_STEPS,
    SOURCES,
    Settings,
    from_params,
)

SOURCE_NAMES = {"zoo": "Measured networks (zoo)", "power_law": "Power law", "upload": "Your own file"}
SCALE_NAMES = {
    "best": "best rate of each schedule",
    "theory": "half the stability limit",
    "given": "your learning rate",
}
MOMENTA = ("0", "0.9", "other")
FRAMEWORK_NAMES = {
    "torch": "PyTorch",
    "lightning": "Lightning",
    "transformers": "Transformers",
    "keras": "Keras",
    "optax": "Optax",
}
# Values on the logarithmic sliders. A value from the address is added to them.
DIGITS = (1, 2, 5)
SLIDER_VALUES = {
    "weight_decay": (0.0, *(float(f"{digit}e{power}") for power in range(-6, 0) for digit in DIGITS)),
    "kappa": tuple(float(f"{digit}e{power}") for power in range(1, 9) for digit in DIGITS),
    "noise": (0.0, *(float(f"{digit}e{power}") for power in range(-6, 8) for digit in DIGITS)),
    "beta": (1.0, 1.01, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0),
}
# Number of parsed uploads to keep, and for how many seconds.
FILES_KEPT, SECONDS_KEPT = 4, 3600


def read_address() -> tuple[str, ...]:
    """Read the settings from the address when the page is first opened; return messages about invalid ones."""
    state = st.session_state
    if "kept" not in state:
        settings, messages = from_params(st.query_params.to_dict())
        state["opened_with"], state["messages"] = dict(vars(settings)), messages
        state["kept"], state["first"] = dict(vars(settings)), {}
    return tuple(state["messages"])


def unchanged(settings: Settings) -> bool:
    """Whether no setting has changed since the page was opened."""
    return bool(vars(settings) == st.session_state["opened_with"])


def controls() -> tuple[Settings | None, Upload | None, DeltaGenerator]:
    """Draw the widgets.

    Returns:
        Their settings, or None if two contradict each other; the upload; and a place for a line about the rate.
    """
    values = dict(st.session_state["kept"])
    for name in ("axis", "framework"):  # these widgets are drawn further down the page
        values[name] = st.session_state.get(_key(name), values[name])
    st.header("Spectrum", anchor=False)
    upload = _spectrum_controls(values)
    st.header("Training run", anchor=False)
    about_rate = _run_controls(values)
    st.header("Schedules", anchor=False)
    _schedule_controls(values)
    st.header("Comparison", anchor=False)
    _comparison_controls(values, upload)
    st.session_state["kept"] = values
    try:
        return Settings(**values), upload, about_rate
    except (TypeError, ValueError) as error:
        st.error(texts.plain(str(error)))
        return None, upload, about_rate


def axis_control() -> None:
    """Draw the choice between a linear and a logarithmic time axis."""
    _radio("Time axis", "axis", AXES, str)


def framework_control() -> None:
    """Draw the choice of a framework for the generated code."""
    _radio("Code for", "framework", FRAMEWORKS, lambda name: FRAMEWORK_NAMES.get(name, name))


def _key(name: str) -> str:
    return f"set_{name}"


def _initial(name: str) -> Any:
    """The value that a widget shows when it first appears, or reappears: the last value kept for it.

    It stays the widget's default for as long as the widget is drawn, so two overlapping runs of the page agree.
    """
    first = st.session_state["first"]
    if _key(name) not in st.session_state:
        first[name] = st.session_state["kept"][name]
    return first[name]


def _choice(label: str, name: str, options: tuple[str, ...], shown: Callable[[str], str]) -> str:
    """A drop-down menu."""
    place = options.index(_initial(name))
    return str(st.selectbox(label, options, place, format_func=shown, key=_key(name), help=texts.HELP[name]))


def _radio(label: str, name: str, options: tuple[str, ...], shown: Callable[[str], str], across: bool = True) -> str:
    """Radio buttons, side by side or stacked."""
    place = options.index(_initial(name))
    chosen = st.radio(
        label, options, place, format_func=shown, key=_key(name), help=texts.HELP.get(name), horizontal=across
    )
    return str(chosen)


def _slider(label: str, name: str, unset: float = 0.0) -> float:
    """A slider on a logarithmic scale. It shows ``unset`` if the setting is None."""
    opened, initial = (unset if value is None else value for value in (_opened_with(name), _initial(name)))
    options = sorted({*SLIDER_VALUES[name], opened, initial})
    chosen = st.select_slider(
        label, options, initial, format_func=_slider_label(name), key=_key(name), help=texts.HELP[name]
    )
    return float(chosen)


def _opened_with(name: str) -> Any:
    """The value of a setting when the page was opened."""
    return st.session_state["opened_with"][name]


def _slider_label(name: str) -> Callable[[float], str]:
    return lambda value: "1 (limit)" if name == "beta" and value == 1 else f"{value:.7g}"


def _spectrum_controls(values: dict[str, Any]) -> Upload | None:
    values["source"] = _choice("Source", "source", SOURCES, SOURCE_NAMES.__getitem__)
    upload = None
    if values["source"] == "zoo":
        values["zoo"] = _choice("Measured spectrum", "zoo", tuple(ZOO), str)
        entry = ZOO[values["zoo"]]
        st.caption(f"{entry.network}; {entry.data}.")
    elif values["source"] == "power_law":
        values["alpha"] = st.slider(
            "Exponent α", -1.0, 4.0, _initial("alpha"), step=0.05, key=_key("alpha"), help=texts.HELP["alpha"]
        )
        values["kappa"] = _slider("Condition number κ", "kappa")
    else:
        upload = _upload()
    values["weight_decay"] = _slider("Weight decay", "weight_decay")
    return upload


def _upload() -> Upload | None:
    """The uploaded spectrum. A file that cannot be used shows an error."""
    sent = st.file_uploader(
        "Spectrum file", type=list(SUFFIXES), key="upload", help=texts.HELP["upload"], max_upload_size=MOST_MEGABYTES
    )
    if sent is None:
        return None
    try:
        return _parsed(sent.name, sent.getvalue())
    except (TypeError, ValueError) as error:
        st.error(texts.plain(str(error)))
        return None


# A resource, not data: the same file stays the same object, which identifies what was measured.
@st.cache_resource(max_entries=FILES_KEPT, ttl=SECONDS_KEPT, show_spinner=False)
def _parsed(name: str, content: bytes) -> Upload:
    return read_upload(name, content)


def _run_controls(values: dict[str, Any]) -> DeltaGenerator:
    """The length and the rates of the run. Returns the place below the peak rate."""
    for name, label in (("epochs", "Epochs"), ("steps_per_epoch", "Steps per epoch")):
        values[name] = st.number_input(
            label, 1, MOST_STEPS, _initial(name), step=1, key=_key(name), help=texts.HELP[name]
        )  # fmt: skip
    values["lr"] = _number("Peak learning rate", "lr", 1e-12, 0.01)
    about_rate = st.empty()
    kept = st.session_state["kept"]
    free = st.checkbox(
        "Keep the default final rate", _opened_with("min_lr") is None, key="set_free",
        help=texts.HELP["free"],
    )  # fmt: skip
    if not free:
        kept["min_lr"] = kept["min_lr"] or 0.0
    values["min_lr"] = None if free else _number("Final learning rate", "min_lr", 0.0, 0.001)
    return about_rate


def _number(label: str, name: str, least: float, step: float, most: float = 1e6) -> float:
    """A number field."""
    chosen = st.number_input(
        label, least, most, _initial(name), step=step, format="%g", key=_key(name), help=texts.HELP[name]
    )
    return float(chosen)


def _schedule_controls(values: dict[str, Any]) -> None:
    chosen = st.multiselect(
        "Schedules", KINDS, list(_initial("schedules")), format_func=LABELS.__getitem__, key=_key("schedules"),
        max_selections=MOST_SCHEDULES, help=texts.HELP["schedules"],
    )  # fmt: skip
    if not chosen:
        st.caption(texts.NO_SCHEDULE)
    values["schedules"] = tuple(chosen) or ("eigencurve",)
    values["beta"] = _slider("β of Eigencurve", "beta")
    values["allocation"] = _radio("Division of steps", "allocation", ALLOCATIONS, str)


def _comparison_controls(values: dict[str, Any], upload: Upload | None) -> None:
    values["noise"] = _noise_control(*_measured(values, upload))
    _momentum_controls(values)
    values["scale"] = _radio("Peak rate on the quadratic", "scale", SCALES, SCALE_NAMES.__getitem__, across=False)
    values["best"] = st.toggle("Search the best schedule", _initial("best"), key=_key("best"), help=texts.HELP["best"])


def _measured(values: dict[str, Any], upload: Upload | None) -> tuple[NoiseEstimate | None, StartEstimate | None]:
    """The noise and the start that were measured with the chosen spectrum."""
    if values["source"] == "zoo":
        subject = zoo_source(values["zoo"])
        return subject.noise, subject.start
    if values["source"] == "upload" and upload is not None:
        return upload.noise, upload.start
    return None, None


def _noise_control(noise: NoiseEstimate | None, start: StartEstimate | None) -> float | None:
    """A slider of the noise; if anything was measured, the slider is an alternative to the measured or assumed noise.

    Returns None for the measured noise, or the assumed one if there is none.
    """
    label = "Gradient noise σ²"
    if noise is None and start is None:
        chosen = _slider(label, "noise", ASSUMED_NOISE)
        return None if chosen == ASSUMED_NOISE else chosen
    own, usual = "your own", "assumed" if noise is None else f"measured ({noise.sigma2:.3g})"
    place = 0 if _opened_with("noise") is None else 1
    if st.radio(label, (usual, own), place, key="set_noise_choice", help=texts.HELP["noise"], horizontal=True) != own:
        return None
    return _slider("Your own σ²", "noise", 1.0 if noise is None else _nearest(SLIDER_VALUES["noise"], noise.sigma2))


def _nearest(options: tuple[float, ...], value: float) -> float:
    return min(options, key=lambda option: abs(option - value))


def _momentum_controls(values: dict[str, Any]) -> None:
    """The momentum: none, 0.9 or any other value; with momentum, also whether it is Nesterov's."""
    before = f"{_opened_with('momentum'):g}"
    place = MOMENTA.index(before) if before in MOMENTA else len(MOMENTA) - 1
    chosen = st.radio(
        "Momentum", MOMENTA, place, key="set_momentum_choice", help=texts.HELP["momentum"], horizontal=True
    )
    momentum = (
        _number("Value of the momentum", "momentum", 0.0, 0.05, MOST_MOMENTUM) if chosen == "other" else float(chosen)
    )
    nesterov = momentum > 0 and st.toggle(
        "Nesterov momentum", _initial("nesterov"), key=_key("nesterov"), help=texts.HELP["nesterov"]
    )
    values["momentum"], values["nesterov"] = momentum, nesterov
