/// The checks that `@ManagedObject` can make of a class as a whole.
///
/// Only classes with traits for their entity are checked: others may belong to a model from a file.
enum ClassChecks {
    static func faults(of declaration: ClassDeclaration) -> [Diagnostic] {
        // Code under conditions of compilation may contain a name twice.
        let isConditional = declaration.members.contains { if case .condition = $0 { true } else { false } }
        guard !isConditional, describes(declaration) else { return [] }
        return repeatedNames(declaration) + missingInverses(declaration) + unknownNames(declaration)
    }

    private static func describes(_ declaration: ClassDeclaration) -> Bool {
        !declaration.traits.traits.isEmpty || declaration.properties.contains { !$0.traits.isEmpty }
    }

    private static func repeatedNames(_ declaration: ClassDeclaration) -> [Diagnostic] {
        var seen = Set<String>()
        return declaration.properties.compactMap { property in
            guard !seen.insert(property.modelName).inserted, let range = property.nameRange else { return nil }
            return Diagnostic("There are two properties with the name \(property.modelName) in the model.", at: range)
        }
    }

    /// A relationship of the class to itself has its inverse in the class as well.
    private static func missingInverses(_ declaration: ClassDeclaration) -> [Diagnostic] {
        let named = Set(
            declaration.properties.flatMap(\.traits).filter { $0.name == "inverse" }
                .compactMap { $0.keyPathName ?? $0.texts.first?.value }
        )
        return declaration.properties.compactMap { property in
            guard TraitChecks.TypeName(property.type.source).destination == declaration.name,
                !property.traits.contains(where: {
                    ["inverse", "noInverse", "fetched", "transformable"].contains($0.name)
                }),
                !named.contains(property.bareName), !named.contains(String(property.modelName.dropFirst().dropLast())),
                let range = property.nameRange
            else { return nil }
            return Diagnostic(
                "'\(property.bareName)' has no inverse: name one with '.inverse(…)' here or at the other end, or write '.noInverse'.",
                at: range
            )
        }
    }

    /// If a class inherits no properties, its constraints and indexes can only name its own.
    private static func unknownNames(_ declaration: ClassDeclaration) -> [Diagnostic] {
        guard ["NSManagedObject", "CoreData.NSManagedObject"].contains(declaration.superclass) else { return [] }
        let known = Set(declaration.properties.map { String($0.modelName.dropFirst().dropLast()) })
        var faults: [Diagnostic] = []
        for trait in declaration.traits.traits where ["unique", "index", "compoundIndex"].contains(trait.name) {
            // The first argument of an index is its name, and it may have a predicate or expressions.
            if trait.name == "index", trait.source.contains("expression") || trait.source.contains("where:") {
                continue
            }
            for text in trait.name == "index" ? Array(trait.texts.dropFirst()) : trait.texts
            where !known.contains(text.value) {
                faults.append(
                    Diagnostic("'\(declaration.name)' has no @Managed property \"\(text.value)\".", at: text.range)
                )
            }
        }
        return faults
    }
}
