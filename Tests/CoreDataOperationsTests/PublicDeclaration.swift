import StrataSwiftSyntax

/// A declaration that clients see, with the documentation above it.
struct PublicDeclaration {
    /// The file and the line of the keyword.
    let place: String
    /// The keyword, such as `func`.
    let keyword: String
    /// The name behind the types around it, such as `NSManagedObjectContext.save`.
    let name: String
    /// The lines of the documentation, without their slashes.
    let documentation: [String]
    /// The names that the body uses for the parameters.
    var parameters: [String] = []
    var isReturning = false
    /// Whether it throws other errors than those of a closure.
    var isThrowing = false

    var isType: Bool { ["class", "struct", "enum", "actor", "protocol"].contains(keyword) }

    var hasExample: Bool { documentation.contains("```swift") }

    /// The parts that the documentation leaves out.
    var gaps: [String] {
        let (names, topics) = topics
        var gaps = parameters.filter { !names.contains($0) }.map { "parameter \($0)" }
        gaps += names.filter { !parameters.contains($0) }.map { "parameter \($0), which it does not have" }
        if isReturning, !topics.contains("Returns") { gaps.append("the result") }
        if isThrowing, !topics.contains("Throws") { gaps.append("the errors") }
        return gaps
    }

    /// The parameters that the documentation describes, and the other topics that it has a line for.
    private var topics: (names: [String], topics: [String]) {
        var (names, topics): ([String], [String]) = ([], [])
        var isInList = false
        for line in documentation {
            if let match = line.firstMatch(of: /^- Parameter (\w+): *\S/) {
                names.append(String(match.1))
            } else if let match = line.firstMatch(of: /^- (Returns|Throws): *\S/) {
                topics.append(String(match.1))
            } else if isInList, let match = line.firstMatch(of: /^ +- (\w+): *\S/) {
                names.append(String(match.1))
            }
            if let first = line.first, first != " " { isInList = line.hasPrefix("- Parameters:") }
        }
        return (names, topics)
    }
}

extension PublicDeclaration {
    /// The declarations of some files that clients see.
    ///
    /// It leaves out declarations that clients cannot call, and overrides, which inherit their documentation.
    static func all(in files: [(path: String, text: String)]) -> [PublicDeclaration] {
        // Only after reading all files are the hidden types known. Their extensions are hidden too.
        var hidden: Set<String> = []
        for file in files { hidden.formUnion(PublicDeclarationReader.read(file, hidden: []).hidden) }
        return files.flatMap { PublicDeclarationReader.read($0, hidden: hidden).found }
    }
}

/// Reads one file.
private struct PublicDeclarationReader {
    private let path: String
    private let lines: [String]
    /// The bytes at which the lines begin.
    private let starts: [Int]
    private var cursor: Cursor
    private(set) var hidden: Set<String>
    private(set) var found: [PublicDeclaration] = []

    static func read(_ file: (path: String, text: String), hidden: Set<String>) -> PublicDeclarationReader {
        var reader = PublicDeclarationReader(file, hidden)
        reader.readMembers(of: Surroundings(names: [], isSeen: true, isProtocol: false))
        return reader
    }

    private init(_ file: (path: String, text: String), _ hidden: Set<String>) {
        path = file.path
        self.hidden = hidden
        cursor = Cursor(file.text)
        lines = file.text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        starts = lines.reduce(into: [0]) { $0.append(($0.last ?? 0) + $1.utf8.count + 1) }
    }

    /// The type or extension around a declaration.
    private struct Surroundings {
        let names: [String]
        let isSeen: Bool
        let isProtocol: Bool
    }

    private mutating func readMembers(of surroundings: Surroundings) {
        var begins = true
        while let token = cursor.current, token.text != "}" {
            let start = cursor.index
            if begins || token.startsLine, let header = cursor.readHeader() {
                readDeclaration(header, at: start, in: surroundings)
            } else {
                // A statement, an accessor's block, a directive.
                cursor.move(to: start)
                cursor.skipBalanced()
            }
            begins = cursor.index > 0 && cursor.tokens[cursor.index - 1].text == ";"
        }
    }

    private mutating func readDeclaration(_ header: DeclarationHeader, at start: Int, in outer: Surroundings) {
        let keyword = header.keyword.text
        let attributes = cursor.text(from: start, to: cursor.index)
        let modifiers = header.modifiers.map(\.text)
        let given = header.name?.text ?? (keyword == "func" ? operatorName : nil) ?? keyword
        var names = outer.names + [given.filter { $0 != "`" }]
        while keyword == "extension", cursor.isGlued("."), let part = cursor.following {
            names.append(part.text)
            cursor.advance()
            cursor.advance()
        }
        let name = names.joined(separator: ".")
        let isPublic = outer.isProtocol || modifiers.contains("public") || modifiers.contains("open")
        let isForNobody =
            attributes.contains("@available(*, unavailable")
            || attributes.contains("@_documentation(visibility: internal)")
        var isSeen = outer.isSeen && !isForNobody
        isSeen = isSeen && (keyword == "extension" ? !hidden.contains(name) : isPublic)
        var declaration = PublicDeclaration(
            place: "\(path):\(line(of: header.keyword) + 1)",
            keyword: keyword,
            name: name,
            documentation: documentation(above: cursor.tokens[start])
        )
        switch keyword {
        case "class", "struct", "enum", "actor", "protocol", "extension":
            if !isSeen, keyword != "extension" { hidden.insert(name) }
            if isSeen, keyword != "extension" { found.append(declaration) }
            while let token = cursor.current, token.text != "{" { cursor.advance() }
            cursor.advance()
            readMembers(of: Surroundings(names: names, isSeen: isSeen, isProtocol: keyword == "protocol"))
            cursor.advance()
            return
        case "func", "init", "subscript", "macro": readSignature(&declaration)
        case "var": declaration.isThrowing = isThrowingProperty()
        case "let", "typealias": break
        default: return
        }
        if isSeen, !modifiers.contains("override") { found.append(declaration) }
    }

    /// The operator at which the cursor is, behind `func`.
    private var operatorName: String? {
        let signs = cursor.tokens[cursor.index...].prefix { $0.kind == .sign && $0.text != "(" }
        return signs.isEmpty ? nil : signs.map(\.text).joined()
    }

    // MARK: - Signatures

    /// Steps over the parameters and what follows them, up to the body.
    private mutating func readSignature(_ declaration: inout PublicDeclaration) {
        // An operator's name is no word, and the name `init?` ends with a sign.
        while let token = cursor.current, token.text != "(", token.text != "<" || cursor.following?.kind != .word {
            cursor.advance()
        }
        if cursor.isAt("<") { cursor.readGenericArguments() }
        readParameters(&declaration)
        while let token = cursor.current, ["async", "throws", "rethrows"].contains(token.text) {
            if token.text == "throws" { declaration.isThrowing = true }
            cursor.advance()
            if cursor.isGlued("(") { cursor.skipBalanced() }
        }
        guard cursor.isAt("->") else { return }
        cursor.advance()
        let isNothing = cursor.isAt("Void") || cursor.isAt("Never") || cursor.isAt("(") && cursor.following?.text == ")"
        // The summary of a macro says how it expands.
        declaration.isReturning = !isNothing && declaration.keyword != "macro"
    }

    private mutating func readParameters(_ declaration: inout PublicDeclaration) {
        var rest = cursor
        rest.skipBalanced()
        let end = rest.index - 1
        cursor.advance()
        while cursor.index < end {
            var words: [String] = []
            while cursor.index < end, !cursor.isAt(":") {
                if cursor.readAttribute() != nil { continue }
                if let word = cursor.current, word.kind == .word { words.append(word.text) }
                cursor.advance()
            }
            if let name = words.last, name != "_" { declaration.parameters.append(name.filter { $0 != "`" }) }
            while cursor.index < end, !cursor.isAt(",") {
                if cursor.isAt("<") { cursor.readGenericArguments() } else { cursor.skipBalanced() }
            }
            _ = cursor.take(",")
        }
        cursor.move(to: end + 1)
    }

    /// Whether reading the property can throw; the cursor is at the property's type.
    private func isThrowingProperty() -> Bool {
        var ahead = cursor
        while let token = ahead.current, token.text != "{", !token.startsLine { ahead.skipBalanced() }
        guard ahead.take("{") else { return false }
        while let token = ahead.current, token.text != "}" {
            if ahead.take("get") {
                _ = ahead.take("async")
                return ahead.isAt("throws")
            }
            ahead.skipBalanced()
        }
        return false
    }

    // MARK: - Lines

    /// The line that a token is on, from 0.
    private func line(of token: Token) -> Int {
        (starts.firstIndex { $0 > token.range.lowerBound } ?? lines.count) - 1
    }

    /// The comment above a declaration.
    ///
    /// Attributes may be on separate lines in between.
    private func documentation(above token: Token) -> [String] {
        var found: [String] = []
        for text in lines[..<line(of: token)].reversed() {
            let text = text.drop { $0 == " " }
            if text.hasPrefix("///") {
                found.append(String(text.dropFirst(text.hasPrefix("/// ") ? 4 : 3)))
            } else if !text.hasPrefix("//") {
                break
            }
        }
        return found.reversed()
    }
}
