import StrataModelFiles

/// Writes the classes of a model in Xcode's form.
///
/// Accessors are written out as `@Managed` would write them, so that the compiler need not expand a macro for each
/// property.
package struct ClassGenerator {
    private let model: GeneratedModel
    private let declarations: SourceDeclarations
    /// The form of the properties: for a build, or for the source tree.
    private let style: Style

    package enum Style: Sendable {
        /// Accessors that read the slot directly.
        case accessors
        /// Properties with `@Managed`, for programmers to read and change.
        case macros
    }

    /// - Parameters:
    ///   - source: A model without faults.
    ///   - module: The module that the classes belong to.
    ///   - declarations: The declarations in the module's sources, which give the access of hand-written classes.
    ///   - style: The form of the properties.
    package init(_ source: ModelSource, module: String, declarations: SourceDeclarations, style: Style = .accessors) {
        model = GeneratedModel(source, module: module)
        self.declarations = declarations
        self.style = style
    }

    /// The problems that prevent the generation.
    package var faults: [ModelError] { style == .accessors ? model.faults(beside: declarations) : [] }

    /// One file of source.
    package struct File: Equatable, Sendable {
        package let name: String
        package let text: String
    }

    /// All classes in one text, for a build.
    package func text(modelName: String) -> String {
        let parts = model.generated.flatMap { entity in
            [entity.codeGeneration == .class ? classDeclaration(entity) : nil, extensions(of: entity)].compactMap(
                \.self
            )
        }
        return header("the model \(modelName)") + parts.joined(separator: "\n")
    }

    /// The files that Xcode would make, for users who want them in the source tree.
    ///
    /// They contain all entities with a class, whatever the code generation of these is.
    package func files() -> [File] {
        model.source.entities.flatMap { entity -> [File] in
            guard let found = model.classOf(entity), found.module == nil else { return [] }
            return [
                File(name: "\(found.name)+CoreDataClass.swift", text: header(nil) + classDeclaration(entity)),
                File(name: "\(found.name)+CoreDataProperties.swift", text: header(nil) + extensions(of: entity)),
            ]
        }
    }

    private func header(_ origin: String?) -> String {
        let imports = ["CoreData", "Foundation"] + model.otherModules.sorted()
        let comment = origin.map { "// Generated from \($0). Changes are lost with the next build.\n\n" } ?? ""
        return comment + imports.map { "import \($0)\n" }.joined() + "\n"
    }

    // MARK: - Classes

    private func classDeclaration(_ entity: EntitySource) -> String {
        let name = model.spelledClass(of: entity.name)
        let access = access(ofSuperclass: model.superclass(of: entity))
        let head = "\(access)class \(name): \(model.superclass(of: entity))"
        guard style == .accessors else { return "@ManagedObject\n\(head) {\n}\n" }
        let properties = self.properties(of: entity).filter { !$0.isFetched }
        guard !properties.isEmpty else { return "\(head) {}\n" }
        var lines = [
            "\(head) {",
            "    \(access)override class var managedProperties: [CoreData.ManagedPropertyInfo] {",
            "        var properties = super.managedProperties",
        ]
        for property in properties {
            lines.append(
                "        properties.append(CoreData.ManagedPropertyInfo(name: \"\(property.name)\", "
                    + "keyPath: \\\(name).\(property.spelledName), type: (\(property.type)).self))"
            )
        }
        return (lines + ["        return properties", "    }", "}", ""]).joined(separator: "\n")
    }

    private func properties(of entity: EntitySource) -> [GeneratedProperty] {
        entity.properties.sorted { $0.facts.name < $1.facts.name }.compactMap { GeneratedProperty($0, in: model) }
    }

    // MARK: - Properties

    private func extensions(of entity: EntitySource) -> String {
        let name = model.spelledClass(of: entity.name)
        let access = access(of: [name])
        var text = """
            extension \(name) {
                @nonobjc \(access)class func fetchRequest() -> NSFetchRequest<\(name)> {
                    NSFetchRequest<\(name)>(entityName: "\(entity.name)")
                }

            """
        for property in properties(of: entity) {
            text += "\n" + declaration(of: property, name)
        }
        text += "}\n"
        for case .relationship(let relationship) in entity.properties where relationship.isToMany {
            text += "\n" + accessors(of: relationship, name)
        }
        // A subclass inherits the conformance.
        if model.parents(of: entity).allSatisfy({ model.classOf($0) == nil || $0.codeGeneration == .manual }),
            !declarations.conforms(name, to: "Identifiable")
        {
            text += "\nextension \(name): Identifiable {}\n"
        }
        return text
    }

    private func declaration(of property: GeneratedProperty, _ className: String) -> String {
        let access = access(of: [className] + property.classNames)
        let head = "\(access)var \(property.spelledName): \(property.type)"
        if property.isFetched {
            return "    \(head) { value(forKey: \"\(property.name)\") as? \(property.type.dropLast()) }\n"
        }
        guard style == .accessors else {
            let setter = property.isReadOnly ? "\(access.isEmpty ? "private(set) " : "internal(set) ")" : ""
            return "    @Managed \(access)\(setter)var \(property.spelledName): \(property.type)\n"
        }
        var lines = [
            "    nonisolated private static let \(property.slotName) = CoreData.ManagedProperty<\(property.type)>(\"\(property.name)\")",
            "    \(head) {",
            "        get { managedValue(Self.\(property.slotName)) }",
        ]
        if !property.isReadOnly { lines.append("        set { setManagedValue(newValue, Self.\(property.slotName)) }") }
        return (lines + ["    }", ""]).joined(separator: "\n")
    }

    /// The methods that change a to-many relationship.
    private func accessors(of relationship: RelationshipSource, _ className: String) -> String {
        let member = model.spelledClass(of: relationship.destination)
        let key = relationship.facts.name
        let noun = key.prefix(1).uppercased() + key.dropFirst()
        let access = access(of: [className, member])
        let collection = relationship.isOrdered ? "NSOrderedSet" : "NSSet"
        var methods: [(signature: String, call: String)] = []
        if relationship.isOrdered {
            methods += [
                (
                    "insertInto\(noun)(_ value: \(member), at idx: Int)",
                    "insertManagedMembers(value, at: idx, into: \"\(key)\")"
                ),
                ("removeFrom\(noun)(at idx: Int)", "removeManagedMembers(at: idx, from: \"\(key)\")"),
                (
                    "insertInto\(noun)(_ values: [\(member)], at indexes: NSIndexSet)",
                    "insertManagedMembers(values, at: indexes, into: \"\(key)\")"
                ),
                ("removeFrom\(noun)(at indexes: NSIndexSet)", "removeManagedMembers(at: indexes, from: \"\(key)\")"),
                (
                    "replace\(noun)(at idx: Int, with value: \(member))",
                    "replaceManagedMembers(at: idx, with: value, of: \"\(key)\")"
                ),
                (
                    "replace\(noun)(at indexes: NSIndexSet, with values: [\(member)])",
                    "replaceManagedMembers(at: indexes, with: values, of: \"\(key)\")"
                ),
            ]
        }
        methods += [
            ("addTo\(noun)(_ value: \(member))", "addManagedMembers(value, to: \"\(key)\")"),
            ("removeFrom\(noun)(_ value: \(member))", "removeManagedMembers(value, from: \"\(key)\")"),
            ("addTo\(noun)(_ values: \(collection))", "addManagedMembers(values, to: \"\(key)\")"),
            ("removeFrom\(noun)(_ values: \(collection))", "removeManagedMembers(values, from: \"\(key)\")"),
        ]
        let bodies = methods.map { method in
            style == .accessors
                ? "    \(access)func \(method.signature) { \(method.call) }\n"
                : "    @ManagedAccessor \(access)func \(method.signature)\n"
        }
        return "// MARK: Generated accessors for \(key)\nextension \(className) {\n\(bodies.joined())}\n"
    }

    // MARK: - Access

    private func access(ofSuperclass name: String) -> String { access(of: [name]) }

    /// `public`, as in Xcode, unless one of the classes is hand-written and less visible.
    private func access(of classNames: [String]) -> String {
        classNames.contains(where: { declarations.isInternal(visibleClass($0)) }) ? "" : "public "
    }

    /// The class that decides the visibility of a class: for a generated one, that of its superclass decides.
    private func visibleClass(_ name: String) -> String {
        guard let entity = model.generated.first(where: { model.spelledClass(of: $0.name) == name }),
            entity.codeGeneration == .class
        else { return name }
        return visibleClass(model.superclass(of: entity))
    }
}
