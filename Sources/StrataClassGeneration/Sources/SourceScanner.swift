import StrataSwiftSyntax

/// Reads the declarations of a file: types, their inherited types, and managed members.
///
/// It reads declarations only, and skips bodies. Code that it does not understand is skipped, too.
struct SourceScanner {
    private let file: SourceFile
    private var cursor: Cursor
    private let lineStarts: [Int]
    private(set) var types: [DeclaredType] = []
    private(set) var members: [ManagedMember] = []
    private(set) var imports: [SourceImport] = []
    private(set) var conformances: [(path: [String], names: [String])] = []
    private var conditions: [[String]] = []

    init(_ file: SourceFile) {
        self.file = file
        cursor = Cursor(file.text)
        lineStarts = [0] + file.text.utf8.enumerated().lazy.filter { $0.element == 10 }.map { $0.offset + 1 }
    }

    mutating func scan() {
        while cursor.current != nil {
            scanMembers(of: [], isHidden: false, access: nil)
            cursor.advance()
        }
    }

    // MARK: - Declarations

    /// Reads declarations up to the brace that closes the enclosing type.
    ///
    /// - Parameters:
    ///   - path: The names of the enclosing types.
    ///   - isHidden: Whether one of those types is private.
    ///   - access: The access of members that have no modifier.
    private mutating func scanMembers(of path: [String], isHidden: Bool, access: String?) {
        var isManaged = false
        while let token = cursor.current, token.text != "}" {
            if token.text == "#" {
                scanCondition()
                continue
            }
            let start = cursor.index
            let header = cursor.readHeader { if $0.name == "NSManaged" { isManaged = true } }
            guard let header else {
                // Attributes may have conditions around them. Other code that is no declaration has none.
                if cursor.isAt("#"), cursor.index > start { continue }
                isManaged = false
                if cursor.index == start || !cursor.isAt("}") { cursor.skipBalanced() }
                continue
            }
            scan(header, isManaged: isManaged, in: path, isHidden: isHidden, access: access)
            isManaged = false
        }
    }

    private mutating func scan(
        _ header: DeclarationHeader,
        isManaged: Bool,
        in path: [String],
        isHidden: Bool,
        access: String?
    ) {
        let isPrivate = header.modifiers.contains { ["private", "fileprivate"].contains($0.text) }
        switch header.keyword.text {
        case "import": scanImport(header)
        case "class", "struct", "enum", "actor", "protocol", "extension":
            scanType(header, in: path, isHidden: isHidden || isPrivate)
        case "typealias": scanAlias(header, in: path, isHidden: isHidden || isPrivate)
        case "var" where isManaged:
            let access = self.access(of: header, otherwise: access)
            let setter = self.access(of: header, ofSetter: true, otherwise: access)
            scanProperty(header, in: path, isPrivate: isWhollyPrivate(header), access, setter: setter)
        case "func" where isManaged:
            scanMethod(header, in: path, isPrivate: isPrivate, self.access(of: header, otherwise: access))
        default: break
        }
    }

    /// Whether a property is private; one with `private(set)` is not.
    private func isWhollyPrivate(_ header: DeclarationHeader) -> Bool {
        header.modifiers.contains { modifier in
            guard ["private", "fileprivate"].contains(modifier.text) else { return false }
            return cursor.tokens.first { $0.range.lowerBound >= modifier.range.upperBound }?.text != "("
        }
    }

    /// The access of a declaration from other modules; `public` for an open one.
    ///
    /// - Parameters:
    ///   - header: The declaration.
    ///   - ofSetter: Whether the access of the setter is wanted, as in `internal(set)`, in place of the declaration's.
    ///   - inherited: The access of a declaration without a modifier.
    /// - Returns: The modifier; `nil` for none.
    private func access(
        of header: DeclarationHeader,
        ofSetter: Bool = false,
        otherwise inherited: String?
    ) -> String? {
        let own = header.modifiers.first { modifier in
            guard ["open", "public", "package", "internal", "fileprivate", "private"].contains(modifier.text) else {
                return false
            }
            let next = cursor.tokens.first { $0.range.lowerBound >= modifier.range.upperBound }
            return (next?.text == "(") == ofSetter
        }
        switch own?.text {
        case nil: return inherited
        case "open", "public": return "public"
        case "package": return "package"
        default: return nil
        }
    }

    private mutating func scanImport(_ header: DeclarationHeader) {
        guard var name = header.name?.text else { return }
        // In `import struct Foundation.Date`, the first word is a kind.
        if ["struct", "class", "enum", "protocol", "typealias", "func", "var", "let"].contains(name),
            let next = cursor.current, next.kind == .word, !next.startsLine
        {
            name = next.text
            cursor.advance()
        }
        let access = header.modifiers.first {
            ["public", "package", "internal", "private", "fileprivate"].contains($0.text)
        }
        imports.append(SourceImport(module: name, access: access?.text))
    }

    private mutating func scanType(_ header: DeclarationHeader, in path: [String], isHidden: Bool) {
        guard let first = header.name else { return }
        var names = [Self.bare(first.text)]
        while cursor.isGlued("."), let next = cursor.following, next.kind == .word {
            names.append(Self.bare(next.text))
            cursor.advance()
            cursor.advance()
        }
        if cursor.isAt("<") { cursor.readGenericArguments() }
        let inherited = cursor.isAt(":") ? scanInherited() : []
        while let token = cursor.current, token.text != "{", token.text != "}" { cursor.skipBalanced() }
        guard cursor.take("{") else { return }
        let isExtension = header.keyword.text == "extension"
        // In an extension, the name may begin with the module.
        if isExtension, names.count > 1, names[0] == file.module { names.removeFirst() }
        let own = path + names
        if isExtension {
            conformances.append((own, inherited))
        } else {
            let kinds: [String: MangledName.Kind] = ["struct": .struct, "enum": .enum, "protocol": .protocol]
            types.append(
                DeclaredType(
                    module: file.module,
                    path: own,
                    kind: kinds[header.keyword.text] ?? .class,
                    isGeneric: header.isGeneric,
                    isPublic: header.modifiers.contains { ["public", "open"].contains($0.text) },
                    isHidden: isHidden,
                    inherited: inherited
                )
            )
        }
        // Only an extension passes its access on to its members.
        let access = isExtension ? access(of: header, otherwise: nil) : nil
        scanMembers(of: own, isHidden: isHidden, access: access)
        cursor.advance()
    }

    private mutating func scanInherited() -> [String] {
        var names: [String] = []
        while let token = cursor.current, token.text != "{", token.text != "where" {
            if token.kind == .word { names.append(token.text) }
            cursor.advance()
        }
        return names
    }

    private mutating func scanAlias(_ header: DeclarationHeader, in path: [String], isHidden: Bool) {
        guard let name = header.name else { return }
        if cursor.isAt("<") { cursor.readGenericArguments() }
        guard cursor.take("="), let type = cursor.readType() else { return }
        types.append(
            DeclaredType(
                module: file.module,
                path: path + [Self.bare(name.text)],
                kind: .struct,
                isGeneric: header.isGeneric,
                isPublic: header.modifiers.contains { $0.text == "public" },
                isHidden: isHidden,
                alias: type.source
            )
        )
    }

    // MARK: - Managed members

    private mutating func scanProperty(
        _ header: DeclarationHeader,
        in path: [String],
        isPrivate: Bool,
        _ access: String?,
        setter: String?
    ) {
        guard let name = header.name, cursor.take(":"), let type = cursor.readType() else { return }
        add(name, .property(type: type.source), in: path, isPrivate: isPrivate, access: access, setter: setter)
    }

    private mutating func scanMethod(
        _ header: DeclarationHeader,
        in path: [String],
        isPrivate: Bool,
        _ access: String?
    ) {
        guard let name = header.name, cursor.take("(") else { return }
        var parameters: [ManagedMember.Parameter] = []
        while !cursor.take(")") {
            guard let label = cursor.current, label.kind == .word else { return }
            cursor.advance()
            var own = label
            if let second = cursor.current, second.kind == .word {
                own = second
                cursor.advance()
            }
            guard cursor.take(":"), let type = cursor.readType() else { return }
            let text = label.text == "_" ? nil : Self.bare(label.text)
            parameters.append(.init(label: text, name: Self.bare(own.text), type: type.source))
            _ = cursor.take(",")
        }
        let isVoid = !(cursor.isAt("->") || cursor.isAt("throws") || cursor.isAt("async"))
        add(name, .method(parameters, isVoid: isVoid), in: path, isPrivate: isPrivate, access: access, setter: nil)
    }

    private mutating func add(
        _ name: Token,
        _ form: ManagedMember.Form,
        in path: [String],
        isPrivate: Bool,
        access: String?,
        setter: String?
    ) {
        let place = place(of: name.range.lowerBound)
        members.append(
            ManagedMember(
                name: Self.bare(name.text),
                form: form,
                owner: path,
                isPrivate: isPrivate,
                access: access,
                setterAccess: setter,
                file: file,
                line: place.line,
                column: place.column,
                conditions: conditions
            )
        )
    }

    private func place(of offset: Int) -> (line: Int, column: Int) {
        var (low, high) = (0, lineStarts.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if lineStarts[middle] <= offset { low = middle } else { high = middle }
        }
        return (low + 1, offset - lineStarts[low] + 1)
    }

    // MARK: - Conditions

    /// Skips `#if …` and similar lines, and notes them.
    private mutating func scanCondition() {
        let start = cursor.index
        cursor.advance()
        guard let keyword = cursor.current?.text, ["if", "elseif", "else", "endif"].contains(keyword) else { return }
        cursor.advance()
        while let token = cursor.current, !token.startsLine { cursor.skipBalanced() }
        let line = cursor.text(from: start, to: cursor.index)
        switch keyword {
        case "if": conditions.append([line])
        case "endif": _ = conditions.popLast()
        default: if !conditions.isEmpty { conditions[conditions.count - 1].append(line) }
        }
    }

    private static func bare(_ name: String) -> String {
        name.hasPrefix("`") ? String(name.dropFirst().dropLast()) : name
    }
}
