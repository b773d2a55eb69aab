import ast

from hypothesis import example, given
from hypothesis import strategies as st

from eigencurve.planning.literals import literal


@given(
    st.text(st.characters(exclude_categories=()))
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.none()
    | st.integers()
)
@example("hedgehog 🦔.npz")
@example("family 👨‍👩‍👧.npz")
@example('quotes " and \' and \\ and \\"')
@example("not UTF-8 \udcff")
@example("lines\n\r\u2028\x00")
def test_the_code_is_one_line_that_can_be_printed_and_gives_the_value(value):
    code = literal(value)
    assert ast.literal_eval(code) == value
    assert len(code.splitlines()) == 1
    code.encode()
