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

    /// What tells the private names of this file apart from those of others, as the compiler computes it.
    var discriminator: String {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        return "_" + MD5.hexadecimal(of: Array((module + name).utf8))
    }
}

/// A type that source declares.
struct DeclaredType {
    let module: String
    /// The name, after those of the types around it.
    let path: [String]
    let kind: MangledName.Kind
    let isGeneric: Bool
    let isPublic: Bool
    /// Private or private to its file.
    let isHidden: Bool
    /// The type that an alias stands for.
    var alias: String?
    /// What stands behind the colon.
    var inherited: [String] = []
}

/// What source says of a managed member: a property or a method with `@NSManaged`.
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
    /// The names of the type that declares it, as the declaration or the extension spells them.
    let owner: [String]
    let isPrivate: Bool
    /// How far it can be seen from other modules: `public`, `package`, or `nil`, with that of the extension around it.
    let access: String?
    /// That of the setter, which `internal(set)` and its like narrow.
    let setterAccess: String?
    let file: SourceFile
    let line: Int
    let column: Int
    /// The conditions of compilation around it, the outermost first: each the lines that lead to it.
    let conditions: [[String]]
}

/// The types and the managed members that the sources of modules declare.
package struct SourceDeclarations {
    /// The module that the classes are generated for.
    let module: String
    private var types: [String: DeclaredType] = [:]
    /// What extensions conform to, by the type's key.
    private var extensions: [String: [String]] = [:]
    private(set) var members: [ManagedMember] = []
    /// What the files with managed members import, as they spell it.
    private(set) var imports: [SourceImport] = []

    /// - Parameters:
    ///   - module: The name of the module.
    ///   - files: The sources of the module.
    ///   - others: Those of modules that it imports, for the types that they declare.
    package init(module: String, files: [SourceFile], others: [SourceFile] = []) {
        self.module = module
        add(files + others)
    }

    /// Adds what more files declare, such as generated ones.
    mutating func add(_ files: [SourceFile]) {
        for file in files {
            var scanner = SourceScanner(file)
            scanner.scan()
            for type in scanner.types where file.module == module || type.isPublic {
                let key = Self.key(type.module, type.path)
                // The first counts: of a type that is declared under conditions, most likely all are of one kind.
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

    /// The modules that types are known of.
    private var modules: Set<String> { Set(types.values.map(\.module)) }

    /// The type that a name means in a scope: in the types around it from the inside out, then in the module, then in others.
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

    /// Whether source says that the type conforms to a protocol.
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
