"""The structure of a Swift source as far as faults need it: brackets, blocks, statements, and the function around each.

It is no parser of Swift. It knows where statements begin and end, what each pair of braces is, and which lines are compiled on Linux.
"""

import re
from dataclasses import dataclass, field

import lexer

MODIFIERS = set(
    "public package internal private fileprivate open final static class override mutating nonmutating convenience required indirect lazy"
    " weak unowned nonisolated isolated dynamic optional consuming borrowing prefix postfix infix async sending".split()
)
TYPES = set("struct class enum protocol extension actor".split())
ACCESSORS = set("get set willSet didSet _read _modify read modify mutating nonmutating unsafeAddress unsafeMutableAddress".split())
#: Words after which the next braces are their body.
BODIES = set("if else while for switch do repeat defer catch".split())
#: Words that go on with a statement on a new line.
GOES_ON = set("else catch where throws rethrows as is in".split())
#: Words that no statement ends with.
UNFINISHED = set("guard if while for switch in let var case where else try await func is as throw".split())
#: Blocks whose value is what their only statement gives.
GIVES_VALUE = {"closure", "func", "accessor"}


@dataclass
class Block:
    """What is between two braces; `kind` is if, else, guard, while, for, switch, do, repeat, defer, catch, func, accessor, accessors,
    closure, type or file."""

    open: int
    close: int
    kind: str
    owner: "Statement" = None
    statements: list = field(default_factory=list)
    #: The token behind a closure's signature.
    first: int = 0


@dataclass
class Statement:
    """Tokens from `start` to `end`, both included."""

    start: int
    end: int
    lead: str
    block: Block
    #: A label of a switch's case.
    is_label: bool = False


class Source:
    def __init__(self, text):
        self.text = text
        self.tokens = lexer.tokens(text)
        self.match, self.parent = {}, []
        self.pair()
        #: Blocks by the number of their opening brace.
        self.blocks = {}
        self.file = Block(-1, len(self.tokens), "file")
        self.statement_of = {}
        self.block(self.file, None)

    # Brackets

    def pair(self):
        open_ones = []
        for index, token in enumerate(self.tokens):
            if token.kind == "close":
                other = open_ones.pop()
                self.match[index], self.match[other] = other, index
            self.parent.append(open_ones[-1] if open_ones else -1)
            if token.kind == "open":
                open_ones.append(index)

    def part(self, start, end):
        """The text of tokens, both included."""
        return self.text[self.tokens[start].start : self.tokens[end].end]

    # Statements

    def block(self, block, owner):
        block.owner = owner
        if block.open >= 0:
            self.blocks[block.open] = block
        at = block.first = self.signature(block) if block.kind == "closure" else block.open + 1
        if block.kind == "accessors" and not (at < block.close and self.tokens[at].text in ACCESSORS):
            block.kind = "accessor"
        while at < block.close:
            if self.tokens[at].kind in ("semicolon", "directive"):
                at += 1
                continue
            at = self.statement(block, at)

    def signature(self, block):
        """The token after `in`, if a closure has a signature."""
        first = at = block.open + 1
        while at < block.close and at - first < 80:
            token = self.tokens[at]
            if token.text == "in":
                return at + 1
            if token.text in ("for", "=", "{", "if", "let", "var", "return", "guard") or token.kind in ("string", "number", "semicolon"):
                return first
            at = self.match[at] + 1 if token.kind == "open" else at + 1
        return first

    def leading(self, at, end):
        """The word that says what a statement is, without attributes and modifiers."""
        while at < end:
            text = self.tokens[at].text
            following = self.tokens[at + 1].text if at + 1 < end else ""
            if text.startswith("@"):
                at += 1
                if at < end and self.tokens[at].text == "(" and self.tokens[at].start == self.tokens[at - 1].end:
                    at = self.match[at] + 1
            elif text in MODIFIERS and self.tokens[at].kind == "word" and following not in (".", "(", "=", ":", "?", ",") or (
                text in MODIFIERS and following == "(" and at + 2 < end and self.tokens[at + 2].text in ("set", "unsafe", "safe")
            ):
                if text == "class" and following not in MODIFIERS | {"func", "var", "let", "subscript", "init"}:
                    return text
                at += 1
                if self.tokens[at].text == "(":
                    at = self.match[at] + 1
            else:
                return text
        return ""

    def statement(self, block, start):
        """Reads one, with the blocks in it; gives the token behind it."""
        statement = Statement(start, start, self.leading(start, block.close), block)
        block.statements.append(statement)
        is_label = block.kind == "switch" and statement.lead in ("case", "default")
        is_type = statement.lead in TYPES
        has_value, pending, at = False, None, start
        while at < block.close:
            token = self.tokens[at]
            if at > start and (token.kind in ("semicolon", "directive") or self.begins(at, statement)):
                break
            statement.end = at
            self.statement_of[at] = statement
            before = self.tokens[at - 1] if at else None
            if token.kind == "open":
                if token.text == "{":
                    kind = self.kind_of_braces(statement, at, pending, has_value, is_type)
                    if kind != "closure":
                        pending = None
                    self.block(Block(at, self.match[at], kind), statement)
                else:
                    self.closures(at, statement)
                at = statement.end = self.match[at]
            elif token.kind == "word" and not (before and before.kind == "dot"):
                if token.text in BODIES:
                    # An `else` of a guard stays one, and that before an `if` is part of the next condition.
                    pending = "guard" if token.text == "else" and statement.lead == "guard" else token.text
            elif token.text == "=" and token.is_binary():
                has_value = True
            elif is_label and token.kind == "colon":
                statement.is_label = True
                return at + 1
            at += 1
        return max(at, start + 1)

    def begins(self, at, statement):
        """Whether a token on a new line begins another statement."""
        token, before = self.tokens[at], self.tokens[at - 1]
        if token.line == before.last_line:
            return False
        if before.kind in ("comma", "colon", "dot") or before.is_binary() or before.is_prefix() or before.text in ("->", "return"):
            return before.text == "return" and token.line > before.line
        if before.text in UNFINISHED and before.kind == "word" and self.tokens[at - 2].kind != "dot":
            return False
        if token.is_binary() or token.kind in ("dot", "comma", "colon", "postfix") or token.text in ("{", "->") or token.text in GOES_ON:
            return False
        # Attributes and modifiers may be on lines of their own.
        if before.text.startswith("@") or before.text in MODIFIERS and self.tokens[statement.start].text in MODIFIERS:
            return False
        if before.text == ")" and self.tokens[self.match[at - 1] - 1].text.startswith("@") and self.match[at - 1] - 1 == statement.start:
            return False
        return not (token.text == "while" and statement.lead == "repeat" and before.text == "}")

    def kind_of_braces(self, statement, at, pending, has_value, is_type):
        if pending:
            return pending
        if is_type and statement.block.kind in ("type", "file", "func", "closure", "accessor", "if", "else", "for", "do") and not has_value:
            return "type"
        if statement.lead in ("func", "init", "deinit"):
            return "func"
        if statement.block.kind == "accessors" and statement.lead in ACCESSORS | {""}:
            return "accessor"
        if statement.lead in ("var", "subscript", "let"):
            following = self.tokens[at + 1].text
            if not has_value or following in ("willSet", "didSet") and statement.lead == "var":
                return "accessors"
        return "closure"

    def closures(self, start, statement):
        """Finds the closures in parentheses, brackets, and what is interpolated."""
        at = start + 1
        while at < self.match[start]:
            self.statement_of[at] = statement
            if self.tokens[at].kind == "open":
                if self.tokens[at].text == "{":
                    self.block(Block(at, self.match[at], "closure"), statement)
                else:
                    self.closures(at, statement)
                at = self.match[at]
            at += 1

    # Questions

    def block_around(self, index):
        """The innermost block of a token."""
        at = self.parent[index]
        while at >= 0 and at not in self.blocks:
            at = self.parent[at]
        return self.blocks.get(at, self.file)

    def function_around(self, index):
        """The block of the innermost function, accessor or closure."""
        block = self.block_around(index)
        while block.kind not in ("func", "accessor", "closure", "type", "file"):
            block = block.owner.block
        return block

    def result_type(self, function):
        """What a function returns, as text; empty for nothing, and `None` if the source does not say it."""
        if function.kind == "closure":
            return None
        statement = function.owner
        if function.kind == "func":
            tokens = range(statement.start, function.open)
            arrow = [at for at in tokens if self.tokens[at].text == "->" and self.parent[at] == self.parent[statement.start]]
            if not arrow:
                return "" if statement.lead != "init" else "init"
            end = next((at for at in range(arrow[-1], function.open) if self.tokens[at].text == "where"), function.open)
            text = self.part(arrow[-1] + 1, end - 1)
            return "" if text in ("Void", "()") else text
        if statement.block.kind == "accessors":
            if statement.lead not in ("get", "read", "_read", ""):
                return "" if statement.lead in ("set", "willSet", "didSet") else None
            if statement.lead != "get":
                return None
            function = self.blocks[statement.block.open]
            statement = function.owner
        if statement.lead not in ("var", "let"):
            return None
        colon = [at for at in range(statement.start, function.open) if self.tokens[at].kind == "colon"]
        return self.part(colon[0] + 1, function.open - 1) if colon else None

    def gives_value(self, statement):
        """Whether a statement may be what its block gives: as the only one of a function, or of a branch of such a statement."""
        block = statement.block
        if block.kind == "type" or block.kind == "file":
            return False
        if block.kind in GIVES_VALUE:
            is_only = len(block.statements) == 1
            if block.kind != "closure" and self.result_type(block) == "":
                return False
            return is_only
        if block.kind == "switch":
            at = block.statements.index(statement)
            is_only = block.statements[at - 1].is_label and (at + 1 == len(block.statements) or block.statements[at + 1].is_label)
        else:
            is_only = len(block.statements) == 1
        if not is_only or block.kind not in ("if", "else", "switch", "do", "catch"):
            return False
        owner = block.owner
        if owner.lead in ("if", "switch", "do"):
            return self.gives_value(owner)
        # Behind `=` or `return`.
        return True

    # Lines

    def lines_of_code(self):
        """The numbers of lines that hold more than brackets, are no imports, and are compiled on Linux."""
        full = set()
        for index, token in enumerate(self.tokens):
            if token.kind == "directive" or token.kind in ("open", "close", "comma", "semicolon") and len(token.text) == 1:
                continue
            own = self.statement_of.get(index)
            if own and own.lead == "import" or own and self.is_fault_point(own):
                continue
            full.update(range(token.line, token.last_line + 1))
        return sorted(full - self.lines_left_out())

    def is_fault_point(self, statement):
        """Whether a statement is only there in builds with fault points."""
        return bool(re.fullmatch(r"(try )?FaultPoint\.\w+\.(pass|reach)\(\)", self.part(statement.start, statement.end)))

    def lines_left_out(self):
        """The lines that the compiler does not see on Linux, and those of builds for developers."""
        left_out, open_ones = set(), []
        lines = self.text.split("\n")
        directives = {token.line: token.text for token in self.tokens if token.kind == "directive"}
        for number in range(len(lines)):
            text = directives.get(number)
            if text is None:
                if any(not value for _, value in open_ones):
                    left_out.add(number)
                continue
            word, _, condition = text.partition(" ")
            if word == "#if":
                value = holds(condition)
                open_ones.append((value is not False, value))
            elif word == "#elseif":
                was, _ = open_ones.pop()
                value = False if was else holds(condition)
                open_ones.append((was or value is not False, value))
            elif word == "#else":
                was, value = open_ones.pop()
                open_ones.append((True, None if value is None else not was))
            elif word == "#endif":
                open_ones.pop()
        return left_out


FACTS = {
    "canImport(Darwin)": False,
    "canImport(ObjectiveC)": False,
    "canImport(Musl)": False,
    "canImport(Glibc)": True,
    "canImport(CoreDataPostgreSQL)": True,
    "canImport(SwiftDataPostgreSQL)": True,
    "canImport(FoundationEssentials)": True,
    "os(Linux)": True,
    "os(macOS)": False,
    "os(Windows)": False,
    "STRATA_TSAN": False,
}


def holds(condition):
    """Whether a condition of compilation holds on Linux; `None` if builds differ in it."""
    condition = condition.split("//")[0].strip()
    parts = [part.strip() for part in condition.split("||")]
    values = []
    for part in parts:
        turned = part.startswith("!")
        value = FACTS.get(part.lstrip("!").strip())
        values.append(None if value is None else value != turned)
    return True if True in values else None if None in values else False
