"""What the script of the tests of the verdict is told: a plan, None while it is computed, or an error."""

answer = None


def ask():
    if isinstance(answer, Exception):
        raise answer
    return answer
