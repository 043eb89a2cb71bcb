import CoreDataEssentials
import StrataArchives
import StrataPredicates
import StrataRows

/// Turns archived properties, requests and indexes into descriptions.
///
/// References to other entities are set later.
struct CompiledPropertyReader {
    private let archive: KeyedArchive

    /// Whether an unreadable predicate or default value is an error; otherwise it is omitted.
    private let isStrict: Bool

    private let budget: ReadingBudget
    private let values: ArchivedValues

    init(archive: KeyedArchive, isStrict: Bool, budget: ReadingBudget) {
        self.archive = archive
        self.isStrict = isStrict
        self.budget = budget
        values = ArchivedValues(archive)
    }

    /// The property that an archived object describes.
    func property(from object: KeyedArchive.Object, entity: String) throws(ModelError) -> NSPropertyDescription {
        guard let name = object.string("NSPropertyName"), !name.isEmpty else {
            throw ModelError(.invalid, entity: entity, "a property has no name")
        }
        let place = Place(entity: entity, property: name)
        let classes = object.classNames
        let property: NSPropertyDescription
        if classes.contains("NSAttributeDescription") {
            property = try attribute(from: object, place, depth: 0)
        } else if classes.contains("NSRelationshipDescription") {
            property = try relationship(from: object, place)
        } else if classes.contains("NSFetchedPropertyDescription") {
            property = NSFetchedPropertyDescription()
        } else {
            throw place.failure("its kind is unknown: \(classes.first ?? "no class")")
        }
        adoptFacts(of: object, name: name, into: property)
        try adoptValidation(of: object, into: property, place)
        return property
    }

    private func adoptFacts(of object: KeyedArchive.Object, name: String, into property: NSPropertyDescription) {
        property.name = name
        property.isOptional = object.flag("NSIsOptional")
        property.isTransient = object.flag("NSIsTransient") && !(property is NSFetchedPropertyDescription)
        property.isIndexed = object.flag("NSIsIndexed")
        property.versionHashModifier = object.string("NSVersionHashModifier")
        property.renamingIdentifier = object.string("NSRenamingIdentifier").flatMap { $0 == name ? nil : $0 }
        property.userInfo = userInfo(of: object)
    }

    /// The user info in an object; empty if there is none or it cannot be read.
    func userInfo(of object: KeyedArchive.Object) -> [AnyHashable: Any] {
        value(of: object, "NSUserInfo") as? [AnyHashable: Any] ?? [:]
    }

    private func value(of object: KeyedArchive.Object, _ field: String) -> Any? {
        guard let number = object.reference(field), number != 0 else { return nil }
        return values.value(number)
    }

    private func adoptValidation(
        of object: KeyedArchive.Object,
        into property: NSPropertyDescription,
        _ place: Place
    ) throws(ModelError) {
        let numbers = object.object("NSValidationPredicates")?.references("NS.objects") ?? []
        let warnings = value(of: object, "NSValidationWarnings") as? [Any] ?? []
        var predicates: [NSPredicate] = []
        var kept: [Any] = []
        for (index, number) in numbers.enumerated() {
            guard let predicate = try predicate(number, "validation predicate", of: place) else { continue }
            predicates.append(predicate)
            // Apple's compiler writes codes as numbers or as texts.
            let warning = index < warnings.count ? warnings[index] : NSManagedObjectValidationError
            kept.append((warning as? NSNumber)?.intValue ?? (warning as? String).flatMap(Int.init) ?? warning)
        }
        property.setValidationPredicates(predicates, withValidationWarnings: kept)
    }

    private func predicate(
        _ number: Int,
        _ what: String,
        of place: Place?
    ) throws(ModelError) -> NSPredicate? {
        var reader = ArchivedPredicate(archive: archive, values: values, budget: budget)
        do {
            return try reader.predicate(number)
        } catch {
            guard isStrict else { return nil }
            throw place?.failure("a \(what) cannot be read") ?? ModelError(.invalid, "a \(what) cannot be read")
        }
    }

    // MARK: - Attributes

    private func attribute(
        from object: KeyedArchive.Object,
        _ place: Place,
        depth: Int
    ) throws(ModelError) -> NSAttributeDescription {
        let number = object.integer("NSAttributeType") ?? 0
        guard let type = UInt(exactly: number).flatMap(NSAttributeType.init) else {
            throw place.failure("the attribute type \(number) is unknown")
        }
        let attribute: NSAttributeDescription
        if type == .compositeAttributeType {
            attribute = try composite(from: object, place, depth: depth)
        } else if object.classNames.contains("NSDerivedAttributeDescription") {
            attribute = try derived(from: object, place)
        } else {
            attribute = NSAttributeDescription()
        }
        attribute.type = NSAttributeDescription.AttributeType(rawValue: type)
        attribute.valueTransformerName = object.string("NSValueTransformerName")
        if type == .transformableAttributeType {
            attribute.attributeValueClassName = object.string("NSAttributeValueClassName")
        }
        let flags = object.integer("NSFlagsKey") ?? 0
        attribute.allowsExternalBinaryDataStorage = flags & 4 != 0
        attribute.preservesValueInHistoryOnDeletion = flags & 16 != 0
        attribute.defaultValue = try defaultValue(of: object, type, place)
        return attribute
    }

    private func defaultValue(
        of object: KeyedArchive.Object,
        _ type: NSAttributeType,
        _ place: Place
    ) throws(ModelError) -> Any? {
        guard let number = object.reference("NSDefaultValue"), number != 0 else { return nil }
        let value = value(of: object, "NSDefaultValue")
        if let value, type.isOfClass(value) { return (value as? NSMutableString).map { $0 as String } ?? value }
        // The default value of a transformable attribute may have a class that exists only in the app.
        guard isStrict, type != .transformableAttributeType else { return nil }
        throw place.failure("its default value cannot be read")
    }

    private func derived(
        from object: KeyedArchive.Object,
        _ place: Place
    ) throws(ModelError) -> NSAttributeDescription {
        let attribute = NSDerivedAttributeDescription()
        var reader = ArchivedPredicate(archive: archive, values: values, budget: budget)
        do {
            let text = try reader.text(ofDerivation: object.reference("NSDerivationExpression") ?? 0)
            try attribute.setDerivation(ModelText.expression(text), readFrom: text)
        } catch {
            throw place.failure("its derivation cannot be understood")
        }
        return attribute
    }

    /// A composite attribute; its elements are the archived attributes in any of its fields that is a list of them.
    private func composite(
        from object: KeyedArchive.Object,
        _ place: Place,
        depth: Int
    ) throws(ModelError) -> NSAttributeDescription {
        guard depth < 8 else {
            throw place.failure("composite attributes are nested too deeply, or contain themselves")
        }
        let attribute = NSCompositeAttributeDescription()
        var elements: [NSAttributeDescription] = []
        for field in object.fields.keys.sorted() {
            for number in object.object(field)?.references("NS.objects") ?? [] {
                guard let part = archive.object(number), part.classNames.contains("NSAttributeDescription"),
                    let name = part.string("NSPropertyName")
                else { continue }
                try budget.spend(1)
                let element = try self.attribute(from: part, place, depth: depth + 1)
                adoptFacts(of: part, name: name, into: element)
                let elementPlace = Place(entity: place.entity, property: "\(place.property).\(name)")
                try adoptValidation(of: part, into: element, elementPlace)
                elements.append(element)
            }
        }
        attribute.elements = elements
        return attribute
    }

    // MARK: - Relationships, requests and indexes

    private func relationship(
        from object: KeyedArchive.Object,
        _ place: Place
    ) throws(ModelError) -> NSRelationshipDescription {
        let relationship = NSRelationshipDescription()
        relationship.isOrdered = object.flag("NSIsOrdered")
        relationship.minCount = object.integer("NSMinCount") ?? 0
        relationship.maxCount = object.integer("NSMaxCount") ?? 0
        let rule = object.integer("NSDeleteRule") ?? 1
        guard let deleteRule = UInt(exactly: rule).flatMap(NSDeleteRule.init) else {
            throw place.failure("the deletion rule \(rule) is unknown")
        }
        relationship.deleteRule = deleteRule
        return relationship
    }

    /// A request; `nil` if it cannot be read and that is no error.
    func request(
        from object: KeyedArchive.Object,
        target: NSEntityDescription?,
        at place: Place?
    ) throws(ModelError) -> NSFetchRequest<NSFetchRequestResult>? {
        guard let target else {
            guard isStrict else { return nil }
            let reason = "a fetch request is for an entity that is not in the model"
            throw place?.failure(reason) ?? ModelError(.invalid, reason)
        }
        let request = NSFetchRequest<NSFetchRequestResult>()
        request.entity = target
        if let number = object.reference("NSPredicate"), number != 0 {
            // Without its predicate the request would have another meaning.
            guard let predicate = try predicate(number, "predicate", of: place) else { return nil }
            request.predicate = predicate
        }
        let descriptors = object.object("NSSortDescriptors")?.references("NS.objects") ?? []
        let sort = descriptors.compactMap { number -> NSSortDescriptor? in
            guard let item = archive.object(number), let key = item.string("NSKey") else { return nil }
            return NSSortDescriptor(key: key, ascending: item.flag("NSAscending"))
        }
        if !sort.isEmpty { request.sortDescriptors = sort }
        request.fetchLimit = max(0, object.integer("NSFetchLimit") ?? 0)
        request.fetchOffset = max(0, object.integer("NSFetchOffset") ?? 0)
        request.fetchBatchSize = max(0, object.integer("NSBatchSize") ?? 0)
        // The flags (NSFetchRequestFlags) are not read: in all known files they are those of a request with the default
        // values (30), so which bit stands for which property is unknown.
        request.resultType = NSFetchRequestResultType(rawValue: UInt(max(0, object.integer("NSResultType") ?? 0)))
        return request
    }

    /// An index; `nil` if it cannot be read and that is no error.
    func index(
        from object: KeyedArchive.Object,
        of entity: NSEntityDescription
    ) throws(ModelError) -> NSFetchIndexDescription? {
        let name = object.string("NSIndexName") ?? ""
        let available = entity.propertiesByName
        var elements: [NSFetchIndexElementDescription] = []
        for number in object.object("NSIndexElements")?.references("NS.objects") ?? [] {
            try budget.spend(1)
            guard let item = archive.object(number),
                let property = item.string("NSPropertyName").flatMap({ available[$0] })
            else {
                guard isStrict else { return nil }
                throw ModelError(.invalid, entity: entity.name, "an element of fetch index \"\(name)\" cannot be read")
            }
            let kind = UInt(exactly: item.integer("NSFetchIndexElementType") ?? 0).flatMap(NSFetchIndexElementType.init)
            let element = NSFetchIndexElementDescription(property: property, collationType: kind ?? .binary)
            element.isAscending = item.flag("NSAscending")
            elements.append(element)
        }
        let index = NSFetchIndexDescription(name: name, elements: elements)
        if let number = object.reference("NSPartialIndexPredicate"), number != 0 {
            let place = Place(entity: entity.name ?? "", property: name)
            guard let predicate = try predicate(number, "partial index predicate", of: place) else { return nil }
            index.partialIndexPredicate = predicate
        }
        return index
    }
}
