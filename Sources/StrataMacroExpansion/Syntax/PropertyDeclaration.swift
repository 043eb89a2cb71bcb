/// A property with `@Managed`.
struct PropertyDeclaration: Equatable {
    /// The name as it is spelled, with back-ticks if it has them.
    let name: String
    let type: TypeText
    /// The string literal given to `@Managed`, with its quotes.
    let explicitModelName: String?
    /// The facts about the property in the arguments of `@Managed`.
    let traits: [TraitSyntax]
    /// The bytes of the name.
    let nameRange: Range<Int>?

    func has(_ trait: String) -> Bool { traits.contains { $0.name == trait } }

    /// The name without back-ticks.
    var bareName: String {
        name.hasPrefix("`") ? String(name.dropFirst().dropLast()) : name
    }

    /// The name of the static peer that finds the property's slot.
    var peerName: String {
        let peer = "_managed_" + bareName
        // A raw identifier, such as `opening hours`, keeps its back-ticks.
        let isPlain = bareName.utf8.allSatisfy { $0 >= 0x80 || $0 == UInt8(ascii: "_") || Self.isAlphanumeric($0) }
        return isPlain ? peer : "`\(peer)`"
    }

    /// The property's name in the model, as a string literal.
    var modelName: String { explicitModelName ?? "\"\(bareName)\"" }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: false
        }
    }
}

extension PropertyDeclaration {
    /// Reads a property from its attributes to its end, and leaves the cursor behind it.
    ///
    /// - Throws: The error that keeps the property from being managed.
    init(reading cursor: inout Cursor) throws(Diagnostic) {
        var attribute: AttributeSyntax?
        guard let header = cursor.readHeader(attribute: { if $0.name == "Managed" { attribute = $0 } }) else {
            throw Diagnostic("@Managed does not understand this declaration.", at: cursor.range)
        }
        try Self.check(header, cursor)
        guard let name = header.name, name.text != "_" else {
            throw Diagnostic("@Managed needs a single property with a name, not a pattern.", at: cursor.range)
        }
        type = try Self.readType(&cursor, of: name)
        try Self.checkEnd(&cursor)
        self.name = name.text
        nameRange = name.range
        var arguments = TraitArguments()
        if let start = attribute?.argumentsStart {
            arguments = try TraitArguments(in: cursor, from: start, of: "@Managed")
        }
        explicitModelName = arguments.name
        traits = arguments.traits
        try TraitChecks.check(self)
    }

    private static func check(_ header: DeclarationHeader, _ cursor: Cursor) throws(Diagnostic) {
        guard header.keyword.text != "let" else {
            throw Diagnostic(
                "@Managed needs 'var': the value of a managed property is kept in its object and can change.",
                at: header.keyword.range,
                fixIt: .init(message: "replace 'let' with 'var'", range: header.keyword.range, replacement: "var")
            )
        }
        guard header.keyword.text == "var" else {
            throw Diagnostic("@Managed can only stand on a property.", at: header.keyword.range)
        }
        for modifier in header.modifiers {
            switch modifier.text {
            case "static", "class":
                throw Diagnostic("@Managed needs a property of each object, not of the class.", at: modifier.range)
            case "lazy":
                throw Diagnostic(
                    "@Managed cannot be 'lazy': its value comes from the object's row, which is read when needed.",
                    at: modifier.range
                )
            case "weak", "unowned":
                throw Diagnostic(
                    "@Managed cannot be '\(modifier.text)': the context decides how long a related object lives.",
                    at: modifier.range
                )
            default: break
            }
        }
    }

    private static func readType(_ cursor: inout Cursor, of name: Token) throws(Diagnostic) -> TypeText {
        guard cursor.take(":") else {
            if cursor.isAt(",") { throw severalBindings(cursor) }
            throw Diagnostic(
                "@Managed needs the type of '\(name.text)', as in 'var \(name.text): String?'.",
                at: name.range
            )
        }
        guard !cursor.isAt("some") else {
            throw Diagnostic("@Managed needs a type that is written out, not 'some'.", at: cursor.range)
        }
        guard let type = cursor.readType() else {
            throw Diagnostic("@Managed does not understand the type of '\(name.text)'.", at: cursor.range)
        }
        return type
    }

    /// Checks the text after the type, which must be the next declaration or nothing.
    private static func checkEnd(_ cursor: inout Cursor) throws(Diagnostic) {
        guard let token = cursor.current else { return }
        switch token.text {
        case "=":
            throw Diagnostic(
                "@Managed cannot have an initial value: defaults belong to the model, and values of new objects that "
                    + "the model cannot give belong in awakeFromInsert().",
                at: token.range
            )
        case "{":
            let isObserver = ["willSet", "didSet"].contains(cursor.following?.text)
            throw Diagnostic(
                isObserver
                    ? "@Managed cannot have observers: derive values in willSave(), or in a computed property beside it."
                    : "@Managed writes the accessors itself: remove this block, or @Managed from a computed property.",
                at: token.range
            )
        case ",": throw severalBindings(cursor)
        case ";":
            cursor.advance()
        case "}", "@", "#": break
        default:
            guard token.startsLine, token.kind == .word else {
                throw Diagnostic("@Managed does not understand what follows the type.", at: token.range)
            }
        }
    }

    private static func severalBindings(_ cursor: Cursor) -> Diagnostic {
        Diagnostic("@Managed needs a 'var' of its own for each property.", at: cursor.range)
    }

    /// The literal in `@Managed("name")`; `nil` for `@Managed()`.
    static func modelName(
        in cursor: Cursor,
        from start: Int,
        of macro: String
    ) throws(Diagnostic) -> String? {
        var cursor = cursor
        cursor.move(to: start)
        guard let token = cursor.current, token.text != ")" else { return nil }
        let isPlain =
            token.kind == .string && !token.text.hasPrefix("#") && !token.text.hasPrefix("\"\"")
            && !token.text.contains("\\(") && cursor.following?.text == ")"
        guard isPlain else {
            throw Diagnostic(
                "\(macro) takes the property's name in the model as a plain string literal, as in \(macro)(\"name\").",
                at: token.range
            )
        }
        return token.text
    }
}
