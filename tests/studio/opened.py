"""The page's script as Streamlit runs it, without a browser."""

from streamlit.testing.v1 import AppTest

from eigencurve.studio.launch import APP

# A spectrum of the zoo without measured noise or start.
UNMEASURED = "resnet18_cifar10"


def opened(script=APP, **params):
    """The page at an address; runs have 500 steps unless it says otherwise."""
    page = AppTest.from_file(str(script), default_timeout=300)
    for name, value in {"total_steps": "500", **params}.items():
        page.query_params[name] = value
    return page.run()


def shown(page):
    """All text of the page, without the escapes of Markdown."""
    parts = (*page.markdown, *page.caption, *page.warning, *page.error, *page.info)
    return "\n".join(part.value for part in parts).replace("\\", "")


def table(page, place=0):
    """The columns of a table; the first one is that of the plan."""
    columns = page.table[place].value.to_dict("list")
    return {name: [cell.replace("\\", "") for cell in cells] for name, cells in columns.items()}
