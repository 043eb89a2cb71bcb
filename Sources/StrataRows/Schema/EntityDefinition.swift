import StrataPredicates

/// What a schema is made of: one entity, as plain values.
///
/// The layer above freezes its model into such definitions.
package struct EntityDefinition {
    package var name: String
    /// The class of the entity's objects, by which predicates may name the entity too.
    package var className: String?
    /// The number of the super-entity, from 1; `nil` for the root of a hierarchy.
    package var parent: Int?
    package var isAbstract = false
    /// The properties that the entity declares itself.
    package var properties: [PropertyDefinition] = []
    package var uniquenessConstraints: [[String]] = []
    package var indexes: [IndexDefinition] = []
    package var versionHash = Data()
    /// The version hash by a former rule, where that gave another; stores that have it are of this version.
    package var formerVersionHash: Data?
    /// The texts of the entity's user info, in which a database may look for what the model wants of it.
    package var userInfo: [String: String] = [:]
    /// What the layer above keeps with the entity; it has to live as long as the schema.
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
    /// What the layer above describes the property by; it has to live as long as the schema.
    package var description: AnyObject & Sendable

    package enum Kind {
        case attribute(AttributeDefinition)
        /// An attribute whose value is a dictionary of the elements' values.
        case composite([PropertyDefinition], keepsValueInHistory: Bool)
        case relationship(RelationshipDefinition)
        /// An attribute that lives in objects only.
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
    /// A value that ``Row/setAny(_:_:)`` takes; what it refuses is no default.
    package var defaultValue: Any?
    /// Whether new objects start with the default value.
    ///
    /// Not so for an element of a composite attribute that starts without a value.
    package var startsWithDefault = true
    /// Whether the store computes the value.
    package var isDerived = false
    /// How it does; `nil` for a derivation without a text.
    package var derivation: String?
    package var allowsExternalStorage = false
    package var keepsValueInHistory = false
    /// Whether the model has predicates that a value must fulfil.
    package var hasRules = false

    package init(type: AttributeType) { self.type = type }
}

/// A relationship, with what it leads to by number and name.
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

/// An index that the model asks for, to speed up fetches.
package struct IndexDefinition: Sendable {
    /// The name of the index; it is unique in its entity or made of the columns' names.
    package var name: String
    package var columns: [Column]
    /// Which rows are indexed, in the predicate language; `nil` for all.
    package var predicate: String?
    /// Whether it is there beside another one of the same attribute, only because stores of Apple's framework have it.
    package var isTwin = false

    /// What is indexed: a property, or the value of an expression.
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
