/// A method with `@ManagedAccessor`, such as `addToPages(_ value: Page)`.
struct AccessorDeclaration: Equatable {
    /// The body of the method: a call of the runtime.
    let call: String
}

extension AccessorDeclaration {
    private struct Parameter {
        let label: String
        let name: String
    }

    /// Reads a method without a body.
    ///
    /// - Throws: The error that keeps the body from being written.
    init(reading source: String) throws(Diagnostic) {
        var cursor = Cursor(source)
        var attribute: AttributeSyntax?
        guard let header = cursor.readHeader(attribute: { if $0.name == "ManagedAccessor" { attribute = $0 } }),
            header.keyword.text == "func", let name = header.name
        else {
            throw Diagnostic("@ManagedAccessor can only stand on a method.", at: Cursor(source).range)
        }
        for modifier in header.modifiers where ["static", "class"].contains(modifier.text) {
            throw Diagnostic("@ManagedAccessor needs a method of each object, not of the class.", at: modifier.range)
        }
        guard !header.isGeneric, let parameters = Self.readParameters(&cursor) else {
            throw Self.unknownMethod(name)
        }
        if let next = cursor.current {
            throw Diagnostic(
                next.text == "{"
                    ? "@ManagedAccessor writes the body itself: remove this block."
                    : "@ManagedAccessor writes methods that return nothing.",
                at: next.range
            )
        }
        let explicit = try attribute?.argumentsStart.flatMap { start throws(Diagnostic) in
            try PropertyDeclaration.modelName(in: cursor, from: start, of: "@ManagedAccessor")
        }
        let call = ToManyAccessor.call(
            name.text,
            labels: parameters.map(\.label),
            names: parameters.map(\.name),
            key: explicit
        )
        guard let call else { throw Self.unknownMethod(name) }
        self.call = call
    }

    /// Reads the parameters; returns `nil` if they are not understood.
    private static func readParameters(_ cursor: inout Cursor) -> [Parameter]? {
        guard cursor.take("(") else { return nil }
        var parameters: [Parameter] = []
        while !cursor.take(")") {
            guard let label = cursor.current, label.kind == .word else { return nil }
            cursor.advance()
            var name = label
            if let second = cursor.current, second.kind == .word {
                name = second
                cursor.advance()
            }
            guard cursor.take(":"), cursor.readType() != nil else { return nil }
            parameters.append(Parameter(label: label.text, name: name.text))
            guard cursor.take(",") || cursor.isAt(")") else { return nil }
        }
        return parameters
    }

    private static func unknownMethod(_ name: Token) -> Diagnostic {
        Diagnostic(
            "@ManagedAccessor writes addToPages(_:), removeFromPages(_:), insertIntoPages(_:at:), removeFromPages(at:) and "
                + "replacePages(at:with:), for a relationship \"pages\"; also addPages(_:), removePages(_:), addPagesObject(_:) and "
                + "removePagesObject(_:).",
            at: name.range
        )
    }
}
