"""The page's widgets: from the address to what they show, and from them to the settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from eigencurve.planning.snippets import TEMPLATES
from eigencurve.schedules.eigencurve import ALLOCATIONS
from eigencurve.spectrum.files import SUFFIXES
from eigencurve.spectrum.zoo import ZOO
from eigencurve.studio import texts
from eigencurve.studio.source import MOST_MEGABYTES, Upload, read_upload
from eigencurve.studio.state import AXES, KINDS, MOST_SCHEDULES, MOST_STEPS, SCALES, SOURCES, Settings, from_params

SOURCE_NAMES = {"zoo": "Measured by this project", "power_law": "Power law", "upload": "Your own file"}
SCALE_NAMES = {"best": "each at its best", "theory": "1/L", "given": "as given"}
FRAMEWORK_NAMES = {
    "torch": "PyTorch",
    "lightning": "Lightning",
    "transformers": "Transformers",
    "keras": "Keras",
    "optax": "Optax",
}
# Places of the sliders on a logarithmic scale; a value from the address is put among them.
DIGITS = (1, 2, 5)
PLACES = {
    "weight_decay": (0.0, *(float(f"{digit}e{power}") for power in range(-6, 0) for digit in DIGITS)),
    "kappa": tuple(float(f"{digit}e{power}") for power in range(1, 9) for digit in DIGITS),
    "noise": (0.0, *(float(f"{digit}e{power}") for power in range(-2, 8) for digit in DIGITS)),
    "beta": (1.0, 1.01, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0),
}
# A file that was sent is parsed once and kept for an hour; of the last four.
FILES_KEPT, SECONDS_KEPT = 4, 3600


def opened() -> tuple[str, ...]:
    """Take the settings from the address when the page is opened; returns what was wrong with it."""
    state = st.session_state
    if "kept" not in state:
        settings, messages = from_params(st.query_params.to_dict())
        state["opened_with"], state["messages"] = dict(vars(settings)), messages
        state["kept"], state["first"] = dict(vars(settings)), {}
    return tuple(state["messages"])


def unchanged(settings: Settings) -> bool:
    """Whether the page is still as it was opened."""
    return bool(vars(settings) == st.session_state["opened_with"])


def controls() -> tuple[Settings | None, Upload | None]:
    """Draw the widgets; the settings that they say, or None where two of them do not go together."""
    values = dict(st.session_state["kept"])
    for name in ("axis", "framework"):  # their widgets are further down the page
        values[name] = st.session_state.get(_key(name), values[name])
    st.header("Spectrum", anchor=False)
    upload = _spectrum_controls(values)
    st.header("Training run", anchor=False)
    _run_controls(values)
    st.header("Schedules", anchor=False)
    _schedule_controls(values)
    st.header("Comparison", anchor=False)
    _comparison_controls(values)
    st.session_state["kept"] = values
    try:
        return Settings(**values), upload
    except (TypeError, ValueError) as error:
        st.error(texts.plain(str(error)))
        return None, upload


def axis_control() -> None:
    """Linear or logarithmic time."""
    _radio("Time axis", "axis", AXES, str)


def framework_control() -> None:
    """Whose code to show."""
    _radio("Code for", "framework", tuple(TEMPLATES), lambda name: FRAMEWORK_NAMES.get(name, name))


def _key(name: str) -> str:
    return f"set_{name}"


def _first(name: str) -> Any:
    """What a widget shows when it is drawn, anew or again after others were in its place: the value kept of it.

    It stays the widget's default for as long as that is drawn: a page that is drawn twice at once shows it too.
    """
    first = st.session_state["first"]
    if _key(name) not in st.session_state:
        first[name] = st.session_state["kept"][name]
    return first[name]


def _choice(label: str, name: str, options: tuple[str, ...], shown: Callable[[str], str]) -> str:
    """One of several, from a menu."""
    place = options.index(_first(name))
    return str(st.selectbox(label, options, place, format_func=shown, key=_key(name), help=texts.HELP[name]))


def _radio(label: str, name: str, options: tuple[str, ...], shown: Callable[[str], str], across: bool = True) -> str:
    """One of a few, side by side or one below the other."""
    place = options.index(_first(name))
    chosen = st.radio(
        label, options, place, format_func=shown, key=_key(name), help=texts.HELP.get(name), horizontal=across
    )
    return str(chosen)


def _places(label: str, name: str) -> float:
    """A slider on a logarithmic scale."""
    options = sorted({*PLACES[name], st.session_state["opened_with"][name]})
    chosen = st.select_slider(
        label, options, _first(name), format_func=_place_shown(name), key=_key(name), help=texts.HELP[name]
    )
    return float(chosen)


def _place_shown(name: str) -> Callable[[float], str]:
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
            "Exponent α", -1.0, 4.0, _first("alpha"), step=0.05, key=_key("alpha"), help=texts.HELP["alpha"]
        )
        values["kappa"] = _places("Condition number κ", "kappa")
    else:
        upload = _upload()
    values["weight_decay"] = _places("Weight decay", "weight_decay")
    return upload


def _upload() -> Upload | None:
    """The file that was sent; one that cannot be used is refused in words."""
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


@st.cache_data(max_entries=FILES_KEPT, ttl=SECONDS_KEPT, show_spinner=False)
def _parsed(name: str, content: bytes) -> Upload:
    return read_upload(name, content)


def _run_controls(values: dict[str, Any]) -> None:
    for name, label in (("epochs", "Epochs"), ("steps_per_epoch", "Steps per epoch")):
        values[name] = st.number_input(
            label, 1, MOST_STEPS, _first(name), step=1, key=_key(name), help=texts.HELP[name]
        )  # fmt: skip
    values["lr"] = _rate("Learning rate", "lr", 1e-12, 0.01)
    kept = st.session_state["kept"]
    free = st.checkbox(
        "Last learning rate unrestricted", st.session_state["opened_with"]["min_lr"] is None, key="set_free",
        help=texts.HELP["free"],
    )  # fmt: skip
    if not free:
        kept["min_lr"] = kept["min_lr"] or 0.0
    values["min_lr"] = None if free else _rate("Last learning rate", "min_lr", 0.0, 0.001)


def _rate(label: str, name: str, least: float, step: float) -> float:
    """A learning rate to type in."""
    chosen = st.number_input(
        label, least, 1e6, _first(name), step=step, format="%g", key=_key(name), help=texts.HELP[name]
    )
    return float(chosen)


def _schedule_controls(values: dict[str, Any]) -> None:
    chosen = st.multiselect(
        "Schedules", KINDS, list(_first("schedules")), format_func=texts.LABELS.__getitem__, key=_key("schedules"),
        max_selections=MOST_SCHEDULES, help=texts.HELP["schedules"],
    )  # fmt: skip
    if not chosen:
        st.caption(texts.NO_SCHEDULE)
    values["schedules"] = tuple(chosen) or ("eigencurve",)
    values["beta"] = _places("β of Eigencurve", "beta")
    values["allocation"] = _radio("Allocation of steps", "allocation", ALLOCATIONS, str)


def _comparison_controls(values: dict[str, Any]) -> None:
    values["noise"] = _places("Gradient noise σ²", "noise")
    values["scale"] = _radio("Rates on the quadratic", "scale", SCALES, SCALE_NAMES.__getitem__, across=False)
    values["best"] = st.toggle("Numerically best schedule", _first("best"), key=_key("best"), help=texts.HELP["best"])
