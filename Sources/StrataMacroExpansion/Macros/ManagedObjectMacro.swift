/// `@ManagedObject`: the table of a class's managed properties.
///
/// The table is an override that adds to the superclass's. So a subclass of a class with a table needs no separate
/// conformance, and lists inherited properties too.
enum ManagedObjectMacro {
    static func expand(_ request: ExpansionRequest) -> Expansion {
        do throws(Diagnostic) {
            let declaration = try ClassDeclaration(reading: request.declaration)
            guard request.role == "member" else {
                throw Diagnostic("@ManagedObject cannot be expanded as '\(request.role)'.", at: 0..<0)
            }
            let faults = ClassChecks.faults(of: declaration)
            guard faults.isEmpty else { return Expansion(diagnostics: faults) }
            return Expansion(source: entity(of: declaration) + table(of: declaration))
        } catch {
            return Expansion(diagnostics: [error])
        }
    }

    // The compiler reduces `public` to the class's own access. Only `open` has to be written if it is needed.
    private static func access(_ declaration: ClassDeclaration) -> String { declaration.isOpen ? "open" : "public" }

    private static func entity(of declaration: ClassDeclaration) -> String {
        let traits = declaration.traits.traits.map(\.source).joined(separator: ", ")
        return """
            \(access(declaration)) override class var managedEntity: CoreData.ManagedEntityInfo? {
                CoreData.ManagedEntityInfo(\(declaration.name).self, traits: [\(traits)])
            }
            """
    }

    /// The body of the table, with one statement for each property.
    ///
    /// The type checker's work grows with the size of a statement, not of the class.
    private static func table(of declaration: ClassDeclaration) -> String {
        let properties = declaration.properties
        guard !properties.isEmpty else { return "" }
        var lines = [
            "", "\(access(declaration)) override class var managedProperties: [CoreData.ManagedPropertyInfo] {",
            "    var properties = super.managedProperties",
            "    properties.reserveCapacity(properties.count + \(properties.count))",
        ]
        for member in declaration.members {
            switch member {
            case .condition(let line): lines.append("    \(line)")
            case .property(let property):
                let keyPath = "\\\(declaration.name).\(property.name)"
                lines.append(
                    "    properties.append(CoreData.ManagedPropertyInfo("
                        + "name: \(property.modelName), keyPath: \(keyPath), type: \(property.type.metatype)\(traits(of: property))))"
                )
            }
        }
        lines += ["    return properties", "}"]
        return lines.joined(separator: "\n")
    }

    /// The text of the traits.
    ///
    /// Here the compiler knows the property's type, and checks values and key paths by it.
    private static func traits(of property: PropertyDeclaration) -> String {
        guard !property.traits.isEmpty else { return "" }
        return ", traits: [\(property.traits.map(\.source).joined(separator: ", "))]"
    }
}
