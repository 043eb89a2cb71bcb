"""Splits Swift into tokens: names, numbers, strings, operators and brackets, each with its place in the text.

Comments are left out. A string with interpolations is a group of its own: the text up to `\\(` opens it, the text between two
interpolations separates them like a comma, and the rest closes it. So what is interpolated is code like any other.
"""

import re

OPERATOR = set("/=-+!*%<>&|^~?")
#: What a postfix operator can follow.
ENDS = set(")]}\"`_?!>")
OPENS, CLOSES = "([{", ")]}"
DIRECTIVES = ("#if", "#elseif", "#else", "#endif", "#sourceLocation")


class Token:
    """A piece of text; `line` counts from 0."""

    __slots__ = ("kind", "text", "start", "end", "line", "last_line", "spaced_before", "spaced_after")

    def __init__(self, kind, text, start, line, last_line):
        self.kind, self.text, self.start, self.end = kind, text, start, start + len(text)
        self.line, self.last_line = line, last_line
        self.spaced_before = self.spaced_after = False

    def __repr__(self):
        return f"{self.kind}:{self.text!r}"

    def is_binary(self):
        """Whether an operator stands between two operands, as its spaces say."""
        return self.kind == "operator" and self.spaced_before and self.spaced_after

    def is_prefix(self):
        return self.kind == "operator" and self.spaced_before and not self.spaced_after


class LexerError(Exception):
    pass


class Lexer:
    def __init__(self, text):
        self.text = text
        self.at = 0
        self.line = 0
        self.tokens = []

    def run(self):
        self.code(closing=None)
        self.note_spaces()
        return self.tokens

    def add(self, kind, end):
        text = self.text[self.at : end]
        lines = text.count("\n")
        self.tokens.append(Token(kind, text, self.at, self.line, self.line + lines))
        self.at, self.line = end, self.line + lines

    def code(self, closing):
        """Reads up to the bracket that closes an interpolation, or to the end."""
        text, depth = self.text, 0
        while self.at < len(text):
            char = text[self.at]
            if char == "\n":
                self.line += 1
                self.at += 1
            elif char.isspace():
                self.at += 1
            elif text.startswith("//", self.at):
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif text.startswith("/*", self.at):
                self.skip_comment()
            elif char == '"' or (char == "#" and self.opens_raw(self.at)):
                self.string()
            elif char in OPENS:
                depth += 1
                self.add("open", self.at + 1)
            elif char in CLOSES:
                if closing and char == ")" and depth == 0:
                    return
                depth -= 1
                self.add("close", self.at + 1)
            elif char == ",":
                self.add("comma", self.at + 1)
            elif char == ";":
                self.add("semicolon", self.at + 1)
            elif char == ":":
                self.add("colon", self.at + 1)
            elif char.isdigit():
                self.number()
            elif char == "`":
                self.add("word", text.index("`", self.at + 1) + 1)
            elif char in "#@$\\" or char == "_" or char.isalpha():
                self.word()
            elif char == ".":
                end = self.at + 1
                if text.startswith("..", self.at):
                    while end < len(text) and (text[end] == "." or text[end] in OPERATOR):
                        end += 1
                self.add("operator" if end > self.at + 1 else "dot", end)
            elif char in OPERATOR:
                self.operator()
            else:
                # A letter that Python does not count as one, such as an emoji.
                self.add("word", self.at + 1)
        if closing:
            raise LexerError("an interpolation does not end")

    def skip_comment(self):
        depth = 0
        while self.at < len(self.text):
            if self.text.startswith("/*", self.at):
                depth += 1
                self.at += 2
            elif self.text.startswith("*/", self.at):
                depth -= 1
                self.at += 2
                if depth == 0:
                    return
            else:
                self.line += self.text[self.at] == "\n"
                self.at += 1
        raise LexerError("a comment does not end")

    def opens_raw(self, at):
        """Whether pounds at a place begin a raw string or a regular expression."""
        while at < len(self.text) and self.text[at] == "#":
            at += 1
        return at < len(self.text) and self.text[at] in '"/'

    def string(self):
        text, pounds = self.text, 0
        while text[self.at + pounds] == "#":
            pounds += 1
        hashes = "#" * pounds
        start = self.at + pounds
        if text[start] == "/":
            self.add("string", text.index("/" + hashes, start + 1) + 1 + pounds)
            return
        # With text behind them on the line, three quotes are a raw string that is or begins with one: #"""#.
        quotes = '"""' if re.compile(r'"""\s*\n').match(text, start) else '"'
        end, escape, is_open = start + len(quotes), "\\" + hashes, False
        while end < len(text):
            if text.startswith(quotes + hashes, end):
                self.add("close" if is_open else "string", end + len(quotes) + pounds)
                return
            if text.startswith(escape + "(", end):
                self.add("comma" if is_open else "open", end + len(escape) + 1)
                is_open = True
                self.code(closing=")")
                end = self.at + 1
            elif text.startswith(escape, end):
                end += len(escape) + 1
            elif text[end] == "\n" and len(quotes) == 1:
                break
            else:
                end += 1
        raise LexerError(f"a string in line {self.line + 1} does not end")

    def number(self):
        text, end = self.text, self.at
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
        is_hex = text.startswith("0x", self.at)
        if text[end : end + 1] == "." and text[end + 1 : end + 2].isdigit() and not self.follows_dot():
            end += 1
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
        if not is_hex and text[end - 1] in "eE" and text[end : end + 1] in ("-", "+"):
            end += 1
            while end < len(text) and text[end].isdigit():
                end += 1
        self.add("word" if self.follows_dot() else "number", end)

    def follows_dot(self):
        return bool(self.tokens) and self.tokens[-1].kind == "dot" and self.tokens[-1].end == self.at

    def word(self):
        text, end = self.text, self.at + 1
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
        if text[self.at : end] in DIRECTIVES and not text[text.rfind("\n", 0, self.at) + 1 : self.at].strip():
            end = text.find("\n", self.at)
            self.add("directive", len(text) if end < 0 else end)
        else:
            self.add("word", end)

    def operator(self):
        text, char = self.text, self.text[self.at]
        is_bound = self.at > 0 and (text[self.at - 1].isalnum() or text[self.at - 1] in ENDS)
        if is_bound and char in "!?>" or is_bound and char == "<" and text[self.at + 1 : self.at + 2] not in ("<", "="):
            self.add("postfix" if char in "!?" else "operator", self.at + 1)
            return
        if char == "/" and self.regular_expression():
            return
        end = self.at
        while end < len(text) and text[end] in OPERATOR and not (end > self.at and text.startswith(("//", "/*"), end)):
            end += 1
        self.add("operator", end)

    def regular_expression(self):
        """Takes `/…/` where an operand is expected; an operator has a space behind it there."""
        before = self.tokens[-1] if self.tokens else None
        if before and not (before.kind in ("open", "comma", "colon") or before.kind == "operator" or before.text == "return"):
            return False
        end = self.at + 1
        if self.text[end : end + 1] in (" ", "\n", ""):
            return False
        while end < len(self.text) and self.text[end] != "\n":
            if self.text[end] == "\\":
                end += 1
            elif self.text[end] == "/":
                self.add("string", end + 1)
                return True
            end += 1
        return False

    def note_spaces(self):
        text = self.text
        for token in self.tokens:
            before = text[token.start - 1] if token.start else " "
            after = text[token.end] if token.end < len(text) else " "
            token.spaced_before = before.isspace() or before in "([{,;:"
            token.spaced_after = after.isspace() or after in ")]},;:"


def tokens(text):
    return Lexer(text).run()
