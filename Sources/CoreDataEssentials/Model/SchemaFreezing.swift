import StrataPredicates
import StrataRows

// Makes a schema from a model. Rows, plans and stores use only the schema.

extension Schema {
    /// The schema of a model that is being frozen.
    ///
    /// - Parameters:
    ///   - entities: All entities in the order of their numbers, already frozen.
    ///   - configurations: The members of each configuration, by its name.
    convenience init(_ entities: [NSEntityDescription], configurations: [String: [NSEntityDescription]]) {
        var numbers = configurations.mapValues { $0.map(\.entityNumber) }
        numbers[defaultConfigurationName] = entities.map(\.entityNumber)
        self.init(entities.map(EntityDefinition.init), configurations: numbers)
    }
}

extension EntityDefinition {
    fileprivate init(_ entity: NSEntityDescription) {
        self.init(name: entity.name ?? "", companion: entity)
        className = entity.managedObjectClassName
        parent = entity.superentity?.entityNumber
        isAbstract = entity.isAbstract
        properties = entity.ownProperties.map(PropertyDefinition.init)
        uniquenessConstraints = entity.uniquenessConstraintNames
        indexes = Self.indexes(of: entity)
        versionHash = entity.frozen.versionHash
        formerVersionHash = VersionHash.formerHash(of: entity)
        userInfo = Self.texts(of: entity.userInfo)
    }

    /// The texts in a user info, which databases may read.
    fileprivate static func texts(of userInfo: [AnyHashable: Any]?) -> [String: String] {
        guard let userInfo, !userInfo.isEmpty else { return [:] }
        var texts: [String: String] = [:]
        for (key, value) in userInfo {
            if let key = key as? String, let value = value as? String { texts[key] = value }
        }
        return texts
    }

    /// The indexes of the entity: first those of single attributes, then compound ones, then those with names.
    ///
    /// As in stores of Apple's framework, a fetch index of one attribute also has a twin, an index with the name of the
    /// attribute. A compiled model lists the twin as well. No store shows that for a composite attribute.
    private static func indexes(of entity: NSEntityDescription) -> [IndexDefinition] {
        let named = entity.indexes.map { index in
            IndexDefinition(
                name: index.name,
                columns: index.elements.map(IndexDefinition.Column.init),
                predicate: index.partialIndexPredicate?.formatText
            )
        }
        let twins =
            entity.listsAllIndexes
            ? []
            : named.filter { $0.columns.count == 1 }.map { $0.columns[0].name }
                .filter { !(entity.attributesByName[$0] is NSCompositeAttributeDescription) }
        func single(_ names: [String], isTwin: Bool) -> [IndexDefinition] {
            names.filter { entity.attributesByName[$0] != nil }.map {
                var index = IndexDefinition(name: $0, columns: [IndexDefinition.Column(name: $0)])
                index.isTwin = isTwin
                return index
            }
        }
        return single(entity.ownProperties.filter(\.isIndexed).map(\.name).sorted(), isTwin: false)
            + single(twins, isTwin: true)
            + entity.compoundIndexNames.map { names in
                IndexDefinition(
                    name: names.joined(separator: "_"),
                    columns: names.map { IndexDefinition.Column(name: $0) }
                )
            }
            + named
    }
}

extension IndexDefinition.Column {
    fileprivate init(_ element: NSFetchIndexElementDescription) {
        let computed = element.property as? NSExpressionDescription
        self.init(
            name: computed == nil ? element.propertyName ?? "" : "",
            isAscending: element.isAscending,
            expression: computed?.expression?.description,
            isTree: element.collationType == .rTree
        )
    }
}

extension PropertyDefinition {
    fileprivate init(_ property: NSPropertyDescription) {
        self.init(name: property.name, isOptional: property.isOptional, kind: Kind(property), description: property)
        userInfo = EntityDefinition.texts(of: property.userInfo)
    }
}

extension PropertyDefinition.Kind {
    fileprivate init(_ property: NSPropertyDescription) {
        switch property {
        case let relationship as NSRelationshipDescription: self = .relationship(RelationshipDefinition(relationship))
        case is NSFetchedPropertyDescription: self = .fetched
        case let property where property.isTransient: self = .transient
        case let composite as NSCompositeAttributeDescription:
            self = Self(composite, startingWith: composite.startingValues)
        case let attribute as NSAttributeDescription: self = .attribute(AttributeDefinition(attribute))
        default: self = .transient
        }
    }

    /// Makes the kind of a composite attribute.
    ///
    /// `values`: The initial values of its elements, which override their default values; `nil` if it starts without a
    /// value.
    private init(_ composite: NSCompositeAttributeDescription, startingWith values: [String: Any]?) {
        let elements = composite.elements.map { element in
            var definition = PropertyDefinition(element)
            let value = values?[element.name]
            switch definition.kind {
            case .composite:
                guard let nested = element as? NSCompositeAttributeDescription else { break }
                let start = value is NSNull ? nil : value as? [String: Any] ?? nested.startingValues
                definition.kind = Self(nested, startingWith: values == nil ? nil : start)
            case .attribute(var attribute):
                attribute.start(with: value, element, isPresent: values != nil)
                definition.kind = .attribute(attribute)
            case .relationship, .transient, .fetched: break
            }
            return definition
        }
        self = .composite(elements, keepsValueInHistory: composite.preservesValueInHistoryOnDeletion)
    }
}

extension NSCompositeAttributeDescription {
    /// The initial values of the elements, which override their default values.
    ///
    /// `nil` if new objects start without a value.
    fileprivate var startingValues: [String: Any]? {
        if let values = defaultValue as? [String: Any] { return values }
        return isOptional ? nil : [:]
    }
}

extension AttributeDefinition {
    fileprivate init(_ attribute: NSAttributeDescription) {
        self.init(type: AttributeType(attribute.attributeType))
        defaultValue = Self.kept(attribute.defaultValue, attribute)
        allowsExternalStorage = attribute.allowsExternalBinaryDataStorage
        keepsValueInHistory = attribute.preservesValueInHistoryOnDeletion
        hasRules = !attribute.validationPredicates.isEmpty
        guard let derived = attribute as? NSDerivedAttributeDescription else { return }
        isDerived = true
        derivation = derived.derivationText
    }

    /// Sets the initial value of an element of a composite attribute.
    ///
    /// `value`: The element's value in the default value of the composite attribute. `isPresent`: Whether the composite
    /// attribute starts with a value.
    fileprivate mutating func start(with value: Any?, _ attribute: NSAttributeDescription, isPresent: Bool) {
        startsWithDefault = isPresent
        guard isPresent, let value else { return }
        if value is NSNull {
            startsWithDefault = false
        } else {
            defaultValue = Self.kept(value, attribute)
        }
    }

    /// The default value in the form for rows, which contain the archives of transformable values.
    private static func kept(_ value: Any?, _ attribute: NSAttributeDescription) -> Any? {
        attribute.type == .transformable ? value.flatMap { attribute.archived($0) } : value
    }
}

extension RelationshipDefinition {
    fileprivate init(_ relationship: NSRelationshipDescription) {
        self.init()
        destination = relationship.destinationEntity?.entityNumber
        inverse = relationship.inverseRelationship.map { ($0.entity.entityNumber, $0.name) }
        isToMany = relationship.isToMany
        isOrdered = relationship.isOrdered
        isTransient = relationship.isTransient
        deleteRule = DeleteRule(rawValue: relationship.deleteRule.rawValue) ?? .nullify
        minCount = relationship.minCount
        maxCount = relationship.maxCount
    }
}

extension AttributeType {
    /// The same kind of value, in the type for rows.
    package init(_ type: NSAttributeType) {
        // The raw values are the same.
        self = AttributeType(rawValue: type.rawValue) ?? .undefined
    }
}

extension NSAttributeType {
    /// The same kind of value, in the type of the public API.
    package init(_ type: AttributeType) {
        // The raw values are the same here too.
        self = NSAttributeType(rawValue: type.rawValue) ?? .undefinedAttributeType
    }
}
