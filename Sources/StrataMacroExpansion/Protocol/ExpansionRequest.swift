/// A request of the compiler to expand an attached macro.
struct ExpansionRequest {
    /// The type named in `#externalMacro(module:type:)`.
    let macro: String
    /// The kind of code that the macro has to add: `accessor`, `peer`, `member` and so on.
    let role: String
    /// The declaration with the attribute, from the white space before it to its end.
    let declaration: String
    /// The place at which `declaration` begins.
    let location: SourceLocation
    /// The enclosing declarations without their members, innermost first.
    let surroundings: [String]
    /// The type that an extension is to be made of, with the names of the types around it.
    let extendedType: String?
    /// The text of a structure that conforms to those of the macro's protocols which the type does not conform to yet.
    let missingConformances: String?

    /// Reads the body of an `expandAttachedMacro` message; `nil` if a part is missing that every expansion needs.
    init?(_ message: JSON) {
        guard let macro = message["macro"]?["typeName"]?.string,
            let role = message["macroRole"]?.string,
            let declaration = message["declSyntax"]?["source"]?.string
        else { return nil }
        self.macro = macro
        self.role = role
        self.declaration = declaration
        self.location = SourceLocation(message["declSyntax"]?["location"])
        self.extendedType = message["extendedTypeSyntax"]?["source"]?.string
        self.missingConformances = message["conformanceListSyntax"]?["source"]?.string
        self.surroundings = (message["lexicalContext"]?.elements ?? []).compactMap { $0["source"]?.string }
    }
}

/// A place in one of the client's source files, in UTF-8 bytes from its beginning.
struct SourceLocation {
    let file: String
    let offset: Int

    /// Reads the `location` of a syntax node.
    ///
    /// If it is missing, the result is the beginning of a file without a name.
    init(_ json: JSON?) {
        file = json?["fileName"]?.string ?? ""
        offset = json?["offset"]?.integer ?? 0
    }
}

/// The answer of a macro: source text, or the errors of the declaration.
struct Expansion: Equatable {
    var source: String?
    var diagnostics: [Diagnostic] = []
}
