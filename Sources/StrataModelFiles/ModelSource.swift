/// A model as it is in its file: plain values with their line numbers.
///
/// Texts are kept as they are written; the framework interprets default values and predicates. The framework makes its
/// descriptions from these values, and the generator of classes makes Swift from them.
package struct ModelSource: Sendable {
    /// All attributes of the root element, such as `documentVersion`.
    package var attributes: [String: String] = [:]
    package var entities: [EntitySource] = []
    /// The composite types that attributes name.
    package var composites: [CompositeSource] = []
    package var configurations: [ConfigurationSource] = []
    /// The templates.
    package var fetchRequests: [FetchRequestSource] = []
    /// The faults of the model, in the order in which they were found.
    ///
    /// If there are faults, some of the values are missing.
    package internal(set) var faults: [ModelError] = []

    /// The identifier of the version; empty if none was set.
    package var versionIdentifier: String {
        attributes["userDefinedModelVersionIdentifier"] ?? attributes["versionIdentifier"] ?? ""
    }
}

/// An entity of a model file.
package struct EntitySource: Sendable {
    package var name: String
    package var line: Int
    /// `representedClassName` as it is written.
    ///
    /// It may begin with a dot, for the module of the model, or with the name of another module.
    package var className: String?
    package var codeGeneration = CodeGeneration.manual
    package var isAbstract = false
    package var parent: String?
    package var renamingIdentifier: String?
    package var versionHashModifier: String?
    package var userInfo: [String: String] = [:]
    package var uniquenessConstraints: [[String]] = []
    package var compoundIndexes: [[String]] = []
    package var indexes: [FetchIndexSource] = []
    /// The properties that the entity declares itself, in the order of the file.
    package var properties: [PropertySource] = []

    /// The code that Xcode generates for an entity.
    package enum CodeGeneration: Sendable {
        /// No code.
        case manual
        /// The class and its properties.
        case `class`
        /// The properties, for a hand-written class.
        case category
    }
}

/// A property of an entity.
package enum PropertySource: Sendable {
    case attribute(AttributeSource)
    case relationship(RelationshipSource)
    case fetched(FetchedPropertySource)

    package var facts: PropertyFacts {
        switch self {
        case .attribute(let attribute): attribute.facts
        case .relationship(let relationship): relationship.facts
        case .fetched(let fetched): fetched.facts
        }
    }
}

/// The values that all kinds of properties have.
package struct PropertyFacts: Sendable {
    package var name: String
    package var line: Int
    package var isOptional = false
    package var isTransient = false
    package var isIndexed = false
    package var renamingIdentifier: String?
    package var versionHashModifier: String?
    package var userInfo: [String: String] = [:]
}

/// An attribute, or an element of a composite one.
package struct AttributeSource: Sendable {
    package var facts: PropertyFacts
    package var type: TypeName
    /// All attributes of the element, including its default value and its limits.
    package var texts: [String: String]
    package var usesScalarValueType = false
    /// The class of a transformable attribute's values, or the name of a composite attribute's struct.
    package var customClassName: String?
    package var valueTransformerName: String?
    package var isDerived = false
    package var derivationExpression: String?
    package var allowsExternalBinaryDataStorage = false
    package var preservesValueInHistoryOnDeletion = false
    /// The elements of a composite attribute that lists them itself.
    package var elements: [AttributeSource] = []
    /// Possible names of the composite type, for an attribute that lists no elements.
    ///
    /// The first one in the model counts.
    package var compositeNames: [String] = []

    /// The text of an attribute of the element; `nil` if it is missing.
    package subscript(_ key: String) -> String? { texts[key] }

    /// The text of an attribute of the element; `nil` if it is missing or empty.
    package func text(_ key: String) -> String? { texts[key].flatMap { $0.isEmpty ? nil : $0 } }

    /// The names of types in Xcode's files.
    package enum TypeName: String, Sendable, CaseIterable {
        case undefined = "Undefined"
        case integer16 = "Integer 16"
        case integer32 = "Integer 32"
        case integer64 = "Integer 64"
        case decimal = "Decimal"
        case double = "Double"
        case float = "Float"
        case string = "String"
        case boolean = "Boolean"
        case date = "Date"
        case data = "Binary Data"
        case uuid = "UUID"
        case uri = "URI"
        case transformable = "Transformable"
        case objectID = "Object ID"
        case composite = "Composite"

        /// Finds the type for a name in a file; `nil` if there is none.
        init?(written name: String) {
            switch name {
            case "Binary": self = .data
            case "ObjectID": self = .objectID
            default: self.init(rawValue: name)
            }
        }
    }
}

/// A composite type, which attributes refer to by name.
package struct CompositeSource: Sendable {
    package var name: String
    package var line: Int
    package var elements: [AttributeSource]
}

/// A relationship.
package struct RelationshipSource: Sendable {
    package var facts: PropertyFacts
    package var destination: String
    package var inverse: Inverse?
    package var isToMany = false
    package var isOrdered = false
    package var minCount = 0
    /// The most objects; 0 for any number.
    package var maxCount = 0
    package var deleteRule = DeleteRule.nullify

    /// The relationship at the other end, and the entity that declares it.
    package struct Inverse: Sendable, Equatable {
        package var name: String
        package var entity: String
    }

    package enum DeleteRule: String, Sendable, CaseIterable {
        case noAction = "No Action"
        case nullify = "Nullify"
        case cascade = "Cascade"
        case deny = "Deny"
    }
}

/// A fetched property.
package struct FetchedPropertySource: Sendable {
    package var facts: PropertyFacts
    package var request: FetchRequestSource?
}

/// A fetch request in a model: a template, or the request of a fetched property.
package struct FetchRequestSource: Sendable {
    package var name: String
    package var line: Int
    package var entity: String
    package var predicate: String?
    package var limit = 0
    package var offset = 0
    package var batchSize = 0
    package var resultType = 0
    package var includesSubentities = true
    package var includesPropertyValues = true
    package var includesPendingChanges = true
    package var returnsObjectsAsFaults = true
    package var returnsDistinctResults = false
}

/// A fetch index of an entity.
package struct FetchIndexSource: Sendable {
    package var name: String
    package var line: Int
    package var partialPredicate: String?
    package var elements: [Element] = []

    /// One element: a property, or an expression.
    package struct Element: Sendable {
        package var line: Int
        package var property: String?
        package var expression: String?
        package var expressionType: AttributeSource.TypeName?
        package var isTree = false
        package var isAscending = true
    }
}

/// A configuration: a name for some of the entities.
package struct ConfigurationSource: Sendable {
    package var name: String
    package var line: Int
    package var members: [String] = []
}
