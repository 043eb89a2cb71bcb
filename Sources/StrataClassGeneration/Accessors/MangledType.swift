/// A type in the form of symbol names: without sugar and aliases.
indirect enum MangledType: Hashable, Sendable {
    case nominal(MangledName, [MangledType])
    case optional(MangledType)
    case any
    case anyObject
}

/// The declaration of a type: its place and its kind.
final class MangledName: Hashable, Sendable {
    enum Kind: Character, Sendable {
        case `class` = "C"
        case `struct` = "V"
        case `enum` = "O"
        case `protocol` = "P"
    }

    let module: String
    /// The enclosing type.
    let outer: MangledName?
    let name: String
    let kind: Kind

    init(module: String, outer: MangledName? = nil, name: String, kind: Kind) {
        self.module = module
        self.outer = outer
        self.name = name
        self.kind = kind
    }

    static func == (one: MangledName, other: MangledName) -> Bool {
        one === other
            || (one.name == other.name && one.module == other.module && one.outer == other.outer
                && one.kind == other.kind)
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(module)
    }

    /// The letter that replaces the name, if the type is one of the standard library's that has a letter.
    var standardSubstitution: String? {
        outer == nil && module == "Swift" ? Self.standard[name] : nil
    }

    private static let standard = [
        "Array": "a", "Bool": "b", "Double": "d", "Float": "f", "Set": "h", "Dictionary": "D", "Int": "i",
        "String": "S", "Substring": "s", "UInt": "u", "Character": "J", "ClosedRange": "N", "Range": "n",
        "ObjectIdentifier": "O",
    ]
}

/// A property or a method, and the class that it belongs to.
struct MangledMember {
    let owner: MangledName
    /// The module of the extension that declares it, if that is not the class's.
    var extensionModule: String?
    let name: String
    /// The text that distinguishes private names of different files.
    var discriminator: String?
}
