import Foundation

/// A file of Swift source.
package struct SourceFile: Sendable {
    package let path: String
    package let text: String
    package let module: String

    package init(path: String, text: String, module: String) {
        self.path = path
        self.text = text
        self.module = module
    }

    /// The text that distinguishes the private names of this file from those of others, as the compiler computes it.
    var discriminator: String {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        return "_" + MD5.hexadecimal(of: Array((module + name).utf8))
    }
}

/// A type that is declared in source.
struct DeclaredType {
    let module: String
    /// The name, after the names of the enclosing types.
    let path: [String]
    let kind: MangledName.Kind
    let isGeneric: Bool
    let isPublic: Bool
    /// Whether the type is private, or private to its file.
    let isHidden: Bool
    /// The target of an alias.
    var alias: String?
    /// The types after the colon.
    var inherited: [String] = []
}

/// A managed member in source: a property or a method with `@NSManaged`.
struct ManagedMember {
    enum Form {
        case property(type: String)
        case method([Parameter], isVoid: Bool)
    }

    struct Parameter {
        let label: String?
        let name: String
        let type: String
    }

    let name: String
    let form: Form
    /// The names of the type that declares it, as the declaration or the extension writes them.
    let owner: [String]
    let isPrivate: Bool
    /// The access: `public`, `package`, or `nil`, with that of the enclosing extension.
    let access: String?
    /// The access of the setter, which `internal(set)` and similar modifiers reduce.
    let setterAccess: String?
    let file: SourceFile
    let line: Int
    let column: Int
    /// The enclosing conditions of compilation, the outermost first.
    ///
    /// Each has the lines that lead to it.
    let conditions: [[String]]
}

/// The types and the managed members that the sources of modules declare.
package struct SourceDeclarations {
    /// The module that the classes are generated for.
    let module: String
    private var types: [String: DeclaredType] = [:]
    /// The protocols in extensions, by the type's key.
    private var extensions: [String: [String]] = [:]
    private(set) var members: [ManagedMember] = []
    /// The imports of the files with managed members, as they are written.
    private(set) var imports: [SourceImport] = []

    /// - Parameters:
    ///   - module: The name of the module.
    ///   - files: The sources of the module.
    ///   - others: The sources of modules that it imports, for the types that they declare.
    package init(module: String, files: [SourceFile], others: [SourceFile] = []) {
        self.module = module
        add(files + others)
    }

    /// Adds the declarations of more files, such as generated ones.
    mutating func add(_ files: [SourceFile]) {
        for file in files {
            var scanner = SourceScanner(file)
            scanner.scan()
            for type in scanner.types where file.module == module || type.isPublic {
                let key = Self.key(type.module, type.path)
                // The first declaration counts. If a type is declared under conditions, all declarations are most
                // likely of one kind.
                if types[key] == nil { types[key] = type }
            }
            for (path, conformances) in scanner.conformances {
                types[Self.key(file.module, path)]?.inherited += conformances
                extensions[Self.key(file.module, path), default: []] += conformances
            }
            guard file.module == self.module, !scanner.members.isEmpty else { continue }
            members += scanner.members
            imports += scanner.imports
        }
    }

    private static func key(_ module: String, _ path: [String]) -> String {
        module + ":" + path.joined(separator: ".")
    }

    func type(at path: [String], in module: String) -> DeclaredType? { types[Self.key(module, path)] }

    /// The modules whose types are known.
    private var modules: Set<String> { Set(types.values.map(\.module)) }

    /// Finds a type by its name in a scope.
    ///
    /// It searches the enclosing types from the inside out, then the module, then other modules.
    func find(_ path: [String], in scope: [String]) -> DeclaredType? {
        for count in stride(from: scope.count, through: 0, by: -1) {
            if let found = type(at: scope.prefix(count) + path, in: module) { return found }
        }
        if path.count > 1, let found = type(at: Array(path.dropFirst()), in: path[0]) { return found }
        return modules.sorted().lazy.compactMap { type(at: path, in: $0) }.first
    }

    /// Whether the module declares a class of this name that is not public.
    func isInternal(_ className: String) -> Bool {
        type(at: className.split(separator: ".").map(String.init), in: module).map { !$0.isPublic } ?? false
    }

    /// Whether the module declares a class of this name.
    package func declaresClass(_ className: String) -> Bool {
        type(at: className.split(separator: ".").map(String.init), in: module) != nil
    }

    /// Whether the sources declare that the type conforms to a protocol.
    func conforms(_ className: String, to name: String) -> Bool {
        let key = Self.key(module, className.split(separator: ".").map(String.init))
        return (types[key]?.inherited ?? []).contains(name) || (extensions[key] ?? []).contains(name)
    }
}

/// An import, with the access that it has.
struct SourceImport: Hashable {
    let module: String
    let access: String?
}
