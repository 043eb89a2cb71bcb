/// One request of the compiler to expand an attached macro.
struct ExpansionRequest {
    /// The type named in `#externalMacro(module:type:)`.
    let macro: String
    /// What the macro is asked to add: `accessor`, `peer`, `member` and so on.
    let role: String
    /// The declaration that the attribute stands on, from the white space before it to its end.
    let declaration: String
    /// Where `declaration` begins.
    let location: SourceLocation
    /// The declarations around it without their members, innermost first.
    let surroundings: [String]

    /// Reads the body of an `expandAttachedMacro` message; `nil` when a part that every expansion needs is missing.
    init?(_ message: JSON) {
        guard let macro = message["macro"]?["typeName"]?.string,
            let role = message["macroRole"]?.string,
            let declaration = message["declSyntax"]?["source"]?.string
        else { return nil }
        self.macro = macro
        self.role = role
        self.declaration = declaration
        self.location = SourceLocation(message["declSyntax"]?["location"])
        self.surroundings = (message["lexicalContext"]?.elements ?? []).compactMap { $0["source"]?.string }
    }
}

/// A place in one of the client's source files, in UTF-8 bytes from its beginning.
struct SourceLocation {
    let file: String
    let offset: Int

    /// Reads the `location` of a syntax node; a missing one is the beginning of no file.
    init(_ json: JSON?) {
        file = json?["fileName"]?.string ?? ""
        offset = json?["offset"]?.integer ?? 0
    }
}

/// What a macro answers: source text, or what is wrong with the declaration.
struct Expansion: Equatable {
    var source: String?
    var diagnostics: [Diagnostic] = []
}
