import Observation
import StrataLocks
@_spi(Reflection) import Swift

/// A key path of a model class, by which observers know a property.
private protocol ObservedKeyPath {
    /// Notifies the observers of the property.
    func announce(_ subject: any PersistentModel, _ registrar: ObservationRegistrar)
}

extension KeyPath: ObservedKeyPath where Root: PersistentModel {
    func announce(_ subject: any PersistentModel, _ registrar: ObservationRegistrar) {
        guard let subject = subject as? Root else { return }
        registrar.willSet(subject, keyPath: self)
        registrar.didSet(subject, keyPath: self)
    }
}

/// The properties of a model class by their names, as observers know them.
private struct ObservedProperties: @unchecked Sendable {
    // @unchecked Sendable: immutable; key paths of properties capture nothing.

    /// A property, and the place of the registrar in the objects.
    struct Property {
        let keyPath: any ObservedKeyPath
        let registrar: Int
    }

    private let byName: [String: Property]

    private static let known = Locked<[ObjectIdentifier: ObservedProperties]>([:])

    static func of(_ record: ModelRecord) -> ObservedProperties {
        let key = ObjectIdentifier(record.type)
        if let properties = known.withLock({ $0[key] }) { return properties }
        let properties = ObservedProperties(record)
        known.withLock { $0[key] = properties }
        return properties
    }

    private init(_ record: ModelRecord) {
        var byName: [String: Property] = [:]
        for property in record.properties {
            // The accessors of an inherited property use the key path and the registrar of the class that declares it.
            let owner = record.owner(of: property)
            let declared = owner.ownProperties.first { $0.name == property.name } ?? property
            guard let keyPath = declared.keyPath as? any ObservedKeyPath, let place = Self.registrar(in: owner.type)
            else { continue }
            byName[property.name] = Property(keyPath: keyPath, registrar: place)
        }
        self.byName = byName
    }

    /// The place of the registrar that the macro has put into a class, or into its superclass.
    ///
    /// It is private there, so it is found by reflection.
    private static func registrar(in type: Any.Type) -> Int? {
        var place: Int?
        _ = _forEachField(of: type, options: _EachFieldOptions(rawValue: 1)) { _, offset, fieldType, _ in
            // Fields of a subclass come after those of its superclass.
            if fieldType == ObservationRegistrar.self { place = offset }
            return true
        }
        return place
    }

    subscript(name: String) -> Property? { byName[name] }
}

extension PersistentModel {
    /// Notifies the observers of properties that have changed without their setters.
    func announceChanges(of names: [String]) {
        let properties = ObservedProperties.of(Self.record)
        for name in names {
            guard let property = properties[name] else { continue }
            let place = Unmanaged.passUnretained(self).toOpaque() + property.registrar
            property.keyPath.announce(self, place.assumingMemoryBound(to: ObservationRegistrar.self).pointee)
        }
    }
}
