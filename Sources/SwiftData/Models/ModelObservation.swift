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

    /// The place of the observers in the objects of a class.
    enum Place {
        /// Observers as the macro writes them.
        case observers(offset: Int)
        /// A registrar as it is written by hand.
        case registrar(offset: Int)

        /// The registrar of an object; `nil` if it was never observed.
        func registrar(of model: AnyObject) -> ObservationRegistrar? {
            let object = Unmanaged.passUnretained(model).toOpaque()
            switch self {
            case .observers(let offset):
                return (object + offset).assumingMemoryBound(to: _ModelObservers.self).pointee.registrarIfMade
            case .registrar(let offset):
                return (object + offset).assumingMemoryBound(to: ObservationRegistrar.self).pointee
            }
        }
    }

    /// A property, and the place of its observers.
    struct Property {
        let keyPath: any ObservedKeyPath
        let place: Place
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
            guard let keyPath = declared.keyPath as? any ObservedKeyPath, let place = Self.place(in: owner.type)
            else { continue }
            byName[property.name] = Property(keyPath: keyPath, place: place)
        }
        self.byName = byName
    }

    /// The place of the observers that the macro has put into a class, or into its superclass.
    ///
    /// They are private there, so they are found by reflection.
    private static func place(in type: Any.Type) -> Place? {
        var place: Place?
        _ = _forEachField(of: type, options: _EachFieldOptions(rawValue: 1)) { name, offset, fieldType, _ in
            // Fields of a subclass come after those of its superclass.
            if String(cString: name) == "_$observers" {
                place = .observers(offset: offset)
            } else if fieldType == ObservationRegistrar.self {
                place = .registrar(offset: offset)
            }
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
            guard let property = properties[name], let registrar = property.place.registrar(of: self) else { continue }
            property.keyPath.announce(self, registrar)
        }
    }
}
