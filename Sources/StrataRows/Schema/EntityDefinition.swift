import StrataPredicates

/// One entity as plain values; schemas are made of these.
///
/// The layer above freezes its model into such definitions.
package struct EntityDefinition {
    package var name: String
    /// The class of the entity's objects.
    ///
    /// Predicates may name the entity by it, too.
    package var className: String?
    /// The number of the super-entity, from 1; `nil` for the root of a hierarchy.
    package var parent: Int?
    package var isAbstract = false
    /// The properties that the entity declares itself.
    package var properties: [PropertyDefinition] = []
    package var uniquenessConstraints: [[String]] = []
    package var indexes: [IndexDefinition] = []
    package var versionHash = Data()
    /// The version hash by a former rule, if that gave another one.
    ///
    /// Stores that have it are of this version.
    package var formerVersionHash: Data?
    /// The texts of the entity's user info, in which a database may find settings of the model.
    package var userInfo: [String: String] = [:]
    /// An object that the layer above keeps with the entity; it has to live as long as the schema.
    package var companion: AnyObject & Sendable

    package init(name: String, companion: AnyObject & Sendable) {
        self.name = name
        self.companion = companion
    }
}

/// One property that an entity declares.
package struct PropertyDefinition {
    package var name: String
    package var isOptional: Bool
    package var kind: Kind
    /// The texts of the property's user info.
    package var userInfo: [String: String] = [:]
    /// The description that the layer above has for the property; it has to live as long as the schema.
    package var description: AnyObject & Sendable

    package enum Kind {
        case attribute(AttributeDefinition)
        /// An attribute whose value is a dictionary of the elements' values.
        case composite([PropertyDefinition], keepsValueInHistory: Bool)
        case relationship(RelationshipDefinition)
        /// An attribute that exists only in objects.
        case transient
        /// The answer of a fetch request.
        case fetched
    }

    package init(name: String, isOptional: Bool, kind: Kind, description: AnyObject & Sendable) {
        self.name = name
        self.isOptional = isOptional
        self.kind = kind
        self.description = description
    }
}

/// A stored attribute.
package struct AttributeDefinition {
    package var type: AttributeType
    /// The default value.
    ///
    /// A value that ``Row/setAny(_:_:)`` refuses is no default.
    package var defaultValue: Any?
    /// Whether new objects start with the default value.
    ///
    /// This is false for an element of a composite attribute that starts without a value.
    package var startsWithDefault = true
    /// Whether the store computes the value.
    package var isDerived = false
    /// The text of the derivation; `nil` if it has none.
    package var derivation: String?
    package var allowsExternalStorage = false
    package var keepsValueInHistory = false
    /// Whether the model has predicates that a value must fulfil.
    package var hasRules = false

    package init(type: AttributeType) { self.type = type }
}

/// A relationship, with its destination by number and name.
package struct RelationshipDefinition {
    /// The number of the destination entity; `nil` if the model names none.
    package var destination: Int?
    /// The number of the entity that declares the relationship which leads back, and its name.
    package var inverse: (entity: Int, name: String)?
    package var isToMany = false
    package var isOrdered = false
    package var isTransient = false
    package var deleteRule = DeleteRule.nullify
    package var minCount = 0
    package var maxCount = 0

    package init() {}
}

/// An index that the model declares to speed up fetches.
package struct IndexDefinition: Sendable {
    /// The name of the index; it is unique in its entity or made of the columns' names.
    package var name: String
    package var columns: [Column]
    /// The predicate for the rows that are indexed; `nil` for all.
    package var predicate: String?
    /// Whether the index duplicates another one of the same attribute, because stores of Apple's framework have it.
    package var isTwin = false

    /// A column of an index: a property, or the value of an expression.
    package struct Column: Sendable {
        /// The name of the property; empty for an expression.
        package var name: String
        package var isAscending = true
        /// The expression in the predicate language; `nil` for a property.
        package var expression: String?
        /// Whether it is a side of a box in an R-tree.
        package var isTree = false

        package init(name: String, isAscending: Bool = true, expression: String? = nil, isTree: Bool = false) {
            self.name = name
            self.isAscending = isAscending
            self.expression = expression
            self.isTree = isTree
        }
    }

    package init(name: String, columns: [Column], predicate: String? = nil) {
        self.name = name
        self.columns = columns
        self.predicate = predicate
    }
}
