import Foundation

/// The properties of an entity that an update has changed, as `ZCOLUMNS` holds them.
///
/// The first property is the highest bit of the first byte.
package struct HistoryMask: Sendable, Hashable {
    package let places: HistoryPlaces
    package private(set) var bytes: [UInt8]

    /// The mask of no change.
    package init(_ places: HistoryPlaces) {
        self.places = places
        bytes = [UInt8](repeating: 0, count: places.byteCount)
    }

    /// The mask that a file contains.
    ///
    /// Bytes beyond the entity's properties are ignored.
    package init(_ places: HistoryPlaces, _ bytes: UnsafeRawBufferPointer) {
        self.init(places)
        for index in self.bytes.indices where index < bytes.count { self.bytes[index] = bytes[index] }
    }

    package mutating func insert(_ bit: Int) { bytes[bit >> 3] |= 0x80 >> UInt8(bit & 7) }

    package func contains(_ bit: Int) -> Bool { bytes[bit >> 3] & (0x80 >> UInt8(bit & 7)) != 0 }

    package mutating func formUnion(_ other: HistoryMask) {
        for (index, byte) in other.bytes.enumerated() where index < bytes.count { bytes[index] |= byte }
    }

    /// The descriptions that the layer above has for the changed properties.
    ///
    /// A composite attribute is among them if any of its leaves has changed.
    package var descriptions: [AnyObject & Sendable] {
        places.properties.filter { contains($0.bit) }.map(\.description)
    }

    package static func == (left: HistoryMask, right: HistoryMask) -> Bool {
        left.places === right.places && left.bytes == right.bytes
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}

/// The bit of a mask for each property of one entity.
///
/// The order is that of Apple's files, as far as it is known: first to-one relationships by name, then attributes with
/// inherited ones first, then to-many relationships by name. A to-one relationship takes two bits if it has a column
/// for its destination's entity.
package final class HistoryPlaces: Sendable {
    package let byteCount: Int
    /// The bits of slots by their positions.
    ///
    /// A slot with two columns has a second bit, which follows the first.
    private let slotBits: [(bit: Int, isWide: Bool)]
    /// The bits of to-many relationships by their positions.
    private let toManyBits: [Int]
    private let bitsByName: [String: [Int]]
    /// The names of slots and of to-many relationships, each with its first bit.
    private let names: [(bit: Int, name: String)]
    /// The bits of attributes that the store computes.
    package let derivedBits: [Int]
    fileprivate let properties: [(bit: Int, description: AnyObject & Sendable)]

    /// Gives each stored property its bits.
    ///
    /// - Parameters:
    ///   - layout: The entity.
    ///   - isWide: Whether a to-one relationship has a column for its destination's entity.
    package init(_ layout: EntityLayout, isWide: (Slot) -> Bool) {
        var slotBits = [(bit: Int, isWide: Bool)](repeating: (0, false), count: layout.slots.count)
        var toManyBits = [Int](repeating: 0, count: layout.toMany.count)
        var names: [String: [Int]] = [:]
        var properties: [(bit: Int, description: AnyObject & Sendable)] = []
        var derived: [Int] = []
        var next = 0
        for slot in layout.referenceSlots.sorted(by: { $0.name < $1.name }) {
            let isWide = isWide(slot)
            slotBits[slot.index] = (next, isWide)
            names[slot.name] = isWide ? [next, next + 1] : [next]
            properties.append((next, slot.description))
            next += isWide ? 2 : 1
        }
        let composites = layout.composites.flatMap { composite in composite.leaves.map { ($0, composite) } }
        let composite = Dictionary(composites, uniquingKeysWith: { first, _ in first })
        for slot in layout.slots where slot.kind != .reference {
            slotBits[slot.index] = (next, false)
            names[slot.name, default: []].append(next)
            if let composite = composite[slot.index] { names[composite.name, default: []].append(next) }
            properties.append((next, composite[slot.index]?.description ?? slot.description))
            if slot.isDerived { derived.append(next) }
            next += 1
        }
        for slot in layout.toMany.filter({ !$0.isTransient }).sorted(by: { $0.name < $1.name }) {
            toManyBits[slot.index] = next
            names[slot.name] = [next]
            properties.append((next, slot.relationship.description))
            next += 1
        }
        byteCount = (next + 7) / 8
        self.slotBits = slotBits
        self.toManyBits = toManyBits
        self.properties = properties
        bitsByName = names
        self.names =
            layout.slots.map { (slotBits[$0.index].bit, $0.name) }
            + layout.toMany.filter { !$0.isTransient }.map { (toManyBits[$0.index], $0.name) }
        derivedBits = derived
    }

    /// The mask of changed slots.
    package func mask(_ slots: SlotSet) -> HistoryMask {
        var mask = HistoryMask(self)
        for (index, place) in slotBits.enumerated() where slots.contains(index) {
            mask.insert(place.bit)
            if place.isWide { mask.insert(place.bit + 1) }
        }
        return mask
    }

    /// The mask of changed to-many relationships, by their positions.
    package func mask(toMany indices: [Int]) -> HistoryMask {
        var mask = HistoryMask(self)
        for index in indices { mask.insert(toManyBits[index]) }
        return mask
    }

    /// The mask of changed properties by name; names that the entity does not store are ignored.
    package func mask(names: some Sequence<String>) -> HistoryMask {
        var mask = HistoryMask(self)
        for name in names { for bit in bitsByName[name] ?? [] { mask.insert(bit) } }
        return mask
    }

    /// The names of the properties in a mask.
    ///
    /// Leaves of composite attributes have their paths; the whole is not named.
    package func names(of mask: HistoryMask) -> [String] {
        names.filter { mask.contains($0.bit) }.map(\.name)
    }

    /// The mask of all attributes that the store computes.
    package var derivedMask: HistoryMask {
        var mask = HistoryMask(self)
        for bit in derivedBits { mask.insert(bit) }
        return mask
    }
}
