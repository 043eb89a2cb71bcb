import CoreData

/// Prints a model.
enum ModelCommand: Command {
    static let name = "model"
    static let summary =
        "Prints a model in one of several forms, or with --diff what differs in two versions and whether a mapping can be inferred."
    static let options: [Option] = [
        Option(
            "--as",
            "FORM",
            help: "\(ModelForm.allCases.map(\.rawValue).joined(separator: ", ")) (default: text)"
        ),
        Option(
            "--output",
            "PATH",
            help: "where to write it: a file, or for xml also an .xcdatamodel or an .xcdatamodeld (all versions)"
        ),
        Option("--diff", help: "compares two models, OLD and NEW; exits 1 if no mapping can be inferred"),
    ]
    static let operand: String? = "PATH"
    static let operandCount = 1...2

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        guard !arguments.has("--diff") else { return try compare(arguments, print) }
        guard arguments.operands.count == 1 else { throw UsageError("two models are for --diff only") }
        let name = arguments["--as"] ?? ModelForm.text.rawValue
        guard let form = ModelForm(rawValue: name) else {
            let known = ModelForm.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError("“\(name)” is no form of a model; there are \(known)")
        }
        let source = try ModelSource(arguments.operands[0])
        guard let path = arguments["--output"] else {
            try form.lines(of: source.current).forEach(print)
            return .success
        }
        if form == .xml {
            try ModelPackageWriter.write(source, to: path)
        } else {
            guard !FileManager.default.fileExists(atPath: path) else {
                throw UsageError("there is something at \(path) already, which is not replaced")
            }
            let text = try form.lines(of: source.current).joined(separator: "\n") + "\n"
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        }
        print("\(path) is written.")
        return .success
    }

    private static func compare(_ arguments: Arguments, _ print: (String) -> Void) throws -> ExitCode {
        guard arguments.operands.count == 2 else { throw UsageError("--diff takes two models, OLD and NEW") }
        guard arguments["--as"] == nil, arguments["--output"] == nil else {
            throw UsageError("--diff prints text, and goes with neither --as nor --output")
        }
        let models = try arguments.operands.map { try ModelSource($0).current.model }
        let difference = ModelDifference(from: models[0], to: models[1])
        difference.lines.forEach(print)
        return difference.canBeInferred ? .success : .problemsFound
    }

    /// The model as lines of text, entities and properties by name.
    static func lines(of model: NSManagedObjectModel) -> [String] {
        let identifiers = model.versionIdentifiers.map { "\($0)" }.filter { !$0.isEmpty }.sorted()
        var lines = columns(
            [["Versions", identifiers.joined(separator: ", ")], ["Checksum", model.versionChecksum]],
            indent: 0
        )
        let configurations = model.configurations.filter { $0 != "PF_DEFAULT_CONFIGURATION_NAME" }
        for name in configurations.sorted() {
            let members = model.entities(forConfigurationName: name)?.compactMap(\.name).sorted() ?? []
            lines.append("Configuration \(name): \(members.joined(separator: ", "))")
        }
        for entity in model.entities.sorted(by: { ($0.name ?? "") < ($1.name ?? "") }) {
            lines.append("")
            lines += self.lines(of: entity)
        }
        return lines
    }

    private static func lines(of entity: NSEntityDescription) -> [String] {
        var title = entity.isAbstract ? "Abstract entity" : "Entity"
        title += " " + (entity.name ?? "")
        if let parent = entity.superentity?.name { title += ": \(parent)" }
        var lines = [title, "  hash \(entity.versionHash.base64EncodedString())"]
        // The properties of the parent are printed with the parent.
        let inherited = Set((entity.superentity?.propertiesByName ?? [:]).keys)
        let own = entity.propertiesByName.filter { !inherited.contains($0.key) }.sorted { $0.key < $1.key }.map(\.value)
        lines += columns(
            own.compactMap { $0 as? NSAttributeDescription }.map(row)
                + own.compactMap { $0 as? NSRelationshipDescription }.map(row)
                + own.compactMap { $0 as? NSFetchedPropertyDescription }.map { [$0.name, "fetched property"] }
        )
        for constraint in entity.uniquenessConstraints {
            let names = constraint.map { ($0 as? NSPropertyDescription)?.name ?? "\($0)" }
            lines.append("  unique \(names.joined(separator: ", "))")
        }
        for index in entity.indexes {
            lines.append("  index \(index.name) (\(index.elements.map(text).joined(separator: ", ")))")
        }
        return lines
    }

    private static func row(_ attribute: NSAttributeDescription) -> [String] {
        var notes: [String] = []
        if !attribute.isOptional { notes.append("required") }
        if attribute.isTransient { notes.append("transient") }
        if let value = attribute.defaultValue {
            notes.append("default \(ObjectValues.json(of: value, attribute).text)")
        }
        if attribute.allowsExternalBinaryDataStorage { notes.append("external storage") }
        if attribute.preservesValueInHistoryOnDeletion { notes.append("kept in history") }
        if let name = attribute.valueTransformerName { notes.append("transformer \(name)") }
        return [attribute.name, typeName(of: attribute), notes.joined(separator: ", ")]
    }

    private static func row(_ relationship: NSRelationshipDescription) -> [String] {
        var notes: [String] = []
        if !relationship.isOptional { notes.append("required") }
        if relationship.isOrdered { notes.append("ordered") }
        if relationship.minCount > 0 { notes.append("at least \(relationship.minCount)") }
        if relationship.maxCount > 1 { notes.append("at most \(relationship.maxCount)") }
        if let inverse = relationship.inverseRelationship?.name { notes.append("inverse \(inverse)") }
        switch relationship.deleteRule {
        case .noActionDeleteRule: notes.append("no action on delete")
        case .nullifyDeleteRule: notes.append("nullify on delete")
        case .cascadeDeleteRule: notes.append("cascade on delete")
        case .denyDeleteRule: notes.append("deny delete")
        }
        let arrow = relationship.isToMany ? "→→ " : "→ "
        return [relationship.name, arrow + (relationship.destinationEntity?.name ?? ""), notes.joined(separator: ", ")]
    }

    private static func text(of element: NSFetchIndexElementDescription) -> String {
        var text = element.propertyName ?? "expression"
        if element.collationType == .rTree { text += " r-tree" }
        return element.isAscending ? text : text + " descending"
    }

    /// The name of the type in Xcode's editor.
    static func typeName(of attribute: NSAttributeDescription) -> String {
        let name = attribute.attributeType.described
        guard let composite = attribute as? NSCompositeAttributeDescription else {
            return attribute is NSDerivedAttributeDescription ? "derived " + name : name
        }
        let elements = composite.elements.sorted { $0.name < $1.name }.map { "\($0.name): \(typeName(of: $0))" }
        return "\(name) (\(elements.joined(separator: ", ")))"
    }
}
