"""The page's widgets: from the address to what they show, and from them to the settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from eigencurve.report.snippets import TEMPLATES
from eigencurve.schedules.eigencurve import ALLOCATIONS
from eigencurve.spectrum.zoo import ZOO
from eigencurve.studio import texts
from eigencurve.studio.source import ENDINGS, MOST_MEGABYTES, Upload, read_upload
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
    if "kept" not in st.session_state:
        settings, messages = from_params(st.query_params.to_dict())
        st.session_state["kept"] = dict(vars(settings))
        st.session_state["opened_with"] = dict(vars(settings))
        st.session_state["messages"] = messages
    return tuple(st.session_state["messages"])


def unchanged(settings: Settings) -> bool:
    """Whether the page is still as it was opened."""
    return bool(vars(settings) == st.session_state["opened_with"])


def controls() -> tuple[Settings | None, Upload | None]:
    """Draw the widgets; the settings that they say, or None where two of them do not go together."""
    values = dict(st.session_state["kept"])
    for name in ("axis", "framework"):  # their widgets are further down the page
        values[name] = st.session_state[_key(name)]
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
    st.radio("Time axis", AXES, key=_key("axis"), horizontal=True, help=texts.HELP["axis"])


def framework_control() -> None:
    """Whose code to show."""
    names = tuple(TEMPLATES)
    st.radio(
        "Code for",
        names,
        format_func=lambda name: FRAMEWORK_NAMES.get(name, name),
        key=_key("framework"),
        horizontal=True,
    )


def _key(name: str) -> str:
    """The key of a setting's widget. A widget that was not drawn last time begins with the value kept of it."""
    key = f"set_{name}"
    if key not in st.session_state:
        kept = st.session_state["kept"][name]
        st.session_state[key] = list(kept) if isinstance(kept, tuple) else kept
    return key


def _spectrum_controls(values: dict[str, Any]) -> Upload | None:
    values["source"] = st.selectbox(
        "Source", SOURCES, format_func=SOURCE_NAMES.__getitem__, key=_key("source"), help=texts.HELP["source"]
    )
    upload = None
    if values["source"] == "zoo":
        values["zoo"] = st.selectbox("Measured spectrum", tuple(ZOO), key=_key("zoo"), help=texts.HELP["zoo"])
        entry = ZOO[values["zoo"]]
        st.caption(f"{entry.network}; {entry.data}.")
    elif values["source"] == "power_law":
        values["alpha"] = st.slider("Exponent α", -1.0, 4.0, step=0.05, key=_key("alpha"), help=texts.HELP["alpha"])
        values["kappa"] = _places("Condition number κ", "kappa")
    else:
        upload = _upload()
    values["weight_decay"] = _places("Weight decay", "weight_decay")
    return upload


def _upload() -> Upload | None:
    """The file that was sent; one that cannot be used is refused in words."""
    sent = st.file_uploader(
        "Spectrum file", type=list(ENDINGS), key="upload", help=texts.HELP["upload"], max_upload_size=MOST_MEGABYTES
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
        values[name] = st.number_input(label, 1, MOST_STEPS, step=1, key=_key(name), help=texts.HELP[name])
    values["lr"] = st.number_input(
        "Learning rate", 1e-12, 1e6, step=0.01, format="%g", key=_key("lr"), help=texts.HELP["lr"]
    )
    if "set_free" not in st.session_state:
        st.session_state["set_free"] = values["min_lr"] is None
    if st.checkbox("Last learning rate unrestricted", key="set_free", help=texts.HELP["free"]):
        values["min_lr"] = None
        return
    values["min_lr"] = values["min_lr"] or 0.0
    st.session_state["kept"]["min_lr"] = values["min_lr"]
    values["min_lr"] = st.number_input(
        "Last learning rate", 0.0, 1e6, step=0.001, format="%g", key=_key("min_lr"), help=texts.HELP["min_lr"]
    )


def _schedule_controls(values: dict[str, Any]) -> None:
    chosen = st.multiselect(
        "Schedules", KINDS, key=_key("schedules"), format_func=texts.LABELS.__getitem__,
        max_selections=MOST_SCHEDULES, help=texts.HELP["schedules"],
    )  # fmt: skip
    if not chosen:
        st.caption(texts.NO_SCHEDULE)
    values["schedules"] = tuple(chosen) or ("eigencurve",)
    values["beta"] = _places("β of Eigencurve", "beta")
    values["allocation"] = st.radio(
        "Allocation of steps", ALLOCATIONS, key=_key("allocation"), horizontal=True, help=texts.HELP["allocation"]
    )


def _comparison_controls(values: dict[str, Any]) -> None:
    values["noise"] = _places("Gradient noise σ²", "noise")
    values["scale"] = st.radio(
        "Rates on the quadratic", SCALES, format_func=SCALE_NAMES.__getitem__, key=_key("scale"),
        help=texts.HELP["scale"],
    )  # fmt: skip
    values["best"] = st.toggle("Numerically best schedule", key=_key("best"), help=texts.HELP["best"])


def _places(label: str, name: str) -> float:
    """A slider on a logarithmic scale."""
    options = sorted({*PLACES[name], st.session_state["opened_with"][name]})
    return float(st.select_slider(label, options, key=_key(name), format_func=_shown(name), help=texts.HELP[name]))


def _shown(name: str) -> Callable[[float], str]:
    return lambda value: "1 (limit)" if name == "beta" and value == 1 else f"{value:.7g}"
