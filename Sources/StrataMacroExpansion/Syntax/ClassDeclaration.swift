/// A class with `@ManagedObject`, and the `@Managed` properties of its body.
struct ClassDeclaration: Equatable {
    /// The name as it is spelled, with back-ticks if it has them.
    let name: String
    let isOpen: Bool
    /// The first type that the class inherits from.
    let superclass: String
    /// The facts about the entity in the arguments of `@ManagedObject`.
    let traits: TraitArguments
    let members: [Member]

    /// A property, or a line of conditional compilation (`#if`, `#elseif`, `#else`, `#endif`) around properties.
    enum Member: Equatable {
        case property(PropertyDeclaration)
        case condition(String)
    }

    var properties: [PropertyDeclaration] {
        members.compactMap { if case .property(let property) = $0 { property } else { nil } }
    }

    /// Reads a class.
    ///
    /// - Throws: The error that keeps the class from being a managed object's class. Properties that are wrong by
    ///   themselves are left out: their own `@Managed` reports them.
    init(reading source: String) throws(Diagnostic) {
        var cursor = Cursor(source)
        var attribute: AttributeSyntax?
        guard let header = cursor.readHeader(attribute: { if $0.name == "ManagedObject" { attribute = $0 } }) else {
            throw Diagnostic("@ManagedObject does not understand this declaration.", at: cursor.range)
        }
        guard header.keyword.text == "class" else {
            throw Diagnostic(
                "@ManagedObject can only stand on a class, a subclass of NSManagedObject.",
                at: header.keyword.range
            )
        }
        guard let name = header.name else {
            throw Diagnostic("@ManagedObject does not understand the name of this class.", at: cursor.range)
        }
        guard !header.isGeneric else {
            throw Diagnostic(
                "@ManagedObject cannot stand on a generic class: an entity has one class.",
                at: cursor.range
            )
        }
        guard cursor.isAt(":") else {
            throw Diagnostic("@ManagedObject needs a subclass of NSManagedObject.", at: name.range)
        }
        var parent = cursor
        parent.advance()
        superclass = parent.readType()?.source ?? ""
        if let start = attribute?.argumentsStart {
            let arguments = try TraitArguments(in: cursor, from: start, of: "@ManagedObject")
            guard arguments.name == nil else {
                throw Diagnostic(
                    "@ManagedObject takes the name of the entity as '.name(\(arguments.name ?? ""))'.",
                    at: cursor.tokens[start].range
                )
            }
            traits = arguments
        } else {
            traits = TraitArguments()
        }
        while let token = cursor.current, token.text != "{" { cursor.skipBalanced() }
        cursor.advance()
        self.name = name.text
        isOpen = header.modifiers.contains { $0.text == "open" }
        members = Self.readMembers(&cursor)
    }

    /// Reads the body after its brace.
    ///
    /// Only attributes, conditions and brackets matter; everything else is skipped.
    private static func readMembers(_ cursor: inout Cursor) -> [Member] {
        var members: [Member] = []
        var openConditions: [Int] = []
        while let token = cursor.current, token.text != "}" {
            if token.text == "@" {
                let start = cursor.index
                if let attribute = cursor.readAttribute(), attribute.name == "Managed" {
                    cursor.move(to: start)
                    if let property = try? PropertyDeclaration(reading: &cursor) {
                        members.append(.property(property))
                    } else {
                        cursor.move(to: start + 1)
                    }
                } else if cursor.index == start {
                    // An `@` without a name occurs while the user is typing.
                    cursor.advance()
                }
            } else if token.text == "#", let directive = readCondition(&cursor) {
                switch directive.keyword {
                case "if":
                    openConditions.append(members.count)
                    members.append(.condition(directive.line))
                case "endif":
                    let start = openConditions.popLast() ?? members.count
                    let isNeeded = members[start...].contains { if case .property = $0 { true } else { false } }
                    if isNeeded {
                        members.append(.condition(directive.line))
                    } else {
                        members.removeSubrange(start...)
                    }
                default: members.append(.condition(directive.line))
                }
            } else {
                cursor.skipBalanced()
            }
        }
        return members
    }

    /// Skips a line such as `#if os(Linux)`; returns `nil`, behind the `#`, if it is none of the four.
    private static func readCondition(_ cursor: inout Cursor) -> (keyword: String, line: String)? {
        let start = cursor.index
        cursor.advance()
        guard let keyword = cursor.current?.text, ["if", "elseif", "else", "endif"].contains(keyword) else {
            return nil
        }
        cursor.advance()
        while let token = cursor.current, !token.startsLine { cursor.skipBalanced() }
        return (keyword, cursor.text(from: start, to: cursor.index))
    }
}
