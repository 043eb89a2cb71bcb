// These are the words and brackets of Swift, which all macros read.
@_exported import StrataSwiftSyntax
