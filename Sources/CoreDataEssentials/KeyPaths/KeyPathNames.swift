import StrataLocks
import StrataPredicates

/// The names of Swift key paths of managed objects: `city.name` for `\Venue.city?.name`.
///
/// A name comes from the table of a class (`managedProperties`). If the class has no table, or the key path is nested,
/// then the name comes from a recording (``KeyPathRecording``). Each key path is resolved once. Any thread may use it.
package enum KeyPathNames {
    // @unchecked Sendable: key paths of properties capture nothing, and are immutable.
    private struct Key: Hashable, @unchecked Sendable {
        let keyPath: AnyKeyPath
    }

    private static let known = Locked<[Key: Result<String, PredicateTranslationError>]>([:])

    /// The name of a key path.
    ///
    /// - Throws: ``PredicateTranslationError`` if the key path does not lead to a property of the model.
    package static func name(of keyPath: AnyKeyPath, in type: NSManagedObject.Type) throws -> String {
        let key = Key(keyPath: keyPath)
        if let result = known.withLock({ $0[key] }) { return try result.get() }
        // This is not done under the lock, because accessors are code of the program.
        let result = Result { () throws(PredicateTranslationError) in try find(keyPath, type) }
        known.withLock { $0[key] = result }
        return try result.get()
    }

    private static func find(
        _ keyPath: AnyKeyPath,
        _ type: NSManagedObject.Type
    ) throws(PredicateTranslationError) -> String {
        // A subclass lists its own properties after the inherited ones, so the last entry counts.
        if let entry = type.managedProperties.last(where: { $0.keyPath == keyPath }) { return entry.name }
        let recording = KeyPathRecording(.distinct)
        let (root, value) = recording.apply(keyPath, to: type)
        let name = try Reading(keyPath: keyPath, root: root, value: value, recording: recording).name()
        guard recording.steps.allSatisfy({ $0.declaredType != nil }), !(value is NSManagedObject) else { return name }
        // An accessor that computes with the value it reads is detected with these samples.
        for samples in [Samples.zero, .none] {
            let recording = KeyPathRecording(samples)
            let (root, value) = recording.apply(keyPath, to: type)
            guard try Reading(keyPath: keyPath, root: root, value: value, recording: recording).name() == name else {
                throw Reading.failure(keyPath, "it reads now one property, now another")
            }
        }
        return name
    }
}

extension NSManagedObject: KeyPathNaming {
    package static func predicateName(of keyPath: AnyKeyPath) throws -> String {
        try KeyPathNames.name(of: keyPath, in: self)
    }

    package static var castName: String { String(describing: self) }
}

/// The outcome of applying a key path once.
private struct Reading {
    let keyPath: AnyKeyPath
    let root: NSManagedObject
    let value: Any?
    let recording: KeyPathRecording

    /// The name that follows from the reads.
    func name() throws(PredicateTranslationError) -> String {
        if recording.isRefused { throw failure("it compares by code") }
        var names: [String] = []
        var owner: NSManagedObject? = root
        var last: KeyPathRecording.Step?
        for step in recording.steps {
            // An accessor may read a property twice.
            if let last, step.owner === last.owner, step.name == last.name { continue }
            guard step.owner === owner else { throw failure("it reads more than one property of an object") }
            names.append(step.name)
            owner = step.value as? NSManagedObject
            last = step
        }
        guard let last else { return try nameOfObject(root, names) }
        if let owner { return try nameOfObject(owner, names) }
        try checkValue(last)
        return names.joined(separator: ".")
    }

    /// The name of a key path that ends at an object, or at its ID.
    private func nameOfObject(_ object: NSManagedObject, _ names: [String]) throws(PredicateTranslationError) -> String
    {
        if let value = value as? NSManagedObject, value === object {
            return names.isEmpty ? "SELF" : names.joined(separator: ".")
        }
        if let id = value as? NSManagedObjectID, id === object.objectID {
            return (names + ["objectID"]).joined(separator: ".")
        }
        throw failure("it is no attribute or relationship of the model")
    }

    /// Checks that the key path returns the property's value, and not a value computed from it.
    private func checkValue(_ step: KeyPathRecording.Step) throws(PredicateTranslationError) {
        let declared = step.declaredType.map { unwrapped($0) }
        let found = unwrapped(type(of: keyPath).valueType)
        if let declared, declared != found, !isRawValue(of: declared, found) {
            throw failure("it makes something else of the property \"\(step.name)\"")
        }
        // `!` and `??` cannot be distinguished, and with `??` the value is not the property's.
        if let exact = step.declaredType, declared != exact, found == type(of: keyPath).valueType, !isCollection(found)
        {
            throw failure(
                "it is not optional, while the property \"\(step.name)\" is; use the optional property itself"
            )
        }
        guard let sample = step.value as? AnyHashable else {
            guard value == nil || step.declaredType == nil || isCollection(found) || found is any RawRepresentable.Type
            else { throw failure("it makes something else of the property \"\(step.name)\"") }
            return
        }
        let raw = (value as? any RawRepresentable)?.rawValue ?? value
        guard let raw = raw as? AnyHashable, raw == sample else {
            throw failure("it makes something else of the property \"\(step.name)\"")
        }
    }

    private func type(of keyPath: AnyKeyPath) -> AnyKeyPath.Type { Swift.type(of: keyPath) }

    private func isCollection(_ type: Any.Type) -> Bool {
        guard !(type is String.Type), !(type is Data.Type) else { return false }
        return type is any Collection.Type || type is NSSet.Type || type is NSOrderedSet.Type
    }

    /// Whether `type` is the raw type of an enumeration.
    private func isRawValue(of enumeration: Any.Type, _ type: Any.Type) -> Bool {
        guard let enumeration = enumeration as? any RawRepresentable.Type else { return false }
        func holds<Value: RawRepresentable>(_: Value.Type) -> Bool { Value.RawValue.self == type }
        return holds(enumeration)
    }

    private func failure(_ reason: String) -> PredicateTranslationError { Self.failure(keyPath, reason) }

    static func failure(_ keyPath: AnyKeyPath, _ reason: String) -> PredicateTranslationError {
        let type = Swift.type(of: keyPath)
        return PredicateTranslationError(
            "CoreData: the key path \(keyPath), from \(type.rootType) to \(type.valueType), has no name in the model: \(reason)."
        )
    }
}
