import Foundation
import StrataPredicates
import StrataRows

extension NSManagedObject {
    // MARK: - Any property by name

    /// The value of a property, for code that knows names but not types.
    final func anyValue(forKey key: String) -> Any? {
        switch layout.places[key] {
        case .slot(let index):
            let slot = layout.slots[index]
            guard slot.kind != .reference else { return toOne(slot) }
            return publicValue(of: slot, in: readableRow(index))
        case .composite(let index):
            return compositeValue(layout.composites[index], in: readableRow())
        case .toMany(let index):
            let slot = layout.toMany[index]
            return slot.isOrdered ? orderedSet(slot) : collection(of: slot, members: members(slot))
        case .transient(let index):
            if !flags.isDisjoint(with: .slowRead) { prepareToRead() }
            guard let values = extras?.transients, index < values.count else {
                return (layout.transients[index].property as? NSAttributeDescription)?.defaultValue
            }
            return values[index]
        case .fetched:
            return context?.valuesOfFetchedProperty(key, of: self)
        case nil:
            switch key {
            case "objectID": return objectID
            case "entity": return entity
            case "self": return self
            default:
                if let recording = KeyPathRecording.current, KeyPathRecording.isRecorder(layout) {
                    return recording.read(key, of: self)
                }
                if let base = layout.primitiveBase(of: key) { return anyValue(forKey: base) }
                return isTrue(key) ?? value(forUndefinedKey: key)
            }
        }
    }

    /// The answer of one of the properties of every object that are true or false; `nil` for another key.
    ///
    /// As in Objective-C, a name with `is` may be written without it.
    private func isTrue(_ key: String) -> Bool? {
        switch key {
        case "isDeleted", "deleted": isDeleted
        case "isFault", "fault": isFault
        case "isInserted", "inserted": isInserted
        case "isUpdated", "updated": isUpdated
        case "hasChanges": hasChanges
        case "hasPersistentChangedValues": hasPersistentChangedValues
        default: nil
        }
    }

    /// Sets a property by its name.
    ///
    /// Inverse relationships are updated.
    ///
    /// - Parameters:
    ///   - value: The value; `nil` or `NSNull` for none.
    ///   - key: The name of the property.
    ///   - quietly: Whether an attribute is set without marking the object as changed.
    final func setAnyValue(_ value: Any?, forKey key: String, quietly: Bool = false) {
        let value = value is NSNull ? nil : value
        switch layout.places[key] {
        case .slot(let index):
            let slot = layout.slots[index]
            guard slot.kind == .reference else { return setAttribute(value, slot, quietly: quietly) }
            guard let value else { return setToOne(nil, slot) }
            guard let object = value as? NSManagedObject else {
                refuse(value, forKey: key, wanted: "an object of the destination entity")
            }
            setToOne(object, slot)
        case .composite(let index):
            let composite = layout.composites[index]
            setComposite(value, forKey: composite.name, elements: composite.leaves, quietly: quietly)
        case .toMany(let index):
            let slot = layout.toMany[index]
            guard let value else { return setMembers([], slot) }
            guard let objects = managedObjects(in: value) else {
                refuse(value, forKey: key, wanted: "a collection of objects")
            }
            setMembers(objects, slot)
        case .transient(let index):
            setTransient(value, layout.transients[index], quietly: quietly)
        case .fetched:
            fatalError("CoreData: \"\(key)\" of \(entity.name ?? "") is a fetched property, which cannot be set.")
        case nil:
            if let base = layout.primitiveBase(of: key) { return setAnyValue(value, forKey: base, quietly: true) }
            if !quietly, let base = layout.setterBase(of: key) { return setAnyValue(value, forKey: base) }
            setValue(value, forUndefinedKey: key)
        }
    }

    private func setAttribute(_ value: Any?, _ slot: Slot, quietly: Bool) {
        let row = quietly ? primitiveRow() : writableRow(slot.index)
        if slot.type == .transformable {
            let extras = writableExtras
            extras.setDecoded(value, slot.index, in: row)
            extras.refused[slot.index] = nil
            guard let value else { return row.setNull(slot) }
            if let data = slot.attribute?.archived(value) {
                row.setData(data, slot)
            } else {
                // The value can be read back, but no save accepts it.
                row.setNull(slot)
                extras.refused[slot.index] = value
            }
            return
        }
        do {
            try row.setAny(value, slot)
        } catch {
            refuse(value, forKey: slot.name, wanted: "a value for \(slot.typeName)")
        }
    }

    /// The row for a primitive write.
    ///
    /// The write begins no change of the event: the code that marks the object does that.
    private func primitiveRow() -> Row {
        let row = quietRow()
        if flags.isDisjoint(with: [.eventInserted, .eventUpdated]) { extras?.eventBase = nil }
        return row
    }

    /// Sets all elements of a composite attribute, or of an element that is itself composite.
    private func setComposite(_ value: Any?, forKey name: String, elements: [Int], quietly: Bool) {
        var leaves: [String: Any] = [:]
        if let value {
            guard let dictionary = value as? [String: Any] else { refuse(value, forKey: name, wanted: "a dictionary") }
            flatten(dictionary, name, into: &leaves)
        }
        for index in elements {
            let slot = layout.slots[index]
            setAttribute(nullToNil(leaves.removeValue(forKey: slot.name)), slot, quietly: quietly)
        }
        // An element that is itself composite may be given as nil.
        let strays = leaves.filter { !($0.value is NSNull && layout.hasElements(of: $0.key)) }
        if let stray = strays.keys.min() { refuse(value, forKey: stray, wanted: "an element of composite \(name)") }
    }

    /// Sets an element of a composite attribute by its path, and leaves the other elements alone.
    final func setElement(_ value: Any?, at path: String, of composite: CompositeSlot) {
        if case .slot? = layout.places[path] { return setValue(value, forKey: path) }
        // An element that is itself composite has no place.
        let elements = composite.leaves.filter { layout.slots[$0].name.hasPrefix(path + ".") }
        guard !elements.isEmpty else { return setValue(value, forUndefinedKey: path) }
        setComposite(nullToNil(value), forKey: path, elements: elements, quietly: false)
    }

    private func flatten(_ values: [String: Any], _ prefix: String, into leaves: inout [String: Any]) {
        for (name, value) in values {
            let path = prefix + "." + name
            if let nested = value as? [String: Any], layout.places[path] == nil {
                flatten(nested, path, into: &leaves)
            } else {
                leaves[path] = value
            }
        }
    }

    private func setTransient(_ value: Any?, _ transient: TransientSlot, quietly: Bool) {
        var value = value
        if let given = value {
            switch transient.property {
            case let attribute as NSAttributeDescription:
                do {
                    value = try attribute.attributeType.transientValue(given)
                } catch {
                    refuse(
                        given,
                        forKey: transient.name,
                        wanted: "a value for an attribute of type \(attribute.attributeType.described)"
                    )
                }
            case is NSRelationshipDescription where !(given is NSManagedObject):
                refuse(given, forKey: transient.name, wanted: "an object of the destination entity")
            default: break
            }
        }
        replaceTransient(value, at: transient.index, quietly: quietly)
    }

    /// Sets a transient property to a value of its type.
    final func replaceTransient(_ value: Any?, at index: Int, quietly: Bool = false) {
        if !flags.isDisjoint(with: .slowRead) { prepareToRead() }
        if !quietly { markUpdated() }
        let extras = writableExtras
        if extras.transients.count < layout.transients.count {
            extras.transients = layout.transients.map { ($0.property as? NSAttributeDescription)?.defaultValue }
        }
        // Each context derives the values of `awakeFromFetch` itself.
        if flags.isDisjoint(with: .awaking) {
            // A value that an accessor keeps for an object without changes belongs to no event, and a new object had no
            // value before.
            if flags.contains(.eventUpdated) {
                extras.keepSavedTransient(index)
                context?.undoLog.record(extras.transients[index], of: self, transient: index)
            }
            extras.setTransients.insert(index)
        }
        extras.transients[index] = value
    }

    private func refuse(_ value: Any?, forKey name: String, wanted: String) -> Never {
        fatalError(
            "CoreData: property \"\(name)\" of \(entity.name ?? "") takes \(wanted), not \(value.map { "\(Swift.type(of: $0))" } ?? "nil")."
        )
    }

    // MARK: - Values of slots

    /// The value in a slot as `value(forKey:)` returns it, except that a to-one relationship gives the destination's
    /// ID.
    final func publicValue(of slot: Slot, in row: Row) -> Any? {
        guard slot.type != .transformable else { return transformedValue(of: slot, in: row) }
        guard !row.isNull(slot.index) else { return nil }
        guard slot.kind == .reference else { return row.anyValue(slot) }
        return row.reference(slot).flatMap { context?.id(of: $0, near: self) ?? destination($0)?.objectID }
    }

    /// The value in a slot; a to-one relationship gives the destination itself.
    package final func objectValue(of slot: Slot, in row: Row) -> Any? {
        guard slot.kind == .reference else { return publicValue(of: slot, in: row) }
        return row.reference(slot).flatMap { destination($0) }
    }

    /// The object in a transformable attribute; for the row that the object shows, it is decoded only once.
    private func transformedValue(of slot: Slot, in row: Row) -> Any? {
        let isShown = row.buffer === current?.buffer
        if isShown, let refused = extras?.refused[slot.index] { return refused }
        guard !row.isNull(slot.index) else { return nil }
        if isShown, let known = extras?.decodedValue(slot.index, in: row) { return known }
        let value = slot.attribute?.unarchived(row.data(slot.word))
        if isShown, let value { writableExtras.setDecoded(value, slot.index, in: row) }
        return value
    }

    /// The archive in a transformable attribute that reads as nil because the archive cannot be decoded.
    ///
    /// The archive's class or transformer is unknown here, or the archive is damaged.
    ///
    /// - Returns: `nil` for other attributes, and for values that can be decoded or are nil.
    package final func undecodableArchive(forKey key: String) -> Data? {
        guard case .slot(let index) = layout.places[key], layout.slots[index].type == .transformable else { return nil }
        let (slot, row) = (layout.slots[index], readableRow(index))
        guard !row.isNull(index), transformedValue(of: slot, in: row) == nil else { return nil }
        return row.data(slot.word)
    }

    /// Sets a transformable attribute to an archive, which need not be readable here.
    ///
    /// - Returns: Whether the attribute is transformable; if it is not, then nothing is set.
    package final func setArchive(_ archive: Data, forKey key: String) -> Bool {
        guard case .slot(let index) = layout.places[key], layout.slots[index].type == .transformable else {
            return false
        }
        let row = writableRow(index)
        writableExtras.setDecoded(nil, index, in: row)
        writableExtras.refused[index] = nil
        row.setData(archive, layout.slots[index])
        return true
    }

    /// The dictionary of a composite attribute; nil if no leaf has a value.
    final func compositeValue(_ composite: CompositeSlot, in row: Row) -> [String: Any]? {
        layout.dictionary(of: composite) { publicValue(of: $0, in: row) }
    }

    /// The present members of a to-many relationship, in a collection that does not follow later changes.
    final func collection(of slot: ToManySlot, _ references: [ObjectReference]) -> Any {
        collection(of: slot, members: destinations(references))
    }

    final func collection(of slot: ToManySlot, members: [NSManagedObject]) -> Any {
        slot.isOrdered ? NSOrderedSet(array: members) : NSSet(array: members)
    }

    private func managedObjects(in value: Any) -> [NSManagedObject]? {
        switch value {
        case let array as [NSManagedObject]: return array
        case let set as Set<NSManagedObject>: return Array(set)
        case let ordered as NSOrderedSet: return ordered.array as? [NSManagedObject]
        case let set as NSSet: return set.allObjects as? [NSManagedObject]
        case let array as NSArray: return (0..<array.count).map { array[$0] } as? [NSManagedObject]
        default: return nil
        }
    }

    // MARK: - Public members

    /// The value of the property with a name.
    ///
    /// - Parameter key: The name of a property; for another name ``value(forUndefinedKey:)`` or
    ///   ``setValue(_:forUndefinedKey:)`` is called.
    /// - Returns: The value, as ``value(forKey:)`` returns it.
    public final subscript(key: String) -> Any? {
        get { value(forKey: key) }
        set { setValue(newValue, forKey: key) }
    }

    /// The value of a property, read without the methods that a subclass may have overridden; a fault fires.
    ///
    /// ```swift
    /// print(venue.primitiveValue(forKey: "name") as? String ?? "")
    /// ```
    ///
    /// - Parameter key: The name of a property.
    /// - Returns: The value as an object, or `nil`; a to-many relationship gives a set or an ordered set.
    public final func primitiveValue(forKey key: String) -> Any? { anyValue(forKey: key) }

    /// Sets a property without the methods that a subclass may have overridden, and without marking the object as
    /// changed.
    ///
    /// The value is saved if the object has other changes, as in `willSave()`. Otherwise call
    /// ``willChangeValue(forKey:)`` before and ``didChangeValue(forKey:)`` after this method.
    ///
    /// Unlike on Apple's platforms, the inverse relationship is updated here too, because a relationship that is set
    /// on one side only would corrupt the other side.
    ///
    /// ```swift
    /// venue.setPrimitiveValue("Coliseu", forKey: "name")  // marks no change, for use in hooks
    /// ```
    ///
    /// - Parameters:
    ///   - value: The value, of the property's type.
    ///   - key: The name of a property.
    public final func setPrimitiveValue(_ value: Any?, forKey key: String) {
        setAnyValue(value, forKey: key, quietly: true)
    }

    /// The values of several properties; nil values are `NSNull`.
    ///
    /// - Parameter keys: The names of the properties.
    /// - Returns: A value for each key.
    public final func dictionaryWithValues(forKeys keys: [String]) -> [String: Any] {
        Dictionary(keys.map { ($0, value(forKey: $0) ?? NSNull()) }, uniquingKeysWith: { $1 })
    }

    /// Sets several properties; `NSNull` sets nil.
    ///
    /// - Parameter keyedValues: The values by the properties' names.
    public final func setValuesForKeys(_ keyedValues: [String: Any]) {
        for (key, value) in keyedValues { setValue(value is NSNull ? nil : value, forKey: key) }
    }
}

extension Dictionary where Key == String, Value == Any {
    /// Sets the value at the end of a path through dictionaries; missing dictionaries are made.
    mutating func insert(_ value: Any, at path: [String]) {
        guard let first = path.first else { return }
        if path.count == 1 {
            self[first] = value
        } else {
            var nested = self[first] as? [String: Any] ?? [:]
            nested.insert(value, at: Array(path.dropFirst()))
            self[first] = nested
        }
    }
}

extension EntityLayout {
    /// The dictionary of a composite attribute; `nil` if no element has a value.
    func dictionary(of composite: CompositeSlot, _ value: (Slot) -> Any?) -> [String: Any]? {
        var result: [String: Any] = [:]
        for index in composite.leaves {
            let slot = slots[index]
            guard let value = value(slot) else { continue }
            let path = slot.name.dropFirst(composite.name.count + 1).split(separator: ".").map(String.init)
            result.insert(value, at: path)
        }
        return result.isEmpty ? nil : result
    }

    /// The stored value of an attribute, a dictionary for a composite one; `nil` if it has none.
    package func storedValue(named name: String, in row: Row) -> Any? {
        switch places[name] {
        case .slot(let index): row.anyValue(slots[index])
        case .composite(let index): dictionary(of: composites[index], row.anyValue)
        default: nil
        }
    }

    /// Whether a path leads to a composite attribute inside another one.
    package func hasElements(of path: String) -> Bool { slots.contains { $0.name.hasPrefix(path + ".") } }

    /// The property whose setter a key names: `date` for `Date`, since key-value coding looks for `setDate:` with
    /// either.
    func setterBase(of key: String) -> String? {
        let base = key.prefix(1).lowercased() + key.dropFirst()
        return base != key && places[base] != nil ? base : nil
    }

    /// The property whose primitive value a key names: `name` for `primitiveName`, unless a property has that name.
    func primitiveBase(of key: String) -> String? {
        guard key.hasPrefix("primitive"), places[key] == nil else { return nil }
        let rest = key.dropFirst("primitive".count)
        let base = rest.prefix(1).lowercased() + rest.dropFirst()
        if places[base] != nil { return base }
        // `primitiveURL` may be the primitive value of a property `URL`.
        return places[String(rest)] == nil ? nil : String(rest)
    }
}
