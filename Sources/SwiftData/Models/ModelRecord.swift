import CoreData
import Foundation
import StrataLocks

/// A stored property of a model class.
struct ModelProperty {
    enum Kind {
        case attribute(StoredForm)
        case toOne(any PersistentModel.Type)
        case toMany(any PersistentModel.Type)
    }

    let name: String
    let keyPath: AnyKeyPath
    let kind: Kind
    let isOptional: Bool
    let defaultValue: Any?
    /// The options that the property's attribute declares: a `Schema.Attribute` or a `Schema.Relationship`.
    let metadata: (any SchemaProperty)?

    /// Whether the property is a constant, whose value is in the model object as well.
    let isConstant: Bool

    /// The value of an attribute of an object; `nil` if there is none.
    ///
    /// - Throws: `StoredForm.Unreadable` if the store has something that is no value of the property's type.
    func value(of object: NSManagedObject) throws -> Any? {
        guard case .attribute(let form) = kind else { return nil }
        if let stored = object.value(forKey: name), let value = try form.value(stored) { return value }
        // A structure of optional values leaves no trace in the store if all of them are nil.
        return isOptional ? nil : form.emptyValue
    }

    /// The value of a constant.
    func value(of model: any PersistentModel) -> Any? {
        func read<Model: PersistentModel>(_ model: Model) -> Any? { model[keyPath: keyPath] }
        return read(model)
    }

    /// The value of the property's type for no value, if the type is optional.
    var absentValue: Any? {
        (Swift.type(of: keyPath).valueType as? any OptionalValue.Type)?.absent
    }

    /// The objects in a value of a relationship.
    func members(_ value: Any) -> [any PersistentModel] {
        if let model = value as? any PersistentModel { return [model] }
        if let optional = value as? any OptionalValue { return optional.wrappedValue.map { members($0) } ?? [] }
        return (value as? [Any])?.compactMap { $0 as? any PersistentModel } ?? []
    }
}

/// The stored properties of a model class, which are read once from its metadata.
final class ModelRecord: @unchecked Sendable {
    // @unchecked Sendable: immutable but for an atomic; key paths of properties capture nothing.

    let type: any PersistentModel.Type
    let entityName: String
    /// The record of the model class from which the class inherits; `nil` for a topmost class.
    let superrecord: ModelRecord?
    /// All properties, the inherited ones first.
    let properties: [ModelProperty]
    /// The properties that the class does not inherit.
    var ownProperties: ArraySlice<ModelProperty> { properties.dropFirst(superrecord?.properties.count ?? 0) }
    let constraints: [[String]]
    let indices: [[String]]
    /// Makes a model object of a managed object.
    let make: (NSManagedObject, ManagedContext, ModelRecord) -> AnyObject
    /// The form of the backings of the class.
    let form: BackingForm
    private let hasNoInitialValues = AtomicCell(false)
    /// An object of the class as a model object.
    let asModel: (AnyObject) -> any PersistentModel
    private let byKeyPath: [AnyKeyPath: Int]
    private let metadataCount: Int

    private static let known = Locked<[ObjectIdentifier: ModelRecord]>([:])

    /// The record of a class.
    static func of<Model: PersistentModel>(_ type: Model.Type) -> ModelRecord {
        let key = ObjectIdentifier(type)
        if let record = known.withLock({ $0[key] }) { return record }
        // This is not done under the lock, because initial values are code of the program.
        let record = ModelRecord(type)
        return known.withLock { known in
            if let first = known[key] { return first }
            known[key] = record
            return record
        }
    }

    /// The records, made so far, of the classes with an entity of this name.
    static func named(_ entityName: String) -> [ModelRecord] {
        known.withLock { $0.values.filter { $0.entityName == entityName } }
    }

    private init<Model: PersistentModel>(_ type: Model.Type) {
        self.type = type
        let form = BackingForm(for: type)
        make = { object, managed, record in
            let backing = form.type.init(record)
            backing.lead(to: object, of: managed)
            return ModelMaking.make(type, on: backing, record)
        }
        self.form = form
        asModel = { unsafeDowncast($0, to: Model.self) }
        entityName = _typeName(type, qualified: false)
        superrecord = (_getSuperclass(type) as? any PersistentModel.Type).map { ModelRecord.of($0) }
        // That of a class begins with that of the class from which it inherits.
        let metadata = type.schemaMetadata
        metadataCount = metadata.count
        let own = metadata.dropFirst(superrecord?.metadataCount ?? 0)
        let stored = metadata.filter { !$0.name.isEmpty }
        properties = stored.map { Self.property($0, of: type) }
        // The accessors of an inherited property use the key path of the class that declares it.
        byKeyPath = Dictionary(zip(stored.map(\.keypath), stored.indices), uniquingKeysWith: { first, _ in first })
            .merging(superrecord?.byKeyPath ?? [:], uniquingKeysWith: { first, _ in first })
        let names = Dictionary(zip(stored.map(\.keypath), stored.map(\.name)), uniquingKeysWith: { first, _ in first })
        func named(_ groups: [[AnyKeyPath]]) -> [[String]] {
            groups.map { group in
                group.map { keyPath in
                    guard let name = names[keyPath] else {
                        fatalError(
                            "SwiftData: \(keyPath) is no stored property of \(type), and cannot be unique or indexed."
                        )
                    }
                    return name
                }
            }
        }
        constraints = named(
            own.compactMap { ($0.metadata as? any ConstraintMetadata)?.uniqueGroups }.flatMap(\.self)
        )
        indices = named(own.compactMap { ($0.metadata as? any ConstraintMetadata)?.indexGroups }.flatMap(\.self))
    }

    private static func property(_ metadata: Schema.PropertyMetadata, of type: any PersistentModel.Type)
        -> ModelProperty
    {
        let declared = Swift.type(of: metadata.keypath).valueType
        let wrapped = (declared as? any OptionalValue.Type)?.wrapped
        let plain = wrapped ?? declared
        let kind: ModelProperty.Kind
        if let other = plain as? any PersistentModel.Type {
            kind = .toOne(other)
        } else if let collection = plain as? any RelationshipCollection.Type {
            kind = .toMany(collection.element)
        } else {
            do {
                kind = .attribute(
                    try StoredForm(of: plain, property: metadata.name, metadata.metadata as? Schema.Attribute)
                )
            } catch {
                fatalError("SwiftData: \(type).\(metadata.name) cannot be stored: \(error)")
            }
        }
        if let misplaced = misplaced(metadata.metadata, kind) {
            fatalError("SwiftData: \(type).\(metadata.name) is no \(misplaced).")
        }
        return ModelProperty(
            name: metadata.name,
            keyPath: metadata.keypath,
            kind: kind,
            isOptional: wrapped != nil,
            defaultValue: metadata.defaultValue,
            metadata: metadata.metadata,
            isConstant: !(metadata.keypath is any Writable)
        )
    }

    /// The kind of property that the options are for, with advice; `nil` if they are for properties of this kind.
    private static func misplaced(_ options: (any SchemaProperty)?, _ kind: ModelProperty.Kind) -> String? {
        switch (options, kind) {
        case (is Schema.Relationship, .attribute):
            "relationship, so @Relationship cannot stand there: its type is no class with @Model"
        case (let options as Schema.Attribute, .toOne), (let options as Schema.Attribute, .toMany):
            // Without options it says nothing.
            options.options.isEmpty && options.hashModifier == nil && options.originalName.isEmpty
                ? nil : "attribute, so the options of @Attribute have no effect there. Write them with @Relationship"
        default: nil
        }
    }

    /// Whether an object that is made of a stored one is known to ask for no backing for initial values.
    var takesNoInitialValues: Bool { hasNoInitialValues.load(ordering: .relaxed) }

    func noteNoInitialValues() { hasNoInitialValues.store(true, ordering: .relaxed) }

    /// The number of model classes from which the class inherits.
    var depth: Int { superrecord.map { $0.depth + 1 } ?? 0 }

    /// The record of the class that declares a property.
    func owner(of property: ModelProperty) -> ModelRecord {
        guard let superrecord, superrecord.properties.contains(where: { $0.name == property.name }) else { return self }
        return superrecord.owner(of: property)
    }

    /// The property of a key path.
    func property(_ keyPath: AnyKeyPath) -> ModelProperty {
        guard let index = byKeyPath[keyPath] else {
            fatalError("SwiftData: \(keyPath) is no stored property of \(type).")
        }
        return properties[index]
    }

    /// The property of a key path; `nil` if it is none.
    func propertyIfStored(_ keyPath: AnyKeyPath) -> ModelProperty? { byKeyPath[keyPath].map { properties[$0] } }
}

/// A key path that can be written to.
private protocol Writable {}
extension ReferenceWritableKeyPath: Writable {}

/// An optional, whatever it wraps.
protocol OptionalValue {
    static var wrapped: Any.Type { get }
    static var absent: Any { get }
    var wrappedValue: Any? { get }
}

extension Optional: OptionalValue {
    static var wrapped: Any.Type { Wrapped.self }
    static var absent: Any { Self.none as Any }
    var wrappedValue: Any? { self }
}

extension RelationshipCollection {
    static var element: any PersistentModel.Type { PersistentElement.self }
}

extension PersistentModel {
    static var record: ModelRecord { ModelRecord.of(Self.self) }
}
