import CoreData

/// Writes a model as Swift.
///
/// It is a namespace for the version, with a class for each entity, in the form that `NSManagedObjectModel(for:)`
/// takes. Parts that classes cannot express, such as named queries, are written as code that completes the model, or
/// named in a comment.
struct ModelSwiftWriter {
    private let model: NSManagedObjectModel
    private let remark: [String]
    private let names: SwiftNames
    private var lines: [String] = []
    private var composites: [(name: String, attribute: NSCompositeAttributeDescription)] = []
    /// The relationships whose inverse the other side names.
    private var named = Set<ObjectIdentifier>()

    /// The lines of a model, in a namespace with the given name.
    ///
    /// Characters that Swift names cannot have become underscores.
    ///
    /// - Parameters:
    ///   - model: The model.
    ///   - name: The name of the namespace.
    ///   - remark: The text of a comment at the beginning.
    /// - Returns: The lines.
    static func lines(of model: NSManagedObjectModel, name: String, remark: [String] = []) -> [String] {
        var writer = ModelSwiftWriter(model, remark)
        writer.write(SwiftText.typeName(name))
        return writer.lines
    }

    private init(_ model: NSManagedObjectModel, _ remark: [String]) {
        self.model = model
        self.remark = remark
        names = SwiftNames(model)
        for pair in RelationshipPair.all(of: model) {
            // A key path on both sides would be circular.
            if let second = pair.second { named.insert(ObjectIdentifier(second)) }
        }
    }

    // MARK: - The model

    private mutating func write(_ name: String) {
        lines = ["import CoreData", ""]
        for text in remark { comment(text, indent: "") }
        lines.append("enum \(name): ManagedModelVersion {")
        lines.append("    static let versionIdentifier = \(SwiftText.literal(model.identifierText))")
        lines.append("")
        lines.append("    static var entities: [NSManagedObject.Type] {")
        let classes = model.sortedEntities.map { "\(names[$0]).self" }
        lines.append("        [\(classes.joined(separator: ", "))]")
        lines.append("    }")
        for entity in model.sortedEntities { write(entity) }
        var done = 0
        while done < composites.count {
            let (name, attribute) = composites[done]
            write(attribute, as: name)
            done += 1
        }
        writeTemplates()
        lines.append("}")
    }

    private mutating func writeTemplates() {
        let templates = model.fetchRequestTemplatesByName.sorted { $0.key < $1.key }
        guard !templates.isEmpty else { return }
        lines += [
            "", "    /// The model with its named queries.", "    static func model() throws -> NSManagedObjectModel {",
            "        let model = try NSManagedObjectModel(version: Self.self)",
        ]
        for (index, (name, request)) in templates.enumerated() {
            let variable = "request\(index + 1)"
            let entity = request.entity?.name ?? request.entityName ?? ""
            lines.append(
                "        let \(variable) = NSFetchRequest<NSFetchRequestResult>(entityName: \(SwiftText.literal(entity)))"
            )
            lines.append("        \(variable).entity = model.entitiesByName[\(SwiftText.literal(entity))]")
            if let predicate = request.predicate {
                lines.append(
                    "        \(variable).predicate = NSPredicate(format: \(SwiftText.literal(predicate.formatText)))"
                )
            }
            if request.fetchLimit > 0 { lines.append("        \(variable).fetchLimit = \(request.fetchLimit)") }
            if request.fetchOffset > 0 { lines.append("        \(variable).fetchOffset = \(request.fetchOffset)") }
            if request.fetchBatchSize > 0 {
                lines.append("        \(variable).fetchBatchSize = \(request.fetchBatchSize)")
            }
            if !request.includesSubentities { lines.append("        \(variable).includesSubentities = false") }
            if request.returnsDistinctResults { lines.append("        \(variable).returnsDistinctResults = true") }
            if request.resultType.rawValue != 0 {
                lines.append(
                    "        \(variable).resultType = NSFetchRequestResultType(rawValue: \(request.resultType.rawValue))"
                )
            }
            if request.sortDescriptors?.isEmpty == false { comment("Left out: the sort descriptors.") }
            lines.append("        model.setFetchRequestTemplate(\(variable), forName: \(SwiftText.literal(name)))")
        }
        lines += ["        return model", "    }"]
    }

    // MARK: - Classes

    private mutating func write(_ entity: NSEntityDescription) {
        let traits = self.traits(of: entity)
        let parent = entity.superentity.map { names[$0] } ?? "NSManagedObject"
        lines.append("")
        lines.append(Self.attribute("ManagedObject", traits))
        lines.append("    \(entity.subentities.isEmpty ? "final " : "")class \(names[entity]): \(parent) {")
        for attribute in entity.ownAttributes { write(attribute, of: entity) }
        for relationship in entity.ownRelationships { write(relationship) }
        for property in entity.ownFetchedProperties { write(property) }
        lines.append("    }")
    }

    /// An attribute on one line, or with each trait on a separate line if that is too long.
    private static func attribute(_ name: String, _ traits: [String], indent: String = "    ") -> String {
        guard !traits.isEmpty else { return "\(indent)@\(name)" }
        let line = "\(indent)@\(name)(\(traits.joined(separator: ", ")))"
        guard line.count > 100 else { return line }
        return "\(indent)@\(name)(\n" + traits.map { "\(indent)    \($0)" }.joined(separator: ",\n") + "\n\(indent))"
    }

    private func traits(of entity: NSEntityDescription) -> [String] {
        var traits: [String] = []
        if let name = entity.name, name != names[entity] { traits.append(".name(\(SwiftText.literal(name)))") }
        if entity.isAbstract { traits.append(".abstract") }
        if let former = entity.formerName { traits.append(".renamed(from: \(SwiftText.literal(former)))") }
        let own = Self.ownConstraints(of: entity)
        for constraint in entity.uniquenessConstraintNames where !own.contains(constraint) {
            traits.append(".unique(\(SwiftText.list(constraint)))")
        }
        for index in entity.indexes { traits.append(text(of: index)) }
        for names in entity.compoundIndexNames { traits.append(".compoundIndex(\(SwiftText.list(names)))") }
        let configurations = model.ownConfigurations.filter { $0.members.contains(entity.name ?? "") }.map(\.name)
        if !configurations.isEmpty { traits.append(".configurations(\(SwiftText.list(configurations)))") }
        if let modifier = entity.versionHashModifier { traits.append(".hashModifier(\(SwiftText.literal(modifier)))") }
        if let facts = SwiftText.userInfo(entity.userInfo) { traits.append(facts) }
        return traits
    }

    /// The constraints that are written at properties.
    ///
    /// A constraint of a single property is written there, unless that would change the order of the constraints,
    /// which is the order of the statements.
    private static func ownConstraints(of entity: NSEntityDescription) -> [[String]] {
        let names = (entity.ownAttributes + entity.ownRelationships).map(\.name)
        let constraints = entity.uniquenessConstraintNames
        let own = names.map { [$0] }.filter { constraints.contains($0) }
        return own + constraints.filter { !own.contains($0) } == constraints ? own : []
    }

    private func text(of index: NSFetchIndexDescription) -> String {
        let elements = index.elements.map { element in
            if let computed = element.property as? NSExpressionDescription, let expression = computed.expression {
                let direction = element.isAscending ? "" : ", isAscending: false"
                let type = SwiftText.attributeType(computed.resultType)
                return ".expression(\(SwiftText.literal(expression.description)), type: \(type)\(direction))"
            }
            let name = SwiftText.literal(element.propertyName ?? "")
            if element.collationType == .rTree { return ".rTree(\(name))" }
            return element.isAscending ? name : ".descending(\(name))"
        }
        let predicate = index.partialIndexPredicate.map { ", where: \(SwiftText.literal($0.formatText))" } ?? ""
        return ".index(\(SwiftText.literal(index.name)), on: \(elements.joined(separator: ", "))\(predicate))"
    }

    // MARK: - Properties

    /// Writes a comment on one line, whatever the text is.
    private mutating func comment(_ text: String, indent: String = "        ") {
        lines.append("\(indent)// \(text.split(whereSeparator: \.isNewline).joined(separator: " "))")
    }

    private mutating func property(_ name: String, _ type: String, traits: [String], comments: [String] = []) {
        for text in comments { comment(text) }
        let attribute = Self.attribute("Managed", traits, indent: "        ")
        let declaration = "var \(SwiftText.identifier(name)): \(type)"
        if attribute.contains("\n") || attribute.count + declaration.count > 110 {
            lines.append(attribute)
            lines.append("        \(declaration)")
        } else {
            lines.append("\(attribute) \(declaration)")
        }
    }

    /// The traits that every property may have.
    private static func common(_ property: NSPropertyDescription) -> [String] {
        var traits: [String] = []
        if property.isTransient { traits.append(".transient") }
        if property.isIndexed { traits.append(".indexed") }
        if let former = property.formerName { traits.append(".renamed(from: \(SwiftText.literal(former)))") }
        if let modifier = property.versionHashModifier {
            traits.append(".hashModifier(\(SwiftText.literal(modifier)))")
        }
        if let facts = SwiftText.userInfo(property.userInfo) { traits.append(facts) }
        return traits
    }

    private mutating func write(_ attribute: NSAttributeDescription, of entity: NSEntityDescription) {
        var traits = Self.common(attribute)
        if Self.ownConstraints(of: entity).contains([attribute.name]) { traits.insert(".unique", at: 0) }
        var comments: [String] = []
        let mark = attribute.isOptional ? "?" : ""
        var type = SwiftText.type(of: attribute) + mark
        if let composite = attribute as? NSCompositeAttributeDescription {
            type = compositeName(of: composite) + mark
        } else if attribute.type == .transformable {
            traits.append(
                attribute.valueTransformerName.map { ".transformable(by: \(SwiftText.literal($0)))" }
                    ?? ".transformable"
            )
        } else if attribute.type == .undefined || attribute.type == .objectID {
            // The property may have a value of any type, or none.
            type = "Any?"
            if attribute.type == .objectID { traits.append(".type(.objectID)") }
            if !attribute.isOptional { traits.append(".required") }
        }
        if attribute.type != .transformable, let name = attribute.valueTransformerName {
            comments.append("Left out: the value transformer \(name), which only a transformable attribute uses.")
        }
        if let derived = attribute as? NSDerivedAttributeDescription, let text = derived.writtenDerivation {
            traits.append(".derived(from: \(SwiftText.literal(text)))")
        }
        if attribute.allowsExternalBinaryDataStorage { traits.append(".externalStorage") }
        if attribute.preservesValueInHistoryOnDeletion { traits.append(".preservedOnDeletion") }
        if let value = attribute.defaultValue {
            if let text = SwiftText.value(value, attribute.type) {
                traits.append(".default(\(text))")
            } else {
                comments.append("Left out: a default value of type \(attribute.attributeType.described).")
            }
        }
        traits += limits(of: attribute, &comments)
        property(attribute.name, type, traits: traits, comments: comments)
    }

    private func limits(of attribute: NSAttributeDescription, _ comments: inout [String]) -> [String] {
        // The traits of a composite attribute do not concern values.
        guard attribute.type != .composite else {
            comments += Self.leftOut(ValidationRule.all(of: attribute))
            return []
        }
        let limits = AttributeLimits(of: attribute)
        var traits: [String] = []
        if attribute.type == .string {
            let (least, most) = (limits.minimum as? Int, limits.maximum as? Int)
            if let least, let most, least <= most {
                traits.append(".length(\(least)...\(most))")
            } else {
                if let least { traits.append(".length(\(least)...)") }
                if let most { traits.append(".length(...\(most))") }
            }
        } else {
            for (value, name) in [(limits.minimum, "minimum"), (limits.maximum, "maximum")] {
                guard let value else { continue }
                if let text = SwiftText.value(value, attribute.type) {
                    traits.append(".\(name)(\(text))")
                } else {
                    comments.append("Left out: the \(name) \(value).")
                }
            }
        }
        if let pattern = limits.pattern { traits.append(".matches(\(SwiftText.literal(pattern)))") }
        for rule in limits.others {
            let format = rule.predicate.formatText
            if let message = rule.message, (try? NSPredicate(validating: format)) != nil {
                traits.append(
                    ".validated(\(SwiftText.literal(format)), message: \(SwiftText.literal(message)))"
                )
            } else {
                comments += Self.leftOut([rule])
            }
        }
        return traits
    }

    private static func leftOut(_ rules: [ValidationRule]) -> [String] {
        rules.map { "Left out: \($0.remark)." }
    }

    private mutating func write(_ relationship: NSRelationshipDescription) {
        guard let destination = relationship.destinationEntity else { return }
        var traits: [String] = []
        if let inverse = relationship.inverseRelationship {
            if inverse === relationship {
                traits.append(".inverse(\(SwiftText.literal(inverse.name)))")
            } else if !named.contains(ObjectIdentifier(relationship)) {
                traits.append(".inverse(\\\(names[destination]).\(SwiftText.identifier(inverse.name)))")
            }
        } else {
            traits.append(".noInverse")
        }
        switch relationship.deleteRule {
        case .nullifyDeleteRule: break
        case .noActionDeleteRule: traits.append(".deleteRule(.noAction)")
        case .cascadeDeleteRule: traits.append(".deleteRule(.cascade)")
        case .denyDeleteRule: traits.append(".deleteRule(.deny)")
        }
        switch (relationship.minCount, relationship.maxCount) {
        case (0, 0), (0, 1): break
        case (let least, 1): traits.append(".count(least: \(least), most: 1)")
        case (let least, 0): traits.append(".count(\(least)...)")
        case (let least, let most) where most < least: traits.append(".count(least: \(least), most: \(most))")
        case (let least, let most): traits.append(".count(\(least)...\(most))")
        }
        if !relationship.isOptional { traits.append(".required") }
        if let owner = relationship.owner, Self.ownConstraints(of: owner).contains([relationship.name]) {
            traits.append(".unique")
        }
        traits += Self.common(relationship)
        let type =
            relationship.isToMany
            ? (relationship.isOrdered ? "[\(names[destination])]" : "Set<\(names[destination])>")
            : "\(names[destination])?"
        property(
            relationship.name,
            type,
            traits: traits,
            comments: Self.leftOut(ValidationRule.all(of: relationship))
        )
    }

    private mutating func write(_ fetched: NSFetchedPropertyDescription) {
        guard let destination = fetched.fetchRequest?.entity else {
            return comment("Left out: the fetched property \(fetched.name), which has no request.")
        }
        let predicate = fetched.fetchRequest?.predicate?.formatText ?? "TRUEPREDICATE"
        var traits = [".fetched(where: \(SwiftText.literal(predicate)))"]
        if !fetched.isOptional { traits.append(".required") }
        property(
            fetched.name,
            "[\(names[destination])]",
            traits: traits + Self.common(fetched),
            comments: Self.leftOut(ValidationRule.all(of: fetched))
        )
    }

    // MARK: - Composites

    /// The name of the structure for a composite attribute.
    ///
    /// Attributes with the same elements share one.
    private mutating func compositeName(of attribute: NSCompositeAttributeDescription) -> String {
        let base = SwiftText.typeName(attribute.name)
        var name = base
        var number = 2
        while true {
            let known = composites.first { $0.name == name }
            if let known, known.attribute.elements == attribute.elements { return name }
            if known == nil, !names.contains(name) { break }
            name = "\(base)\(number)"
            number += 1
        }
        composites.append((name, attribute))
        return name
    }

    private mutating func write(_ composite: NSCompositeAttributeDescription, as name: String) {
        lines += ["", "    @ManagedComposite", "    struct \(name) {"]
        for element in composite.elements {
            let inner = (element as? NSCompositeAttributeDescription).map { compositeName(of: $0) }
            let type = (inner ?? SwiftText.type(of: element)) + (element.isOptional ? "?" : "")
            let value = element.defaultValue.flatMap { SwiftText.value($0, element.type) }.map { " = \($0)" } ?? ""
            // The properties of a structure have no traits.
            for text in Self.leftOut(ValidationRule.all(of: element)) { comment(text) }
            lines.append("        var \(SwiftText.identifier(element.name)): \(type)\(value)")
        }
        lines.append("    }")
    }
}
