import CoreData
import Foundation
import StrataPredicates

/// Finds the names along a key path through related objects, such as `\Trip.owner?.name`.
///
/// A key path does not show its parts. So it is read on an object whose values note which property is read.
enum SortKeyPaths {
    /// The names in a key path, joined by dots.
    ///
    /// - Throws: `SwiftDataError.unsupportedSortDescriptor` if a part is no stored property, or the last one has no order.
    static func name<Model: PersistentModel>(of keyPath: PartialKeyPath<Model>) throws -> String {
        if ModelRecord.of(Model.self).propertyIfStored(keyPath) == nil, isSample(Swift.type(of: keyPath).valueType) {
            let reading = Reading()
            let value = RecordingBacking<Model>.object(reading)[keyPath: keyPath]
            if let name = reading.name(returning: value) { return name }
        }
        return try (keyPath as AnyKeyPath).predicateName()
    }

    private static func isSample(_ type: Any.Type) -> Bool {
        sample(of: (type as? any OptionalValue.Type)?.wrapped ?? type) != nil
    }

    /// An unusual value of a type with an order; `nil` for another type.
    static func sample(of type: Any.Type) -> Any? {
        switch type {
        case let integer as any FixedWidthInteger.Type: integer.init(truncatingIfNeeded: 0x6B5A_4938_2716_0594 as Int64)
        case is Double.Type: 8.637_123_5e130
        case is Float.Type: 8.637e30 as Float
        case is Bool.Type: true
        case is String.Type: "\u{1C5}  key path"
        case is Decimal.Type: Decimal(-8_637_123) / 1000
        case is Date.Type: Date(timeIntervalSinceReferenceDate: -8_637_123_456.25)
        case is UUID.Type: UUID(uuid: (0xA7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
        case is URL.Type: URL(fileURLWithPath: "/key/path")
        default: nil
        }
    }
}

/// The properties that were read of recording objects.
private final class Reading {
    private var names: [String] = []
    private var value: Any?
    private var isClear = true

    /// Notes that a property of the object at some depth was read.
    func note(_ name: String, depth: Int, _ value: Any?) {
        // A computed property may read several properties of one object.
        if names.count != depth { isClear = false }
        names.append(name)
        self.value = value
    }

    /// Notes that a property was read whose values have no sample.
    func stop() { isClear = false }

    /// The names if the last property that was read has returned the value.
    func name(returning result: Any) -> String? {
        func plain(_ value: Any) -> AnyHashable? {
            if let optional = value as? any OptionalValue { return optional.wrappedValue.flatMap { plain($0) } }
            return value as? AnyHashable
        }
        guard isClear, names.count > 1, let value = value.flatMap({ plain($0) }), plain(result) == value else {
            return nil
        }
        return names.joined(separator: ".")
    }
}

/// The backing of an object that notes which of its properties are read.
private final class RecordingBacking<Model: PersistentModel>: BackingData {
    private let reading: Reading
    private let depth: Int
    var persistentModelID: PersistentIdentifier? = .temporary(entityName: ModelRecord.of(Model.self).entityName)
    var metadata: Any = ()

    static func object(_ reading: Reading, depth: Int = 0) -> Model {
        Model(backingData: RecordingBacking(reading, depth))
    }

    private init(_ reading: Reading, _ depth: Int) {
        (self.reading, self.depth) = (reading, depth)
    }

    init(for modelType: Model.Type) { (reading, depth) = (Reading(), 0) }

    private func property(_ key: AnyKeyPath) -> ModelProperty { ModelRecord.of(Model.self).property(key) }

    func getValue<Value: Decodable>(forKey key: KeyPath<Model, Value>) -> Value { attribute(key) }

    func getTransformableValue<Value>(forKey key: KeyPath<Model, Value>) -> Value { attribute(key) }

    private func attribute<Value>(_ key: KeyPath<Model, Value>) -> Value {
        let property = property(key)
        let wrapped = (Value.self as? any OptionalValue.Type)?.wrapped
        let sample = SortKeyPaths.sample(of: wrapped ?? Value.self)
        // The initializer reads the constants.
        if !property.isConstant {
            if let sample { reading.note(property.name, depth: depth, sample) } else { reading.stop() }
        }
        if case .attribute(let form) = property.kind,
            let value = (sample ?? property.absentValue ?? form.anyValue) as? Value ?? property.defaultValue as? Value
        {
            return value
        }
        fatalError(
            "SwiftData: \(Model.self).\(property.name) cannot be read to find the key path of a sort descriptor. "
                + "Sort by a key path that leads to a stored property through relationships only."
        )
    }

    func getValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value>) -> Value {
        related(property(key))
    }

    func getValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value?>) -> Value? {
        related(property(key)) as Value
    }

    private func related<Value: PersistentModel>(_ property: ModelProperty) -> Value {
        reading.note(property.name, depth: depth, nil)
        return RecordingBacking<Value>.object(reading, depth: depth + 1)
    }

    func getValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>) -> Value
    where Value: RelationshipCollection, OtherModel == Value.PersistentElement { collection(key) }

    func getValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>) -> Value
    where Value: Decodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement { collection(key) }

    private func collection<Value: RelationshipCollection>(_ key: KeyPath<Model, Value>) -> Value {
        reading.stop()
        guard let value = [Value.PersistentElement]() as? Value else {
            fatalError("SwiftData: \(Model.self).\(property(key).name) is a collection of type \(Value.self).")
        }
        return value
    }

    func setValue<Value: Encodable>(forKey key: KeyPath<Model, Value>, to newValue: Value) { reading.stop() }
    func setValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value>, to newValue: Value) { reading.stop() }
    func setValue<Value: PersistentModel>(forKey key: KeyPath<Model, Value?>, to newValue: Value?) { reading.stop() }
    func setValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>, to newValue: Value)
    where Value: RelationshipCollection, OtherModel == Value.PersistentElement { reading.stop() }
    func setValue<Value, OtherModel>(forKey key: KeyPath<Model, Value>, to newValue: Value)
    where Value: Encodable, Value: RelationshipCollection, OtherModel == Value.PersistentElement { reading.stop() }
    func setTransformableValue<Value>(forKey key: KeyPath<Model, Value>, to newValue: Value) { reading.stop() }
}
