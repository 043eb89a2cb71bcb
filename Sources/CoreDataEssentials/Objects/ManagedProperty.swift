import Foundation
import StrataLocks
import StrataRows
import Synchronization

/// One property of a managed-object class, declared with `@Managed`, by which typed accesses find its slot.
///
/// The macro makes one for each property. It remembers the place of the property in the entities that it met last, so
/// an access costs a comparison instead of a look-up by name. Any thread may use it.
///
/// ```swift
/// let name = ManagedProperty<String>("name")
/// print(venue.managedValue(name))
/// ```
public struct ManagedProperty<Value>: ~Copyable, Sendable {
    /// The property without its type.
    public let untyped: AnyManagedProperty

    /// Makes a property from its name in the model.
    ///
    /// If the name is a literal, then the optimising compiler lays out the whole property itself. A static property
    /// then needs no initialiser, which each access would have to check.
    ///
    /// - Parameter name: The name in the model.
    @inlinable
    public init(_ name: String) { untyped = AnyManagedProperty(name) { Value.self } }
}

/// The part of a ``ManagedProperty`` that does not depend on its type.
///
/// ```swift
/// print(ManagedProperty<String>("name").untyped.name)
/// ```
public struct AnyManagedProperty: ~Copyable, Sendable {
    /// A scope of entities and the place of the property there, packed; 0 while nothing is known.
    @usableFromInline let known: AtomicCell<UInt64>
    /// The property's name in the model.
    public let name: String
    /// The declared type, as a function, because the compiler cannot lay out a type that only the runtime makes.
    @usableFromInline let valueType: @Sendable () -> Any.Type

    @inlinable
    init(_ name: String, _ valueType: @escaping @Sendable () -> Any.Type) {
        known = AtomicCell(0)
        self.name = name
        self.valueType = valueType
    }

    /// The place of the property in objects of `layout`, if it has been looked up for entities like theirs.
    @inline(__always)
    borrowing func knownSlot(in layout: Unmanaged<EntityLayout>) -> UnsafeSlot? {
        let packed = known.load(ordering: .relaxed)
        let scope = UInt32(truncatingIfNeeded: packed >> 32)
        guard layout._withUnsafeGuaranteedRef({ $0.isIn(scope: scope) }) else { return nil }
        return UnsafeSlot(packed: UInt32(truncatingIfNeeded: packed))
    }

    /// The place of the property in objects of `layout`, if it is a slot or a to-many relationship.
    ///
    /// The type was checked when the place was last looked up.
    @inline(__always)
    borrowing func slot(
        in layout: Unmanaged<EntityLayout>,
        _ kinds: @autoclosure () -> ManagedValueKind
    ) -> UnsafeSlot {
        knownSlot(in: layout) ?? find(in: layout.takeUnretainedValue(), kinds())
    }

    @inline(never)
    private borrowing func find(in layout: EntityLayout, _ kind: ManagedValueKind) -> UnsafeSlot {
        let type = valueType()
        let base = layout.primitiveBase(of: name)
        guard let place = layout.places[base ?? name] else {
            if let recording = KeyPathRecording.current, recording.announce(name, type, in: layout) {
                return .elsewhere
            }
            fatalError(
                "CoreData: entity \(layout.entity.name ?? "") has no property \"\(name)\", which its class declares as \(type). Add it to the model, or remove it from the class."
            )
        }
        let found: UnsafeSlot
        switch place {
        case .slot(let index):
            let slot = layout.slots[index]
            kind.require(slot: slot, layout: layout, as: type)
            slot.relationship?.registerClass(of: type)
            found = UnsafeSlot(index: slot.index, word: slot.word)
        case .toMany(let index):
            kind.require(place: place, name: name, layout: layout, as: type)
            layout.toMany[index].relationship.registerClass(of: type)
            found = UnsafeSlot(index: index, word: 0)
        case .transient, .composite, .fetched:
            kind.require(place: place, name: name, layout: layout, as: type)
            return .elsewhere
        }
        // A known place is written to as for any property, but primitive values do not mark the object as changed. So
        // they are not remembered.
        if found != .elsewhere, base == nil {
            known.store(UInt64(layout.scope(ofProperty: name)) << 32 | UInt64(found.packed), ordering: .relaxed)
        }
        return found
    }
}

/// The position and word of a slot in 32 bits; for a to-many relationship, its position among those.
struct UnsafeSlot: Equatable {
    let packed: UInt32

    init(packed: UInt32) { self.packed = packed }

    init(index: Int, word: Int) {
        // An entity with more slots or words than fit uses the slow path.
        packed = index < 0xFFFF && word < 0xFFFF ? UInt32(index) << 16 | UInt32(word) : .max
    }

    /// The place of a property that is neither a slot of the row nor a to-many relationship: a transient or a
    /// composite one.
    static let elsewhere = UnsafeSlot(packed: .max)

    var index: Int {
        @inline(__always) get { Int(packed >> 16) }
    }
    var word: Int {
        @inline(__always) get { Int(packed & 0xFFFF) }
    }
}

/// A property that a class declares with `@Managed`, for finding the names of key paths.
///
/// ```swift
/// print(Venue.managedProperties.map(\.name))
/// ```
public struct ManagedPropertyInfo {
    /// The property's name in the model.
    public let name: String
    /// The key path of the Swift property.
    public let keyPath: AnyKeyPath
    /// The declared type.
    public let type: Any.Type
    package let traits: [PropertyTrait]

    /// Describes one property.
    ///
    /// - Parameters:
    ///   - name: The name in the model.
    ///   - keyPath: The property of the class.
    ///   - type: Its type in Swift.
    public init(name: String, keyPath: AnyKeyPath, type: Any.Type) {
        self.name = name
        self.keyPath = keyPath
        self.type = type
        traits = []
    }

    /// Describes one property with its traits, which have to fit its type.
    ///
    /// - Parameters:
    ///   - name: The name in the model.
    ///   - keyPath: The property of the class.
    ///   - type: Its type in Swift.
    ///   - traits: The traits that the macro's arguments give to it.
    public init<Value>(name: String, keyPath: AnyKeyPath, type: Value.Type, traits: [ManagedTrait<Value>]) {
        self.name = name
        self.keyPath = keyPath
        self.type = type
        self.traits = traits.map(\.part)
    }
}

/// The kind of property that a Swift type can stand for.
///
/// ```swift
/// if case .attribute(let types) = Int64.managedKind { print(types) }
/// ```
public enum ManagedValueKind: Sendable {
    /// An attribute of one of these types.
    case attribute([NSAttributeType])
    /// A transformable or composite attribute, or a transient one of any type.
    case object
    /// A to-one relationship.
    case toOne
    /// A to-many relationship; ordered, unordered, or either.
    case toMany(isOrdered: Bool?)
}

extension ManagedValueKind {
    /// Stops the program if a slot cannot hold values of `type`.
    func require(slot: Slot, layout: EntityLayout, as type: Any.Type) {
        switch self {
        case .attribute(let types) where types.contains(NSAttributeType(slot.type)): return
        case .toOne where slot.kind == .reference: return
        case .object where slot.kind != .reference: return
        default: fail(slot.name, of: layout, type: type, found: slot.typeName)
        }
    }

    /// Stops the program if a property that is not a slot cannot hold values of `type`.
    func require(place: PropertyPlace, name: String, layout: EntityLayout, as type: Any.Type) {
        switch (self, place) {
        case (.toMany(let wantsOrder), .toMany(let index)):
            let isOrdered = layout.toMany[index].isOrdered
            guard let wantsOrder, wantsOrder != isOrdered else { return }
            fail(
                name,
                of: layout,
                type: type,
                found: isOrdered ? "an ordered to-many relationship" : "an unordered to-many relationship"
            )
        case (_, .toMany(let index)):
            fail(
                name,
                of: layout,
                type: type,
                found: layout.toMany[index].isOrdered ? "an ordered to-many relationship" : "a to-many relationship"
            )
        case (.toMany, _):
            fail(name, of: layout, type: type, found: "no to-many relationship")
        case (_, .fetched):
            fail(name, of: layout, type: type, found: "a fetched property")
        case (.attribute, .composite), (.toOne, .composite):
            fail(name, of: layout, type: type, found: "a composite attribute")
        case (_, .transient(let index)):
            requireTransient(layout.transients[index], of: layout, type: type)
        default: return
        }
    }

    private func requireTransient(_ transient: TransientSlot, of layout: EntityLayout, type: Any.Type) {
        let attribute = (transient.property as? NSAttributeDescription)?.attributeType
        switch self {
        case .attribute(let types):
            guard attribute != .undefinedAttributeType, !(attribute.map(types.contains) ?? false) else { return }
        case .toOne where attribute == nil: return
        case .object where attribute != nil: return
        default: break
        }
        let found =
            attribute.map { "a transient attribute of type \($0.described)" } ?? "a transient to-one relationship"
        fail(transient.name, of: layout, type: type, found: found)
    }

    private func fail(_ name: String, of layout: EntityLayout, type: Any.Type, found: String) -> Never {
        fatalError(
            "CoreData: property \"\(name)\" is declared as \(type), but in entity \(layout.entity.name ?? "") of the model it is \(found)."
        )
    }
}

extension Slot {
    /// A description of the slot's contents.
    var typeName: String {
        if kind == .reference { return "a to-one relationship" }
        return "an attribute of type \(type.described)"
    }
}
