/// A structure with `@ManagedComposite`, and its stored properties.
struct StructDeclaration: Equatable {
    let name: String
    let access: String
    let elements: [Element]

    struct Element: Equatable {
        /// The name as it is spelled, with back-ticks if it has them.
        let name: String
        let type: TypeText
        /// The initial value as it is spelled.
        let initialValue: String?

        var bareName: String { name.hasPrefix("`") ? String(name.dropFirst().dropLast()) : name }
    }

    /// Reads a structure.
    ///
    /// - Throws: The error that keeps the structure from being a composite attribute's value.
    init(reading source: String) throws(Diagnostic) {
        var cursor = Cursor(source)
        guard let header = cursor.readHeader(), header.keyword.text == "struct", let name = header.name else {
            throw Diagnostic("@ManagedComposite can only stand on a structure.", at: Cursor(source).range)
        }
        guard !header.isGeneric else {
            throw Diagnostic("@ManagedComposite cannot stand on a generic structure.", at: name.range)
        }
        while let token = cursor.current, token.text != "{" { cursor.skipBalanced() }
        cursor.advance()
        self.name = name.text
        access = header.modifiers.map(\.text).first { ["public", "package"].contains($0) }.map { "\($0) " } ?? ""
        elements = try Self.readElements(&cursor)
        guard !elements.isEmpty else {
            throw Diagnostic("@ManagedComposite needs stored properties: they are the elements.", at: name.range)
        }
    }

    private static func readElements(_ cursor: inout Cursor) throws(Diagnostic) -> [Element] {
        var elements: [Element] = []
        while let token = cursor.current, token.text != "}" {
            guard token.kind == .word || token.text == "@" else {
                cursor.skipBalanced()
                continue
            }
            let start = cursor.index
            guard let header = cursor.readHeader(), ["var", "let"].contains(header.keyword.text) else {
                cursor.move(to: start)
                skipMember(&cursor)
                continue
            }
            let isStatic = header.modifiers.contains { ["static", "lazy"].contains($0.text) }
            guard !isStatic, let name = header.name else {
                skipMember(&cursor)
                continue
            }
            if let element = try readElement(&cursor, name, isConstant: header.keyword.text == "let") {
                elements.append(element)
            }
        }
        return elements
    }

    private static func readElement(
        _ cursor: inout Cursor,
        _ name: Token,
        isConstant: Bool
    ) throws(Diagnostic) -> Element? {
        guard cursor.take(":"), let type = cursor.readType() else {
            throw Diagnostic(
                "@ManagedComposite needs the type of '\(name.text)', as in 'var \(name.text): String'.",
                at: name.range
            )
        }
        if cursor.isAt("{") {
            let isObserved = ["willSet", "didSet"].contains(cursor.following?.text)
            cursor.skipBalanced()
            return isObserved ? Element(name: name.text, type: type, initialValue: nil) : nil
        }
        guard cursor.take("=") else { return Element(name: name.text, type: type, initialValue: nil) }
        guard !isConstant else {
            throw Diagnostic("@ManagedComposite needs 'var': '\(name.text)' is read from the store.", at: name.range)
        }
        let start = cursor.index
        cursor.skipBalanced()
        while let token = cursor.current, !token.startsLine, ![";", "}"].contains(token.text) { cursor.skipBalanced() }
        return Element(name: name.text, type: type, initialValue: cursor.text(from: start, to: cursor.index))
    }

    /// Skips a member that is not a property, up to the end of its line and of all open brackets.
    private static func skipMember(_ cursor: inout Cursor) {
        cursor.skipBalanced()
        while let token = cursor.current, !token.startsLine, token.text != "}" { cursor.skipBalanced() }
    }
}
