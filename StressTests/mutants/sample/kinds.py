"""The kinds of faults, and all that a source permits of each.

A fault leaves the original text where it is, and puts text before and behind it. So faults may lie in each other, and each is switched on
by its number. `@` stands for the number until it is known.
"""

from dataclasses import dataclass

from structure import MODIFIERS

ON = "activeFault(@)"
PRECEDENCE = {
    **dict.fromkeys(["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "&+=", "&-="], 90),
    "?": 100, "||": 110, "&&": 120,
    **dict.fromkeys(["<", "<=", ">", ">=", "==", "!=", "===", "!==", "~="], 130),
    "??": 131, "..<": 135, "...": 135,
    **dict.fromkeys(["+", "-", "&+", "&-", "|", "^"], 140),
    **dict.fromkeys(["*", "/", "%", "&*", "&"], 150),
    **dict.fromkeys(["<<", ">>", "&<<", "&>>"], 160),
}
BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
COMPARISONS = set(BOUNDARY) | {"==", "!=", "===", "!=="}
#: Words that an operand does not reach beyond.
STOPS = set("return throw try await in if guard while where case let var else switch for is as any some inout yield".split())
SORTS = {"sorted", "sort", "min", "max"}
DECLARES = set("let var func init deinit struct class enum protocol extension actor typealias import subscript associatedtype case default".split())
CONTROLS = set("if guard while for switch do repeat defer return throw break continue fallthrough".split())
TRAPS = {"fatalError", "preconditionFailure", "assertionFailure", "assert", "precondition", "withUnsafeTemporaryAllocation"}
RESULTS = {"": "", "Bool": " false", "Int": " 0", "Int64": " 0", "Double": " 0", "String": ' ""'}


@dataclass
class Candidate:
    """`before` and `behind` go around the text from `start` to `end`; with the fault on, that text acts as `faulty` does."""

    kind: str
    line: int
    start: int
    end: int
    before: str
    behind: str
    faulty: str


class Finder:
    def __init__(self, source):
        self.source, self.tokens = source, source.tokens
        self.found = []

    def run(self):
        for index, token in enumerate(self.tokens):
            if self.is_fixed(index):
                continue
            if token.is_binary():
                self.operator(index)
            elif token.kind == "operator" and token.text == "!" and token.is_prefix():
                end = self.operand_end(index)
                if end:
                    self.add("condition negated", index, index, end, f"({ON} != ", ")", self.source.part(index + 1, end))
            elif token.kind in ("number", "string") or token.text in ("true", "false") or token.kind == "open" and len(token.text) > 1:
                self.constant(index)
            elif token.kind == "open" and token.text == "(":
                self.arguments(index)
            elif token.kind == "dot":
                self.member(index)
        for block in self.source.blocks.values():
            if block.kind in ("else",) and self.tokens[block.open - 1].text == "else":
                self.insert("else left out", block.open - 1, block.open, f"if !{ON} ", "the branch is left out")
            if block.kind == "defer":
                self.add(
                    "lock or defer left out", block.open - 1, block.open + 1, block.close - 1, f"if !{ON} {{ ", " }", "(left out)"
                )
            if block.kind in ("type", "file", "accessors"):
                continue
            for statement in block.statements:
                if not statement.is_label:
                    self.statement(statement)
        return self.found

    # Adding

    def add(self, kind, anchor, start, end, before, behind, faulty):
        """A fault around tokens, both included, at the line of its anchor."""
        if start > end:
            return
        first, last = self.tokens[start].start, self.tokens[end].end
        self.found.append(Candidate(kind, self.tokens[anchor].line, first, last, before, behind, " ".join(faulty.split())))

    def insert(self, kind, anchor, at, text, faulty):
        place = self.tokens[at].start
        self.found.append(Candidate(kind, self.tokens[anchor].line, place, place, text, "", faulty))

    def instead(self, kind, anchor, start, end, other):
        """Another expression in place of one."""
        text = self.source.part(start, end)
        if "\n" in text and ("{" in text or "//" in text or "//" in other):
            return
        self.add(kind, anchor, start, end, f"({ON} ? {other} : (", "))", other)

    # What a literal or an expression may stand in

    def is_fixed(self, index):
        """Whether a token is in a pattern, a raw value, an attribute or a condition of availability."""
        statement = self.source.statement_of.get(index)
        if not statement or statement.is_label or statement.lead in ("import", "typealias", "associatedtype"):
            return True
        if statement.block.kind == "type" and statement.lead == "case":
            return True
        at, group = index, self.source.parent[index]
        while group >= 0:
            before = self.tokens[group - 1]
            if self.tokens[group].text == "(" and before.text[:1] in "@#" and before.kind == "word" and before.end == self.tokens[group].start:
                return True
            at, group = group, self.source.parent[group]
        return self.is_pattern(index)

    def is_pattern(self, index):
        """Whether `case` stands before a token in its condition, with no `=` between."""
        at, first = index, self.source.statement_of[index].start
        while at > first:
            at -= 1
            token = self.tokens[at]
            if token.kind == "close":
                at = self.source.match[at]
            elif token.text == "=" and token.is_binary() or token.text in ("{", "in"):
                return False
            elif token.kind == "word" and token.text == "case" and self.tokens[at - 1].kind != "dot":
                return True
            elif token.kind == "comma" and self.source.parent[at] == self.source.parent[first]:
                return False
        return False

    # Operands

    def ends_expression(self, index, parent):
        token = self.tokens[index]
        if token.kind in ("comma", "semicolon", "colon", "directive"):
            return True
        if token.kind == "word" and token.text in STOPS - {"is", "as", "any", "some"} and self.tokens[index - 1].kind != "dot":
            return True
        return token.text in ("->", "=") and token.kind == "operator"

    def left(self, index):
        """The first token of the operand on the left of an operator."""
        own, at, parent = PRECEDENCE[self.tokens[index].text], index, self.source.parent[index]
        statement = self.source.statement_of[index]
        while True:
            before = at - 1
            if before <= parent or before < 0:
                return at
            token = self.tokens[before]
            if token.text == "}" and token.kind == "close" and self.source.blocks.get(self.source.match[before], statement).kind != "closure":
                return at
            if parent == self.source.parent[statement.start] and at == statement.start:
                return at
            if self.starts_block(at, parent):
                return at
            if token.kind == "close":
                at = self.source.match[before]
                continue
            if self.ends_expression(before, parent):
                return at
            if token.is_binary() and PRECEDENCE.get(token.text, 0) < own:
                return at
            if token.is_binary() and token.text == "??" and own == 131:
                return at
            at = before

    def starts_block(self, at, parent):
        """Whether a token is the first of a statement."""
        own = self.source.statement_of.get(at)
        return bool(own and own.start == at) or parent in self.source.blocks and self.source.blocks[parent].first == at

    def right(self, index):
        """The last token of the operand on the right of an operator; `None` if that is no plain expression."""
        own, at, parent = PRECEDENCE[self.tokens[index].text], index, self.source.parent[index]
        limit = self.source.match.get(parent, len(self.tokens))
        while at + 1 < limit:
            token = self.tokens[at + 1]
            if token.kind == "open":
                if token.text == "{" and self.source.blocks[at + 1].kind != "closure":
                    break
                at = self.source.match[at + 1]
                continue
            if self.ends_expression(at + 1, parent) or at > index and self.starts_block(at + 1, parent):
                break
            if token.is_binary():
                other = PRECEDENCE.get(token.text, 0)
                if other < own or other == own and own != 131:
                    break
            at += 1
        return at if at > index else None

    def operand_end(self, index):
        """The last token of what a prefix operator stands before."""
        at = index + 1
        limit = self.source.match.get(self.source.parent[index], len(self.tokens))
        if at >= limit or self.tokens[at].kind not in ("word", "open", "dot"):
            return None
        at = self.source.match[at] if self.tokens[at].kind == "open" else at
        while at + 1 < limit:
            token = self.tokens[at + 1]
            joined = token.start == self.tokens[at].end
            if token.kind == "dot" or joined and (token.kind == "postfix" or token.kind == "word"):
                at += 1
            elif token.kind == "open" and (
                joined and token.text in "([" or token.text == "{" and self.source.blocks[at + 1].kind == "closure" and token.line == self.tokens[at].last_line
            ):
                at = self.source.match[at + 1]
            else:
                break
        return at

    def chain_start(self, index):
        """The first token of the names, calls and subscripts that end before a dot."""
        at, parent = index - 1, self.source.parent[index]
        while at > parent:
            token = self.tokens[at]
            if token.kind == "close":
                at = self.source.match[at]
                if self.tokens[at].text == "{":
                    at -= 1
                    continue
            elif token.kind not in ("word", "postfix", "string", "dot"):
                return None
            if at - 1 <= parent:
                return at
            before = self.tokens[at - 1]
            if before.kind == "dot":
                at -= 1
                if at - 1 <= parent or self.tokens[at - 1].kind not in ("word", "close", "postfix", "string"):
                    return at
                at -= 1
            elif before.end == self.tokens[at].start and before.kind in ("word", "postfix", "close"):
                at -= 1
            else:
                return at if self.tokens[at].kind != "dot" else None
        return None

    # Expressions

    def operator(self, index):
        token = self.tokens[index]
        if token.text == "?" or token.text not in PRECEDENCE:
            if token.text == "?":
                start = self.left(index)
                if start < index:
                    self.add("condition negated", index, start, index - 1, f"({ON} != (", "))", f"!({self.source.part(start, index - 1)})")
            return
        if token.text not in COMPARISONS | {"&&", "||", "??", "+", "-"}:
            return
        if self.source.statement_of[index].lead == "func" and self.tokens[index - 1].text == "func":
            return
        start, end = self.left(index), self.right(index)
        if end is None or start >= index:
            return
        left, right = self.source.part(start, index - 1), self.source.part(index + 1, end)
        whole = f"{left} {token.text} {right}"
        if token.text in ("&&", "||"):
            other = "||" if token.text == "&&" else "&&"
            self.instead("and for or", index, start, end, f"(({left}) {other} ({right}))")
            before = f"({ON} || (" if token.text == "&&" else f"(!{ON} && ("
            self.add("condition dropped", index, start, index - 1, before, "))", right)
            self.add("condition dropped", index, index + 1, end, before, "))", left)
        elif token.text == "??":
            self.instead("default taken", index, start, end, f"({right})")
        elif token.text in ("+", "-"):
            if self.tokens[end].kind == "number" and end == index + 1:
                return
        else:
            if token.text in ("<", ">") and self.is_sort(index):
                self.instead("sort turned", index, start, end, f"({left} {'>' if token.text == '<' else '<'} {right})")
                return
            self.add("comparison turned", index, start, end, f"({ON} != (", "))", f"!({whole})")
            if token.text in BOUNDARY:
                self.instead("boundary moved", index, start, end, f"({left} {BOUNDARY[token.text]} {right})")

    def is_sort(self, index):
        """Whether a comparison is in a closure of a sort."""
        block = self.source.block_around(index)
        if block.kind != "closure":
            return False
        at = block.open
        group = self.source.parent[at]
        names = {self.tokens[at - 1].text, self.tokens[self.source.match[at - 1] - 1].text if self.tokens[at - 1].text == ")" else ""}
        if group >= 0 and self.tokens[group].text == "(":
            names.add(self.tokens[group - 1].text)
        return bool(names & SORTS)

    def constant(self, index):
        token = self.tokens[index]
        if self.tokens[index - 1].kind == "dot" or index + 1 < len(self.tokens) and self.tokens[index + 1].text == ":" and token.kind == "word":
            return
        if token.kind == "number":
            if token.text.startswith(("0x", "0b", "0o")) or "e" in token.text.lower():
                return
            plain = token.text.replace("_", "")
            other = str(float(plain) + 1) if "." in plain else str(int(plain) + 1)
            if self.tokens[index - 1].text == "-" and self.tokens[index - 1].is_prefix():
                return
            self.add("constant replaced", index, index, index, f"({ON} ? {other} : ", ")", other)
        elif token.kind == "word":
            other = "false" if token.text == "true" else "true"
            before = self.tokens[index - 2].text if self.tokens[index - 1].kind == "colon" else ""
            kind = "sort turned" if before == "ascending" else "constant replaced"
            self.add(kind, index, index, index, f"({ON} != ", ")", other)
        else:
            end = self.source.match.get(index, index)
            group = self.source.parent[index]
            call = self.tokens[group - 1].text if group > 0 and self.tokens[group].text == "(" else ""
            if self.source.part(index, end).strip('"#') == "" or token.text.startswith("#") or call in TRAPS:
                return
            # A key of a dictionary or a path is a name, not a text that is shown.
            self.add("constant replaced", index, index, end, f'({ON} ? "" : ', ")", '""')

    def arguments(self, group):
        """Arguments of calls that are names, members or calls."""
        before, statement = self.tokens[group - 1], self.source.statement_of.get(group)
        if before.end != self.tokens[group].start or before.kind not in ("word", "close", "postfix") or before.text[0] in "@#":
            return
        if before.text in TRAPS | {"set", "init", "super"} and self.tokens[group - 2].kind != "dot":
            return
        if statement.lead in ("func", "init", "subscript", "struct", "class", "enum", "extension") and not self.is_inside_body(group, statement):
            return
        at, close = group + 1, self.source.match[group]
        while at < close:
            if self.tokens[at].kind == "word" and self.tokens[at + 1].kind == "colon":
                at += 2
            start = at
            while at < close and self.tokens[at].kind != "comma":
                at = self.source.match[at] + 1 if self.tokens[at].kind == "open" else at + 1
            end = at - 1
            at += 1
            if before.text in MODIFIERS or start > end or self.tokens[start].kind != "word" or not (self.tokens[start].text[0].islower() or self.tokens[start].text[0] == "$"):
                continue
            if self.tokens[start].text in STOPS | {"self", "true", "false", "nil", "super"} and start == end or self.tokens[end].text == "self":
                continue
            text = self.source.part(start, end)
            is_chain = all(
                token.kind in ("word", "dot", "postfix", "open", "close", "comma", "colon") for token in self.tokens[start : end + 1]
            )
            words = STOPS & {token.text for token in self.tokens[start : end + 1]}
            if not is_chain or words or "{" in text or "\n" in text:
                continue
            self.add("argument replaced", start, start, end, f"otherValue(@, ", ")", f"<another value than {text}>")

    def is_inside_body(self, index, statement):
        block = self.source.block_around(index)
        return block.owner is statement and block.kind in ("func", "accessor")

    def member(self, index):
        """Calls of members: sorts, copies and locks."""
        name = self.tokens[index + 1].text
        if name == "withLock":
            at = index + 2
            if self.tokens[at].text == "{":
                place = self.tokens[at - 1].end
                text = f"(unlocked: {ON})"
            elif self.tokens[at].text == "(":
                place, text = self.tokens[at].end, f"unlocked: {ON}, "
            else:
                return
            self.found.append(
                Candidate("lock or defer left out", self.tokens[index].line, place, place, text, "", "withLock without the lock")
            )
            return
        if name not in ("sorted", "copy") or self.tokens[index + 2].text != "(" or self.source.match[index + 2] != index + 3:
            return
        start = self.chain_start(index)
        if start is None:
            return
        left = self.source.part(start, index - 1)
        if name == "copy":
            self.instead("copy not taken", index, start, index + 3, left)
        else:
            self.instead("sort turned", index, start, index + 3, f"{left}.sorted().reversed()")

    # Statements

    def statement(self, statement):
        tokens, lead, block = self.tokens, statement.lead, statement.block
        start, end = statement.start, statement.end
        if lead in ("if", "guard", "while") and tokens[start].text == lead:
            self.conditions(statement)
        if self.source.gives_value(statement):
            return
        self.early_return(statement)
        if lead in ("return", "throw", "continue", "break"):
            is_last_of_if = block.kind == "if" and statement is block.statements[-1] and block.owner.lead == "if"
            is_alone = is_last_of_if and block.owner.end == block.close and not self.source.gives_value(block.owner)
            if is_alone and tokens[end].text != "}":
                name = "early return left out" if lead != "throw" else "statement left out"
                self.wrap(statement, name)
            return
        if lead in DECLARES | CONTROLS or tokens[start].kind not in ("word", "open") or tokens[start].text in ("yield", "@"):
            return
        first = tokens[start + 1].text if tokens[start].text in ("try", "await") else tokens[start].text
        if first in TRAPS and first != "precondition":
            return
        text = self.source.part(start, min(start + 2, end))
        if text in ("super.init", "self.init"):
            return
        parent = self.source.parent[start]
        is_assigned = any(
            tokens[at].is_binary() and PRECEDENCE.get(tokens[at].text) == 90 and self.source.parent[at] == parent
            for at in range(start, end + 1)
        )
        if is_assigned:
            if self.is_first_value(statement):
                return
            self.wrap(statement, "statement left out")
        elif tokens[end].kind == "close" and tokens[end].text in ")}":
            self.wrap(statement, "statement left out")

    def is_first_value(self, statement):
        """Whether an assignment may give a constant its value: that of a property in an initialiser before its call of super."""
        function = self.source.function_around(statement.start)
        return function.kind == "func" and function.owner.lead == "init" and statement.block is function

    def wrap(self, statement, kind):
        self.add(kind, statement.start, statement.start, statement.end, f"if !{ON} {{ ", " }", "(left out)")

    def conditions(self, statement):
        """Each part of the condition of an `if`, `guard` or `while`."""
        tokens, at = self.tokens, statement.start + 1
        parent, parts, start = self.source.parent[statement.start], [], statement.start + 1
        while at <= statement.end:
            token = tokens[at]
            if token.kind == "open":
                if token.text == "{" and self.source.blocks[at].kind != "closure":
                    break
                at = self.source.match[at] + 1
                continue
            if token.text == "else" and token.kind == "word":
                break
            if token.kind == "comma":
                parts.append((start, at - 1))
                start = at + 1
            at += 1
        parts.append((start, at - 1))
        for first, last in parts:
            if first > last or tokens[first].text.startswith("#"):
                continue
            text = self.source.part(first, last)
            if tokens[first].text in ("let", "var", "case"):
                self.insert("condition negated", first, first, f"!{ON}, ", f"{text} does not hold")
                continue
            self.add("condition negated", first, first, last, f"{ON} != (", ")", f"!({text})")
            if len(parts) > 1:
                self.add("condition dropped", first, first, last, f"{ON} || (", ")", "true")

    def early_return(self, statement):
        """A return before a statement that is not the first of its function."""
        function = self.source.function_around(statement.start)
        if statement.block is not function or function.kind == "closure" or statement is function.statements[0]:
            return
        if statement.lead in DECLARES - {"let", "var"} or statement.lead == "return":
            return
        result = self.source.result_type(function)
        if result is None or result == "init":
            return
        if result.endswith("?"):
            value = " nil"
        elif result.startswith("["):
            value = " [:]" if ":" in result else " []"
        elif result in RESULTS:
            value = RESULTS[result]
        else:
            return
        self.insert("early return", statement.start, statement.start, f"if {ON} {{ return{value} }}; ", f"return{value} before it")


def candidates(source):
    return Finder(source).run()
