"""Small faults that a test should notice: one changed operator, number or condition of a module."""

from __future__ import annotations

import ast
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

# Next to a whole number the limit moves by one; elsewhere the comparison is reversed, as two floats are rarely equal.
SHIFTED = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
REVERSED = {
    ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in",
    ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
ARITHMETIC = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Pow: "*", ast.Mod: "*",
    ast.MatMult: "*", ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip
EXCHANGED = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "floor": "ceil", "ceil": "floor"}


@dataclass(frozen=True, order=True)
class Mutation:
    """The characters ``start`` to ``stop`` of a module, replaced by ``text``."""

    line: int
    start: int
    stop: int
    text: str

    def applied(self, source: str) -> str:
        """The module with this fault."""
        return source[: self.start] + self.text + source[self.stop :]

    def shown(self, source: str) -> str:
        """The fault in one line."""
        return f"line {self.line}: {source[self.start : self.stop]} → {self.text}"


def sample(source: str, count: int, seed: str) -> list[Mutation]:
    """``count`` faults in random order, the same for the same source and seed; fewer if the module is small."""
    found = mutations(source)
    mixed = hashlib.sha256((seed + source).encode()).digest()
    return random.Random(mixed).sample(found, min(count, len(found)))


def mutations(source: str) -> list[Mutation]:
    """All faults of a module, in order.

    Left out: messages and docstrings, annotations, decorators, and constants in capitals, which are choices.
    """
    tree = ast.parse(source)
    places = _Places(source)
    return sorted({found for node in _code(tree) for found in _faults(node, places)})


class _Places:
    """Character positions of the nodes of a module; the positions of ``ast`` are in bytes of UTF-8."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def at(self, line: int, offset: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:offset].decode())

    def span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def text(self, node: ast.expr) -> str:
        start, stop = self.span(node)
        return self.source[start:stop]


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes whose change alters what the module computes."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params") or isinstance(node, ast.Raise):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_skipped(child):
                yield from _code(child)


def _is_skipped(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr():
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.isupper()
        case ast.If(test=test):
            return "TYPE_CHECKING" in ast.dump(test)
    return False


def _is_whole(*operands: ast.expr) -> bool:
    return any(isinstance(one, ast.Constant) and isinstance(one.value, int) for one in operands)


def _faults(node: ast.AST, places: _Places) -> Iterator[Mutation]:
    match node:
        case ast.Compare(ops=[operator], left=left, comparators=[right]):
            kinds = SHIFTED if type(operator) in SHIFTED and _is_whole(left, right) else REVERSED
            yield _between(node, places, left, kinds[type(operator)], right)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in ARITHMETIC:
            yield _between(node, places, left, ARITHMETIC[type(operator)], right)
        case ast.BoolOp(op=operator, values=[left, *_, right]):
            whole = [places.text(value) for value in node.values]
            yield _whole(node, places, (" or " if isinstance(operator, ast.And) else " and ").join(whole))
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield _whole(node, places, places.text(operand))
        case ast.IfExp(test=test) | ast.If(test=test) | ast.While(test=test):
            yield _whole(test, places, f"not ({places.text(test)})")
        case ast.Constant(value=bool(value)):
            yield _whole(node, places, str(not value))
        case ast.Constant(value=int(value)):
            yield _whole(node, places, f"{value + 1}")
        case ast.Constant(value=float(value)):
            yield _whole(node, places, f"{2 * value if value else 1.0!r}")
        case ast.Call(func=ast.Name(id=name)) if name in EXCHANGED:
            yield _whole(node.func, places, EXCHANGED[name])
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "math") as owner, attr=name)) if name in EXCHANGED:
            yield _whole(node.func, places, f"{owner.id}.{EXCHANGED[name]}")


def _between(node: ast.expr, places: _Places, left: ast.expr, operator: str, right: ast.expr) -> Mutation:
    """The operator between two operands; comments and brackets of the operands stay."""
    start, stop = places.span(left)[1], places.span(right)[0]
    gap = places.source[start:stop]
    before = gap[: len(gap) - len(gap.lstrip(" \n)"))]
    after = gap[len(gap.rstrip(" \n(")) :]
    if "#" in gap:  # a comment between the operands
        return _whole(node, places, f"({places.text(left)}) {operator} ({places.text(right)})")
    return Mutation(node.lineno, start, stop, f"{before or ' '}{operator}{after or ' '}")


def _whole(node: ast.expr, places: _Places, text: str) -> Mutation:
    return Mutation(node.lineno, *places.span(node), text)
