import CoreData

/// The differences between two versions of a model, in lines of text: first those that change stores, then the others.
struct ModelDifference {
    private let old: NSManagedObjectModel
    private let new: NSManagedObjectModel
    private let plan: NSMigrationPlan

    /// Whether a store of the old version can be migrated to the new one without a mapping model.
    var canBeInferred: Bool { plan.isPossible }

    init(from old: NSManagedObjectModel, to new: NSManagedObjectModel) {
        self.old = old
        self.new = new
        plan = NSMigrationPlan(from: old, to: new)
    }

    var lines: [String] {
        var lines = plan.entities.flatMap(lines)
        if lines.isEmpty { lines.append("Nothing differs.") }
        lines += plan.remarks.map { "note: \($0)" }
        if plan.isEmpty {
            lines.append("Stores need no migration: the version hashes are equal.")
        } else if plan.isPossible {
            lines.append("A mapping can be inferred.")
        } else {
            lines.append("No mapping can be inferred:")
            lines += plan.obstacles.map { "  \($0)" }
        }
        return lines
    }

    private func lines(of change: NSMigrationPlan.Entity) -> [String] {
        let sign = Self.sign(change.change)
        let former = change.sourceName.flatMap { $0 == change.name ? nil : " (was \($0))" } ?? ""
        let title = "\(sign) entity \(change.name)\(former)"
        guard let before = change.sourceName.flatMap({ old.entitiesByName[$0] }),
            let after = new.entitiesByName[change.name], change.change != .removed
        else { return change.change == .kept ? [] : [title] }
        var lines = facts(before, after)
        for property in change.properties {
            let old = property.sourceName.flatMap { before.propertiesByName[$0] }
            let new = property.change == .removed ? nil : after.propertiesByName[property.name]
            // Properties of a parent are reported with the parent.
            guard old?.owner === before || new?.owner === after else { continue }
            lines += self.lines(of: property, old, new)
        }
        lines += transients(before, after)
        return lines.isEmpty
            ? [] : [change.change == .kept ? "  entity \(change.name)" : title] + lines.map { "    \($0)" }
    }

    private static func sign(_ change: NSMigrationPlan.Change) -> String {
        switch change {
        case .kept: " "
        case .renamed, .converted: "~"
        case .added: "+"
        case .removed: "-"
        }
    }

    private func lines(
        of property: NSMigrationPlan.Property,
        _ before: NSPropertyDescription?,
        _ after: NSPropertyDescription?
    ) -> [String] {
        switch (before, after) {
        case (nil, let after?): return ["+ \(after.name): \(Self.type(of: after))"]
        case (let before?, nil): return ["- \(before.name): \(Self.type(of: before))"]
        case (let before?, let after?):
            var changes = Self.changes(before, after)
            if before.name != after.name { changes.insert("was \(before.name)", at: 0) }
            guard !changes.isEmpty else { return [] }
            return ["\(Self.sign(property.change)) \(after.name): \(changes.joined(separator: ", "))"]
        case (nil, nil): return []
        }
    }

    /// The differences in properties that no store keeps, and that are therefore in no plan.
    private func transients(_ before: NSEntityDescription, _ after: NSEntityDescription) -> [String] {
        let old = before.propertiesByName.filter { !$0.value.isPersistent && $0.value.owner === before }
        let new = after.propertiesByName.filter { !$0.value.isPersistent && $0.value.owner === after }
        let added = new.keys.filter { old[$0] == nil }.sorted().compactMap { new[$0] }
        let removed = old.keys.filter { new[$0] == nil }.sorted().compactMap { old[$0] }
        return added.map { "+ \($0.name): \(Self.type(of: $0)), not stored" }
            + removed.map { "- \($0.name): \(Self.type(of: $0)), not stored" }
    }

    private func facts(_ before: NSEntityDescription, _ after: NSEntityDescription) -> [String] {
        var lines: [String] = []
        func compare<Value: Equatable>(_ what: String, from old: Value, to new: Value, as text: (Value) -> String) {
            if old != new { lines.append("  \(what): \(text(old)) → \(text(new))") }
        }
        compare("class", from: before.managedObjectClassName ?? "", to: after.managedObjectClassName ?? "") { $0 }
        compare("parent", from: before.superentity?.name, to: after.superentity?.name) { $0 ?? "none" }
        compare("abstract", from: before.isAbstract, to: after.isAbstract) { $0 ? "yes" : "no" }
        compare("hash modifier", from: before.versionHashModifier, to: after.versionHashModifier) { $0 ?? "none" }
        let constraints = { (entity: NSEntityDescription) in
            entity.uniquenessConstraintNames.map { $0.joined(separator: "+") }.sorted()
        }
        compare("unique", from: constraints(before), to: constraints(after)) {
            $0.isEmpty ? "none" : $0.joined(separator: ", ")
        }
        let indexes = { (entity: NSEntityDescription) in
            entity.indexes.map {
                "\($0.name)(\($0.elements.map { $0.propertyName ?? "expression" }.joined(separator: " ")))"
            }
            .sorted()
        }
        compare("indexes", from: indexes(before), to: indexes(after)) {
            $0.isEmpty ? "none" : $0.joined(separator: ", ")
        }
        return lines
    }

    // MARK: - Properties

    private static func type(of property: NSPropertyDescription) -> String {
        switch property {
        case let attribute as NSAttributeDescription: return ModelCommand.typeName(of: attribute)
        case let relationship as NSRelationshipDescription:
            return "\(relationship.cardinality) \(relationship.destinationEntity?.name ?? "")"
        default: return "fetched property"
        }
    }

    /// The differences in a property that both versions have.
    private static func changes(_ before: NSPropertyDescription, _ after: NSPropertyDescription) -> [String] {
        var changes: [String] = []
        func compare(_ what: String, from old: String, to new: String) {
            if old != new { changes.append("\(what) \(old) → \(new)") }
        }
        compare("type", from: type(of: before), to: type(of: after))
        if before.isOptional != after.isOptional { changes.append(after.isOptional ? "optional now" : "required now") }
        compare("hash modifier", from: before.versionHashModifier ?? "none", to: after.versionHashModifier ?? "none")
        let rules = { (property: NSPropertyDescription) in
            property.validationPredicates.map(\.formatText).sorted().joined(separator: ", ")
        }
        compare(
            "validation",
            from: rules(before).isEmpty ? "none" : rules(before),
            to: rules(after).isEmpty ? "none" : rules(after)
        )
        if let old = before as? NSAttributeDescription, let new = after as? NSAttributeDescription {
            let value = { (attribute: NSAttributeDescription) in
                attribute.defaultValue.map { ObjectValues.json(of: $0, attribute).text } ?? "none"
            }
            compare("default", from: value(old), to: value(new))
            compare("transformer", from: old.valueTransformerName ?? "none", to: new.valueTransformerName ?? "none")
            let storage = { (attribute: NSAttributeDescription) in
                attribute.allowsExternalBinaryDataStorage ? "external" : "inside"
            }
            compare("storage", from: storage(old), to: storage(new))
            let derivation = { (attribute: NSAttributeDescription) in
                (attribute as? NSDerivedAttributeDescription)?.derivationText ?? "none"
            }
            compare("derivation", from: derivation(old), to: derivation(new))
        }
        if let old = before as? NSRelationshipDescription, let new = after as? NSRelationshipDescription {
            compare(
                "inverse",
                from: old.inverseRelationship?.name ?? "none",
                to: new.inverseRelationship?.name ?? "none"
            )
            compare("order", from: old.isOrdered ? "ordered" : "unordered", to: new.isOrdered ? "ordered" : "unordered")
            compare("delete rule", from: rule(old.deleteRule), to: rule(new.deleteRule))
        }
        return changes
    }

    private static func rule(_ rule: NSDeleteRule) -> String {
        switch rule {
        case .noActionDeleteRule: "no action"
        case .nullifyDeleteRule: "nullify"
        case .cascadeDeleteRule: "cascade"
        case .denyDeleteRule: "deny"
        }
    }
}
