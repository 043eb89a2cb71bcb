import StrataSwiftSyntax

/// Finds the meaning of the types of properties, in declarations of the sources and known types of other modules.
struct TypeResolver {
    let declarations: SourceDeclarations

    /// The error of a type that could not be resolved.
    struct Failure: Error {
        let reason: String
    }

    /// The meaning of a type in a scope: the names of the types around the property, the outermost first.
    func resolve(_ text: String, in scope: [String]) throws(Failure) -> MangledType {
        var parser = TypeParser(text)
        guard let tree = parser.parse() else { throw Failure(reason: "the type \(text) is not understood") }
        return try resolve(tree, in: scope, depth: 0)
    }

    private func resolve(_ tree: TypeTree, in scope: [String], depth: Int) throws(Failure) -> MangledType {
        guard depth < 32 else { throw Failure(reason: "the type refers to itself") }
        switch tree {
        case .optional(let wrapped): return .optional(try resolve(wrapped, in: scope, depth: depth + 1))
        case .named(let path, let arguments):
            var resolved: [MangledType] = []
            for argument in arguments { resolved.append(try resolve(argument, in: scope, depth: depth + 1)) }
            return try named(path, resolved, in: scope, depth: depth)
        }
    }

    private func named(
        _ path: [String],
        _ arguments: [MangledType],
        in scope: [String],
        depth: Int
    ) throws(Failure) -> MangledType {
        let spelled = path.joined(separator: ".")
        if let declared = declarations.find(path, in: scope) {
            if let alias = declared.alias {
                guard arguments.isEmpty, !declared.isGeneric else {
                    throw Failure(reason: "the alias \(spelled) has generic parameters")
                }
                var parser = TypeParser(alias)
                guard let tree = parser.parse() else { throw Failure(reason: "the type \(alias) is not understood") }
                return try resolve(tree, in: Array(declared.path.dropLast()), depth: depth + 1)
            }
            guard !declared.isHidden else {
                throw Failure(reason: "the type \(spelled) is private, so generated code cannot name it")
            }
            guard declared.isGeneric == !arguments.isEmpty else {
                throw Failure(reason: "the generic type \(spelled) is not understood")
            }
            return .nominal(name(of: declared), arguments)
        }
        let parts = path.count > 1 ? (module: path.first, name: path[path.count - 1]) : (module: nil, name: path[0])
        guard path.count <= 2 else { throw Failure(reason: "the type \(spelled) is unknown") }
        if let count = KnownTypes.generics[parts.name], parts.module == nil || parts.module == "Swift" {
            guard arguments.count == count else { throw Failure(reason: "\(spelled) needs \(count) generic arguments") }
            if parts.name == "Optional" { return .optional(arguments[0]) }
            return .nominal(MangledName(module: "Swift", name: parts.name, kind: .struct), arguments)
        }
        guard arguments.isEmpty, let known = KnownTypes.find(parts.name, in: parts.module) else {
            throw Failure(reason: "the type \(spelled) is unknown")
        }
        return known
    }

    func name(of declared: DeclaredType) -> MangledName {
        var outer: MangledName?
        // The enclosing types are declared as well. If one is unknown, it is most likely an enum that is used as a
        // namespace.
        for count in 1..<max(declared.path.count, 1) {
            let path = Array(declared.path.prefix(count))
            let kind = declarations.type(at: path, in: declared.module)?.kind ?? .enum
            outer = MangledName(module: declared.module, outer: outer, name: path[count - 1], kind: kind)
        }
        return MangledName(
            module: declared.module,
            outer: outer,
            name: declared.path[declared.path.count - 1],
            kind: declared.kind
        )
    }
}

/// The structure of a type, without sugar.
indirect enum TypeTree: Equatable {
    case named([String], [TypeTree])
    case optional(TypeTree)
}

/// Reads a type as source spells it.
struct TypeParser {
    private var cursor: Cursor

    init(_ text: String) { cursor = Cursor(text) }

    /// - Returns: `nil` for types that managed properties cannot have: functions, tuples, compositions.
    mutating func parse() -> TypeTree? {
        let tree = type()
        return cursor.current == nil ? tree : nil
    }

    private mutating func type() -> TypeTree? {
        _ = cursor.take("any")
        guard var tree = operand() else { return nil }
        while let token = cursor.current, ["?", "!"].contains(token.text) {
            cursor.advance()
            tree = .optional(tree)
        }
        return tree
    }

    private mutating func operand() -> TypeTree? {
        if cursor.take("(") {
            guard let tree = type(), cursor.take(")") else { return nil }
            return tree
        }
        if cursor.take("[") {
            guard let element = type() else { return nil }
            if cursor.take("]") { return .named(["Array"], [element]) }
            guard cursor.take(":"), let value = type(), cursor.take("]") else { return nil }
            return .named(["Dictionary"], [element, value])
        }
        var path: [String] = []
        repeat {
            guard let token = cursor.current, token.kind == .word else { return nil }
            path.append(token.text.hasPrefix("`") ? String(token.text.dropFirst().dropLast()) : token.text)
            cursor.advance()
        } while cursor.take(".")
        var arguments: [TypeTree] = []
        if cursor.take("<") {
            repeat {
                guard let argument = type() else { return nil }
                arguments.append(argument)
            } while cursor.take(",")
            guard cursor.take(">") else { return nil }
        }
        return .named(path, arguments)
    }
}
