import CoreData

/// Writes a model in Xcode's form: the file `contents` of an `.xcdatamodel`.
///
/// Elements and attributes are in Xcode's order, entities and properties by name. Parts for which the editor has no
/// field, such as a custom validation predicate, are left out and named in a comment, which readers ignore.
struct ModelXMLWriter {
    private let model: NSManagedObjectModel
    private let remark: [String]
    private var lines: [String] = []
    private var depth = 0
    /// Composite types by name.
    ///
    /// Xcode keeps them beside the entities.
    private var composites: [(name: String, attribute: NSCompositeAttributeDescription)] = []

    /// The text of a model.
    ///
    /// - Parameters:
    ///   - model: The model.
    ///   - remark: The text of a comment at the beginning.
    /// - Returns: The text.
    static func text(of model: NSManagedObjectModel, remark: [String] = []) -> String {
        var writer = ModelXMLWriter(model: model, remark: remark)
        writer.write()
        return writer.lines.joined(separator: "\n") + "\n"
    }

    private init(model: NSManagedObjectModel, remark: [String]) {
        self.model = model
        self.remark = remark
    }

    // MARK: - Elements

    /// The attributes of an element in their order; those without a value are left out.
    private typealias Attributes = [(name: String, value: String?)]

    private mutating func element(_ name: String, _ attributes: Attributes, content: ((inout Self) -> Void)? = nil) {
        let list = attributes.compactMap { name, value in value.map { " \(name)=\"\(Self.escaped($0))\"" } }.joined()
        let start = lines.count
        line("<\(name)\(list)>")
        depth += 1
        content?(&self)
        depth -= 1
        if lines.count == start + 1 {
            lines[start] = lines[start].dropLast() + "/>"
        } else {
            line("</\(name)>")
        }
    }

    private mutating func line(_ text: String) { lines.append(String(repeating: "    ", count: depth) + text) }

    private mutating func comment(_ text: String) {
        // The replacement is made twice, for a row of dashes.
        let text = text.replacingOccurrences(of: "--", with: "- -").replacingOccurrences(of: "--", with: "- -")
        line("<!-- \(text) -->")
    }

    private static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\u{0}"..."\u{1F}": result += "&#\(scalar.value);"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private static func yes(_ flag: Bool) -> String? { flag ? "YES" : nil }

    // MARK: - The model

    private mutating func write() {
        lines.append("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>")
        let attributes: Attributes = [
            ("type", "com.apple.IDECoreDataModeler.DataModel"), ("documentVersion", "1.0"),
            ("lastSavedToolsVersion", "22758"), ("systemVersion", "23E224"), ("minimumToolsVersion", "Automatic"),
            ("sourceLanguage", "Swift"), ("userDefinedModelVersionIdentifier", model.identifierText),
        ]
        element("model", attributes) { writer in
            for text in writer.remark { writer.comment(text) }
            for entity in writer.model.sortedEntities { writer.write(entity) }
            // A composite type may contain others, which are found while it is written.
            var done = 0
            while done < writer.composites.count {
                let (name, attribute) = writer.composites[done]
                writer.element("composite", [("name", name)]) { writer in
                    for element in attribute.elements { writer.write(element) }
                }
                done += 1
            }
            for (name, request) in writer.model.fetchRequestTemplatesByName.sorted(by: { $0.key < $1.key }) {
                writer.write(request, name: name)
            }
            for (name, members) in writer.model.ownConfigurations {
                writer.element("configuration", [("name", name)]) { writer in
                    for member in members { writer.element("memberEntity", [("name", member)]) }
                }
            }
        }
    }

    private mutating func write(_ entity: NSEntityDescription) {
        let className = entity.managedObjectClassName == "NSManagedObject" ? nil : entity.managedObjectClassName
        let attributes: Attributes = [
            ("name", entity.name), ("representedClassName", className), ("isAbstract", Self.yes(entity.isAbstract)),
            ("parentEntity", entity.superentity?.name), ("elementID", entity.formerName),
            ("versionHashModifier", entity.versionHashModifier), ("syncable", "YES"),
        ]
        element("entity", attributes) { writer in
            for attribute in entity.ownAttributes { writer.write(attribute) }
            for relationship in entity.ownRelationships { writer.write(relationship) }
            for property in entity.ownFetchedProperties { writer.write(property) }
            for index in entity.indexes { writer.write(index) }
            writer.writeCompoundIndexes(of: entity)
            writer.writeConstraints(of: entity)
            writer.write(userInfo: entity.userInfo)
        }
    }

    private mutating func writeCompoundIndexes(of entity: NSEntityDescription) {
        guard !entity.compoundIndexNames.isEmpty else { return }
        element("compoundIndexes", []) { writer in
            for names in entity.compoundIndexNames {
                writer.element("compoundIndex", []) { writer in
                    for name in names { writer.element("index", [("value", name)]) }
                }
            }
        }
    }

    private mutating func writeConstraints(of entity: NSEntityDescription) {
        guard !entity.uniquenessConstraintNames.isEmpty else { return }
        element("uniquenessConstraints", []) { writer in
            for names in entity.uniquenessConstraintNames {
                writer.element("uniquenessConstraint", []) { writer in
                    for name in names { writer.element("constraint", [("value", name)]) }
                }
            }
        }
    }

    private mutating func write(userInfo: [AnyHashable: Any]?) {
        let entries = NSPropertyDescription.entries(of: userInfo)
        guard !entries.isEmpty else { return }
        element("userInfo", []) { writer in
            for (key, value) in entries { writer.element("entry", [("key", key), ("value", value)]) }
        }
    }

    private mutating func write(_ index: NSFetchIndexDescription) {
        let predicate = index.partialIndexPredicate?.formatText
        element("fetchIndex", [("name", index.name), ("partialIndexPredicate", predicate)]) { writer in
            for item in index.elements {
                let computed = item.property as? NSExpressionDescription
                let type = computed.map { Self.typeName($0.resultType) }
                writer.element(
                    "fetchIndexElement",
                    [
                        ("property", computed == nil ? item.propertyName : nil),
                        ("expression", computed?.expression?.description), ("expressionType", type),
                        ("type", item.collationType == .rTree ? "RTree" : "Binary"),
                        ("order", item.isAscending ? "ascending" : "descending"),
                    ]
                )
            }
        }
    }

    // MARK: - Properties

    private mutating func write(_ attribute: NSAttributeDescription) {
        let limits = AttributeLimits(of: attribute)
        let isDate = attribute.type == .date
        func limit(_ value: Any?) -> String? { value.flatMap { Self.text(of: $0, attribute.type) } }
        let derived = attribute as? NSDerivedAttributeDescription
        let composite = attribute as? NSCompositeAttributeDescription
        let type = attribute.type == .undefined ? nil : Self.typeName(attribute.type)
        let defaultText = attribute.defaultValue.flatMap { Self.text(of: $0, attribute.type) }
        let attributes: Attributes = [
            ("name", attribute.name), ("optional", Self.yes(attribute.isOptional)),
            ("transient", Self.yes(attribute.isTransient)), ("attributeType", type),
            ("composite", composite.map { compositeName(of: $0) }),
            (isDate ? "minDateTimeInterval" : "minValueString", limit(limits.minimum)),
            (isDate ? "maxDateTimeInterval" : "maxValueString", limit(limits.maximum)),
            ("regularExpressionString", limits.pattern),
            (isDate ? "defaultDateTimeInterval" : "defaultValueString", defaultText),
            ("valueTransformerName", attribute.valueTransformerName),
            ("customClassName", attribute.type == .transformable ? attribute.attributeValueClassName : nil),
            ("usesScalarValueType", Self.scalar(attribute)),
            ("allowsExternalBinaryDataStorage", Self.yes(attribute.allowsExternalBinaryDataStorage)),
            ("derived", Self.yes(derived != nil)), ("derivationExpression", derived?.writtenDerivation),
            ("preserveAfterDeletion", Self.yes(attribute.preservesValueInHistoryOnDeletion)),
            ("indexed", Self.yes(attribute.isIndexed)), ("elementID", attribute.formerName),
            ("versionHashModifier", attribute.versionHashModifier),
        ]
        element("attribute", attributes) { writer in
            if attribute.defaultValue != nil, defaultText == nil {
                writer.comment("left out: a default value of type \(attribute.attributeType.described)")
            }
            for other in limits.others { writer.comment("left out: \(other.remark)") }
            writer.write(userInfo: attribute.userInfo)
        }
    }

    /// The name of the type in files.
    ///
    /// For bytes it is not the one that the editor shows.
    private static func typeName(_ type: NSAttributeDescription.AttributeType) -> String {
        type == .binaryData ? "Binary" : type.rawValue.described
    }

    /// Names the validation of a property that is not an attribute.
    ///
    /// The editor has no fields for it.
    private mutating func writeValidation(of property: NSPropertyDescription) {
        for rule in ValidationRule.all(of: property) { comment("left out: \(rule.remark)") }
    }

    /// Whether Xcode's classes use a number in place of an object; `nil` if the editor has no such choice.
    private static func scalar(_ attribute: NSAttributeDescription) -> String? {
        switch attribute.type {
        case .integer16, .integer32, .integer64, .double, .float, .boolean: "YES"
        case .date, .uuid: "NO"
        default: nil
        }
    }

    /// A value in the editor's form; `nil` if it has no text.
    private static func text(of value: Any, _ type: NSAttributeDescription.AttributeType) -> String? {
        switch value {
        case let date as Date: "\(date.timeIntervalSinceReferenceDate)"
        case let data as Data: data.base64EncodedString()
        case let uuid as UUID: uuid.uuidString
        case let url as URL: url.absoluteString
        case let text as String: text
        case let number as NSNumber where type == .boolean: number.boolValue ? "YES" : "NO"
        case let number as NSNumber where type == .double: "\(number.doubleValue)"
        case let number as NSNumber where type == .float: "\(number.floatValue)"
        case let number as NSNumber where type != .transformable: "\(number)"
        default: nil
        }
    }

    /// The name of the composite type for an attribute's elements.
    ///
    /// It is the type's own name, unless that already has another meaning.
    private mutating func compositeName(of attribute: NSCompositeAttributeDescription) -> String {
        let base = attribute.name.prefix(1).uppercased() + attribute.name.dropFirst()
        var name = base
        var number = 2
        while let known = composites.first(where: { $0.name == name }) {
            if known.attribute.elements == attribute.elements { return name }
            name = "\(base)\(number)"
            number += 1
        }
        composites.append((name, attribute))
        return name
    }

    private mutating func write(_ relationship: NSRelationshipDescription) {
        let inverse = relationship.inverseRelationship
        let most = relationship.maxCount == 0 ? nil : "\(relationship.maxCount)"
        let rule =
            switch relationship.deleteRule {
            case .noActionDeleteRule: "No Action"
            case .nullifyDeleteRule: "Nullify"
            case .cascadeDeleteRule: "Cascade"
            case .denyDeleteRule: "Deny"
            }
        let attributes: Attributes = [
            ("name", relationship.name), ("optional", Self.yes(relationship.isOptional)),
            ("transient", Self.yes(relationship.isTransient)), ("toMany", Self.yes(relationship.isToMany)),
            ("minCount", relationship.minCount == 0 ? nil : "\(relationship.minCount)"), ("maxCount", most),
            ("deletionRule", rule), ("ordered", Self.yes(relationship.isOrdered)),
            ("destinationEntity", relationship.destinationEntity?.name), ("inverseName", inverse?.name),
            ("inverseEntity", inverse == nil ? nil : relationship.destinationEntity?.name),
            ("indexed", Self.yes(relationship.isIndexed)), ("elementID", relationship.formerName),
            ("versionHashModifier", relationship.versionHashModifier),
        ]
        element("relationship", attributes) { writer in
            writer.writeValidation(of: relationship)
            writer.write(userInfo: relationship.userInfo)
        }
    }

    private mutating func write(_ property: NSFetchedPropertyDescription) {
        element("fetchedProperty", [("name", property.name), ("optional", Self.yes(property.isOptional))]) { writer in
            if let request = property.fetchRequest { writer.write(request, name: "fetchedPropertyFetchRequest") }
            writer.writeValidation(of: property)
            writer.write(userInfo: property.userInfo)
        }
    }

    private mutating func write(_ request: NSFetchRequest<NSFetchRequestResult>, name: String) {
        func count(_ number: Int) -> String? { number == 0 ? nil : "\(number)" }
        let result = request.resultType.rawValue
        element(
            "fetchRequest",
            [
                ("name", name), ("entity", request.entity?.name ?? request.entityName),
                ("predicateString", request.predicate?.formatText), ("fetchLimit", count(request.fetchLimit)),
                ("fetchOffset", count(request.fetchOffset)), ("fetchBatchSize", count(request.fetchBatchSize)),
                ("resultType", result == 0 ? nil : "\(result)"),
                ("includeSubentities", request.includesSubentities ? nil : "NO"),
                ("includePropertyValues", request.includesPropertyValues ? nil : "NO"),
                ("includesPendingChanges", request.includesPendingChanges ? nil : "NO"),
                ("returnObjectsAsFaults", request.returnsObjectsAsFaults ? nil : "NO"),
                ("returnDistinctResults", Self.yes(request.returnsDistinctResults)),
            ]
        ) { writer in
            if request.sortDescriptors?.isEmpty == false { writer.comment("left out: the sort descriptors") }
        }
    }
}
