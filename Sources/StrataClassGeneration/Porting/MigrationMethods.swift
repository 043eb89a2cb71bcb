import StrataSwiftSyntax

/// The methods of migration policies and managers that a mapping model may call by their selectors.
///
/// Apple's framework finds them with the Objective-C runtime. Here `function(named:)` lists them, and the programmer
/// has to write what each does with its arguments.
struct MigrationMethods {
    /// A method that no `function(named:)` lists.
    struct Method {
        /// The token of its keyword.
        let token: Token
        /// The name under which a mapping model calls it, such as `titleCased:`.
        let selector: String
    }

    /// A class or an extension.
    private struct Body {
        let name: String
        let superclass: String?
        /// Whether the Objective-C runtime sees all of its methods.
        let isExposed: Bool
        /// The range of its tokens, without the braces.
        let range: Range<Int>
    }

    private let cursor: Cursor

    private init(_ cursor: Cursor) { self.cursor = cursor }

    /// The methods of a file that the programmer has to list.
    static func unlisted(in cursor: Cursor) -> [Method] {
        let finder = MigrationMethods(cursor)
        let bodies = finder.migrationBodies()
        // If a method is listed, its selector is a string there.
        let texts = bodies.flatMap { cursor.tokens[$0.range] }.filter { $0.kind == .string }.map(\.text)
        let listed = Set(texts)
        return bodies.flatMap { finder.methods(of: $0) }.filter { !listed.contains("\"\($0.selector)\"") }
    }

    // MARK: - Classes

    /// The bodies of policies and managers in this file.
    private func migrationBodies() -> [Body] {
        let bodies = cursor.tokens.indices.compactMap { body(at: $0) }
        func isKnown(_ name: String) -> Bool { name.hasSuffix("MigrationPolicy") || name == "NSMigrationManager" }
        var names: Set<String> = []
        var count = -1
        // The loop ends when it finds no further subclass of a class that was found before.
        while count != names.count {
            count = names.count
            for body in bodies {
                if let superclass = body.superclass, isKnown(superclass) || names.contains(superclass) {
                    names.insert(body.name)
                }
            }
        }
        return bodies.filter { names.contains($0.name) || $0.superclass == nil && isKnown($0.name) }
    }

    /// The class or extension whose keyword is at an index.
    private func body(at index: Int) -> Body? {
        let keyword = cursor.tokens[index]
        guard keyword.kind == .word, keyword.text == "class" || keyword.text == "extension" else { return nil }
        var reader = cursor
        reader.move(to: index + 1)
        guard let name = Self.readName(&reader), !Self.modified.contains(name) else { return nil }
        var superclass: String?
        if keyword.text == "class", reader.take(":") { superclass = Self.readName(&reader) }
        while let token = reader.current, token.text != "{" {
            guard token.text != "}", token.text != ";" else { return nil }
            reader.advance()
        }
        let start = reader.index + 1
        reader.skipBalanced()
        guard start < reader.index else { return nil }
        return Body(
            name: name,
            superclass: superclass,
            isExposed: isExposed(at: index),
            range: start..<reader.index - 1
        )
    }

    /// The words that may follow `class` if it is a modifier.
    private static let modified: Set = ["func", "var", "let", "subscript", "override", "final"]

    /// Reads the last part of `Module.Name`, without generic arguments.
    private static func readName(_ reader: inout Cursor) -> String? {
        var name: String?
        repeat {
            guard let part = reader.current, part.kind == .word else { return nil }
            name = part.text
            reader.advance()
            if reader.isAt("<") { reader.readGenericArguments() }
        } while reader.take(".")
        return name
    }

    /// Whether there is `@objcMembers` before a class.
    private func isExposed(at index: Int) -> Bool {
        let before = cursor.tokens[..<index].reversed().prefix { !["{", "}", ";"].contains($0.text) }
        return before.prefix(24).contains { $0.text == "objcMembers" }
    }

    // MARK: - Methods

    /// The words before a declaration.
    private struct Modifiers {
        var isMarked = false
        var selector: String?
        var isHidden = false
        /// Whether it is an override, or not an instance method.
        var isOther = false
    }

    private func methods(of body: Body) -> [Method] {
        var methods: [Method] = []
        var modifiers = Modifiers()
        var reader = cursor
        reader.move(to: body.range.lowerBound)
        while reader.index < body.range.upperBound, let token = reader.current {
            switch token.text {
            case "@":
                let start = reader.index
                if let attribute = reader.readAttribute() {
                    read(attribute, upTo: reader.index, into: &modifiers)
                    continue
                }
                reader.move(to: start)
            case "private", "fileprivate": modifiers.isHidden = true
            case "override", "static": modifiers.isOther = true
            case "class":
                if let next = reader.following?.text, Self.modified.contains(next) {
                    modifiers.isOther = true
                } else {
                    modifiers = Modifiers()
                }
            case "func":
                let isSeen = modifiers.isMarked || body.isExposed && !modifiers.isHidden
                if isSeen, !modifiers.isOther, let selector = modifiers.selector ?? selector(at: reader.index) {
                    methods.append(Method(token: token, selector: selector))
                }
                modifiers = Modifiers()
            case "var", "let", "init", "deinit", "subscript", "struct", "enum", "actor", "typealias", "case":
                modifiers = Modifiers()
            default: break
            }
            reader.skipBalanced()
        }
        return methods
    }

    private func read(_ attribute: AttributeSyntax, upTo end: Int, into modifiers: inout Modifiers) {
        switch attribute.name {
        case "objc":
            modifiers.isMarked = true
            modifiers.selector = attribute.argumentsStart.map { start in
                cursor.tokens[start..<max(start, end - 1)].map(\.text).joined()
            }
        case "nonobjc": modifiers.isHidden = true
        default: break
        }
    }

    // MARK: - Selectors

    /// The selector that Swift gives the function whose keyword is at an index; `nil` for an operator.
    private func selector(at index: Int) -> String? {
        var reader = cursor
        reader.move(to: index + 1)
        guard let name = reader.current, name.kind == .word else { return nil }
        reader.advance()
        if reader.isAt("<") { reader.readGenericArguments() }
        guard reader.isAt("(") else { return nil }
        let start = reader.index + 1
        reader.skipBalanced()
        let end = reader.index - 1
        var labels: [String] = []
        reader.move(to: start)
        while reader.index < end, let label = reader.current {
            labels.append(label.text == "_" ? "" : Self.plain(label.text))
            while reader.index < end, !reader.isAt(",") {
                if reader.isAt("<") { reader.readGenericArguments() } else { reader.skipBalanced() }
            }
            reader.advance()
        }
        return Self.selector(Self.plain(name.text), labels)
    }

    private static func plain(_ name: String) -> String { name.filter { $0 != "`" } }

    private static func selector(_ name: String, _ labels: [String]) -> String {
        guard let first = labels.first else { return name }
        var selector = name
        if !first.isEmpty {
            let word = String(first.prefix { !$0.isUppercase })
            let last = String(name.reversed().prefix { !$0.isUppercase }.reversed())
            // It begins with its capital letter, if it has one.
            let end = name.suffix(min(name.count, last.count + 1)).lowercased()
            let leads = prepositions.contains(word) || prepositions.contains(end)
            if !leads { selector += "With" }
            selector += first.prefix(1).uppercased()
            selector += first.dropFirst()
        }
        for label in labels.dropFirst() { selector += ":" + label }
        return selector + ":"
    }

    /// The words before or after which Swift puts no `With`.
    private static let prepositions: Set = [
        "above", "after", "along", "alongside", "as", "at", "before", "below", "by", "following", "for", "from",
        "given", "in", "including", "inside", "into", "matching", "of", "on", "passing", "preceding", "since", "to",
        "until", "using", "via", "when", "with",
    ]
}
