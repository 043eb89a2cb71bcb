/// A stored or computed property of a class with `@Model`.
struct ModelProperty: Equatable {
    /// The name as it is spelled, with back-ticks if it has them.
    let name: String
    /// The type, unless the compiler infers it.
    let type: TypeText?
    /// The initial value as it is spelled.
    let initialValue: String?
    /// The attributes, by name, with the text between the parentheses.
    let attributes: [String: String]
    let modifiers: [String]
    let isConstant: Bool
    let isComputed: Bool
    let hasObservers: Bool
    /// The bytes of the keyword.
    let keywordRange: Range<Int>
    /// Where an attribute may be put: before the modifiers.
    let start: Int
    /// The reason why the property cannot be in the schema, for the programmer.
    let problem: Problem?

    /// A reason why a stored property cannot be in the schema.
    struct Problem: Equatable {
        let text: String
        /// Whether the property can be left out of the schema instead.
        let canBeTransient: Bool
    }

    var bareName: String { name.hasPrefix("`") ? String(name.dropFirst().dropLast()) : name }

    /// Whether the property is in the schema.
    var isPersisted: Bool { isMeantToBePersisted && problem == nil }

    /// Whether the property would be in the schema if nothing kept it from that.
    var isMeantToBePersisted: Bool {
        !isComputed && attributes["Transient"] == nil && !bareName.hasPrefix("_$")
            && !modifiers.contains { ["static", "class", "lazy"].contains($0) }
    }

    /// An attribute that may be a property wrapper, which the accessors of the macro leave no place for.
    var strangeAttribute: String? {
        let known = ["Attribute", "Relationship", "Transient"]
        return attributes.keys.sorted().first { $0.first?.isUppercase == true && !known.contains($0) }
    }

    /// Reads a property whose attributes and modifiers are the next tokens.
    ///
    /// - Returns: `nil` if the next declaration is no property with one name. The cursor is then behind what was read.
    init?(reading cursor: inout Cursor) {
        var attributes: [String: String] = [:]
        let start = cursor
        guard
            let header = cursor.readHeader(attribute: { attributes[$0.name] = Self.arguments(of: $0, in: start) }),
            ["var", "let"].contains(header.keyword.text), let name = header.name
        else { return nil }
        var type: TypeText?
        if cursor.take(":") {
            guard let read = cursor.readType() else { return nil }
            type = read
        }
        var initialValue: String?
        if cursor.take("=") { initialValue = Self.readExpression(&cursor) }
        var (isComputed, hasObservers) = (false, false)
        if cursor.isAt("{") {
            hasObservers = ["willSet", "didSet"].contains(cursor.following?.text)
            isComputed = initialValue == nil && !hasObservers
            cursor.skipBalanced()
        }
        self.name = name.text
        self.type = type
        self.initialValue = initialValue
        self.attributes = attributes
        self.start = header.modifiers.first?.range.lowerBound ?? header.keyword.range.lowerBound
        problem = Self.problem(of: name.text, type, attributes, isOneOfSeveral: cursor.isAt(","))
        modifiers = header.modifiers.map(\.text)
        isConstant = header.keyword.text == "let"
        self.isComputed = isComputed
        self.hasObservers = hasObservers
        keywordRange = header.keyword.range
    }

    // MARK: - What cannot be stored

    private static func problem(
        of name: String,
        _ type: TypeText?,
        _ attributes: [String: String],
        isOneOfSeveral: Bool
    ) -> Problem? {
        if isOneOfSeveral {
            return Problem(
                text: "'\(name)' shares its declaration with another property. "
                    + "Give each stored property a separate 'var'.",
                canBeTransient: false
            )
        }
        guard let source = type?.source, attributes["Transient"] == nil else { return nil }
        if attributes["Relationship"] != nil, isBasic(source) {
            return Problem(
                text: "'\(name)' is no relationship: \(source) is no class with @Model. Take @Relationship away.",
                canBeTransient: false
            )
        }
        guard attributes["Attribute"]?.contains(".transformable") != true, let kind = uncodedKind(source) else {
            return nil
        }
        return Problem(
            text: "'\(name)' cannot be stored: \(source) is \(kind). "
                + "Mark it with @Transient, or give it a Codable type.",
            canBeTransient: true
        )
    }

    /// The kind of a type that surely is not `Codable`; `nil` if it may be.
    private static func uncodedKind(_ source: String) -> String? {
        if source.contains("->") { return "a function" }
        let words = source.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
        if words.contains(where: { ["Any", "AnyObject", "any", "some"].contains($0) }) { return "no type of its own" }
        let plain = source.hasSuffix("?") ? source.dropLast() : source[...]
        if plain.hasPrefix("("), plain.hasSuffix(")"), plain.contains(",") { return "a tuple" }
        return nil
    }

    private static func isBasic(_ source: String) -> Bool {
        let basic = [
            "String", "Int", "Int16", "Int32", "Int64", "Double", "Float", "Bool", "Date", "Data", "UUID", "URL",
            "Decimal",
        ]
        return basic.contains(source.hasSuffix("?") ? String(source.dropLast()) : source)
    }

    /// The text between the parentheses of an attribute.
    private static func arguments(of attribute: AttributeSyntax, in cursor: Cursor) -> String {
        guard let start = attribute.argumentsStart else { return "" }
        var end = cursor
        end.move(to: start - 1)
        end.skipBalanced()
        return cursor.text(from: start, to: max(start, end.index - 1))
    }

    /// Reads an expression up to the end of its statement.
    private static func readExpression(_ cursor: inout Cursor) -> String {
        let start = cursor.index
        var needsOperand = true
        while let token = cursor.current, needsOperand || !endsExpression(token, cursor) {
            needsOperand = Self.needsOperand(after: token, needsOperand)
            cursor.skipBalanced()
        }
        return cursor.text(from: start, to: cursor.index)
    }

    /// Whether an operand follows a token, maybe in the next line: after an operator with space before it.
    private static func needsOperand(after token: Token, _ isPending: Bool) -> Bool {
        switch token.text {
        case "+", "-", "*", "/", "%", "&", "|", "^", "~", "=", "<", ">", "?", ":", ".", "!": token.isSpaced || isPending
        case "as", "is", "try", "await": true
        default: false
        }
    }

    private static func endsExpression(_ token: Token, _ cursor: Cursor) -> Bool {
        switch token.text {
        case ";", "}", ",": true
        // The braces of observers follow an initial value.
        case "{": ["willSet", "didSet"].contains(cursor.following?.text)
        case ".", "?", ":", "+", "-", "*", "/", "%", "&", "|", "^", "~", "=", "<", ">", "!", "as", "is": false
        default: token.startsLine
        }
    }
}

/// A class with `@Model`, and the members of its body that its schema is made of.
struct ModelDeclaration: Equatable {
    /// The name as it is spelled, with back-ticks if it has them.
    let name: String
    let modifiers: [String]
    let members: [Member]
    /// The properties that are meant to be in the schema, and cannot be.
    let faultyProperties: [ModelProperty]
    /// Whether the class has an initialiser in its body.
    let hasInitializer: Bool
    /// Where a member may be put: before the brace that ends the body.
    let end: Int
    /// The bytes of the name.
    let nameRange: Range<Int>
    /// Whether the class inherits from another model.
    let isSubclass: Bool

    enum Member: Equatable {
        case property(ModelProperty)
        /// A line of conditional compilation around members.
        case condition(String)
        /// The text of `#Unique` or `#Index` without the sign, and the name of the macro.
        case constraint(macro: String, arguments: String)
    }

    var isFinal: Bool { modifiers.contains("final") }

    /// The properties that the class stores in its backing.
    var properties: [ModelProperty] {
        members.compactMap { if case .property(let property) = $0 { property } else { nil } }
    }

    /// Reads a class.
    ///
    /// - Parameters:
    ///   - source: The text of the class.
    ///   - conforms: Whether the class is a model without the macro, as it is if it inherits from one.
    /// - Throws: The error that keeps the class from being a model's class.
    init(reading source: String, conforms: Bool) throws(Diagnostic) {
        var cursor = Cursor(source)
        var isMainActor = false
        guard let header = cursor.readHeader(attribute: { isMainActor = isMainActor || $0.name == "MainActor" }),
            let name = header.name
        else { throw Diagnostic("@Model can only stand on a class.", at: Cursor(source).range) }
        guard header.keyword.text == "class" else {
            let change = Diagnostic.FixIt(
                message: "Make it a class",
                range: header.keyword.range,
                replacement: "final class"
            )
            throw Diagnostic(
                "@Model can only stand on a class.",
                at: Cursor(source).range,
                fixIt: header.keyword.text == "struct" ? change : nil
            )
        }
        guard !isMainActor else {
            throw Diagnostic(
                "A class with @Model cannot belong to the main actor: contexts read it on their own queues, and the key paths of "
                    + "its properties could stand in no predicate. Take @MainActor away; objects of the main context stay there.",
                at: name.range
            )
        }
        guard !header.isGeneric else {
            throw Diagnostic("@Model cannot stand on a generic class: an entity has one class.", at: name.range)
        }
        isSubclass = conforms && cursor.isAt(":")
        while let token = cursor.current, token.text != "{" { cursor.skipBalanced() }
        cursor.advance()
        self.name = name.text
        modifiers = header.modifiers.map(\.text)
        nameRange = name.range
        (members, faultyProperties, hasInitializer) = Self.readMembers(&cursor)
        end = cursor.current?.range.lowerBound ?? source.utf8.count
    }

    private static func readMembers(_ cursor: inout Cursor)
        -> (members: [Member], faulty: [ModelProperty], hasInitializer: Bool)
    {
        var (members, faulty, hasInitializer): ([Member], [ModelProperty], Bool) = ([], [], false)
        while let token = cursor.current, token.text != "}" {
            if cursor.take(";") { continue }
            if token.text == "#" {
                if let member = readDirective(&cursor) { members.append(member) }
                continue
            }
            let start = cursor
            if let property = ModelProperty(reading: &cursor) {
                if property.isPersisted {
                    members.append(.property(property))
                } else if property.isMeantToBePersisted {
                    faulty.append(property)
                }
            } else {
                cursor = start
                if cursor.readHeader()?.keyword.text == "init" { hasInitializer = true }
                cursor = start
                skipMember(&cursor)
            }
        }
        return (members, faulty, hasInitializer)
    }

    /// Reads `#if` and the like, or `#Unique` and `#Index`.
    private static func readDirective(_ cursor: inout Cursor) -> Member? {
        let start = cursor.index
        cursor.advance()
        guard let word = cursor.current?.text else { return nil }
        cursor.advance()
        switch word {
        case "if", "elseif", "else", "endif":
            while let token = cursor.current, !token.startsLine { cursor.skipBalanced() }
            return .condition(cursor.text(from: start, to: cursor.index))
        case "Unique", "Index":
            let arguments = cursor.index
            if cursor.isAt("<") { cursor.readGenericArguments() }
            if cursor.isAt("(") { cursor.skipBalanced() }
            return .constraint(macro: word, arguments: cursor.text(from: arguments, to: cursor.index))
        default: return nil
        }
    }

    /// Skips a member that is no property, up to the end of its line and of all open brackets.
    private static func skipMember(_ cursor: inout Cursor) {
        cursor.skipBalanced()
        while let token = cursor.current, !token.startsLine, !["}", ";"].contains(token.text) { cursor.skipBalanced() }
    }
}
