import CoreDataEssentials
import StrataPredicates

extension NSSortDescriptor {
    /// Sorts by a property, in the natural order of its values: numbers and dates by value, strings by their bytes.
    ///
    /// ```swift
    /// request.sortDescriptors = [NSSortDescriptor(keyPath: \Venue.city?.name, ascending: true)]
    /// ```
    ///
    /// The key path becomes the descriptor's ``key``, so a store can sort by it. It may lead through to-one
    /// relationships. If it is no property of the model, then the program stops with a message that names the key path.
    ///
    /// - Parameters:
    ///   - keyPath: The property, optional or not.
    ///   - ascending: Whether small values come first. `nil` sorts before all other values.
    public convenience init<Root: NSManagedObject, Value>(keyPath: KeyPath<Root, Value>, ascending: Bool) {
        self.init(named: keyPath, ascending: ascending)
    }

    /// Sorts by a property, in the natural order of its values.
    ///
    /// It works like the initialiser for values of any type. Swift prefers this one over Foundation's, whose
    /// descriptors have no key.
    ///
    /// - Parameters:
    ///   - keyPath: The property.
    ///   - ascending: Whether small values come first. `nil` sorts before all other values.
    public convenience init<Root: NSManagedObject, Value: Comparable>(
        keyPath: KeyPath<Root, Value>,
        ascending: Bool
    ) {
        self.init(named: keyPath, ascending: ascending)
    }

    /// Sorts by the values of a property, compared by code.
    ///
    /// Works in memory only: a store refuses it.
    ///
    /// - Parameters:
    ///   - keyPath: The property.
    ///   - ascending: Whether values come in the order of the comparator, and not in reverse.
    ///   - cmptr: The function that compares two values.
    public convenience init<Root: NSManagedObject, Value>(
        keyPath: KeyPath<Root, Value>,
        ascending: Bool,
        comparator cmptr: @escaping Comparator
    ) {
        self.init(plain: \Root.[comparedByCode: keyPath], ascending: ascending, cmptr)
    }

    private convenience init<Root: NSManagedObject, Value>(named keyPath: KeyPath<Root, Value>, ascending: Bool) {
        _ = nameOrStop(keyPath)
        self.init(plain: keyPath, ascending: ascending, NSSortDescriptor.naturalOrder)
    }

    /// Foundation's initialiser, which the ones above would hide if `Root` is known to be a managed object.
    private convenience init<Root, Value>(
        plain keyPath: KeyPath<Root, Value>,
        ascending: Bool,
        _ comparator: @escaping Comparator
    ) {
        self.init(keyPath: keyPath, ascending: ascending, comparator: comparator)
    }
}

extension NSFetchRequestResult where Self: NSManagedObject {
    /// The value at a key path; the subscript marks descriptors that compare by code, which have no key for a store.
    fileprivate subscript<Value>(comparedByCode keyPath: KeyPath<Self, Value>) -> Value {
        KeyPathRecording.current?.refuse()
        return self[keyPath: keyPath]
    }
}

extension KeyedSortDescriptorFactory where Self: NSSortDescriptor {
    /// Sorts by a property, whose strings are compared by a named method.
    ///
    /// ```swift
    /// request.sortDescriptors = [NSSortDescriptor(keyPath: \Venue.name, ascending: true, selector: .localizedStandardCompare)]
    /// ```
    ///
    /// An addition to Apple's API: Foundation's `.localizedStandard` does not exist on Linux. If the key path is no
    /// property of the model, then the program stops.
    ///
    /// - Parameters:
    ///   - keyPath: The property, optional or not.
    ///   - ascending: Whether small values come first. `nil` sorts before all other values.
    ///   - selector: One of the constants of ``Selector``.
    public init<Root: NSManagedObject, Value>(keyPath: KeyPath<Root, Value>, ascending: Bool, selector: Selector) {
        self.init(key: sortKey(keyPath), ascending: ascending, selector: selector)
    }

    /// Makes a sort descriptor from a Swift sort descriptor.
    ///
    /// ```swift
    /// request.sortDescriptors = [NSSortDescriptor(SortDescriptor(\Venue.name, order: .reverse))]
    /// ```
    ///
    /// Strings are compared by their bytes: on Linux, `.lexical` is the only string comparator, and the default. If the
    /// key path is no property of the model, then the program stops.
    ///
    /// - Parameter sortDescriptor: A descriptor with a key path. If it has none, then the program stops.
    public init<Compared: NSManagedObject>(_ sortDescriptor: SortDescriptor<Compared>) {
        guard let keyPath = sortDescriptor.keyPath else {
            fatalError("CoreData: a SortDescriptor without a key path cannot become an NSSortDescriptor.")
        }
        self.init(key: sortKey(keyPath), ascending: sortDescriptor.order == .forward)
    }
}

extension NSExpression {
    /// The value of a property, which may be reached through relationships.
    ///
    /// If the key path is no property of the model, then the program stops with a message that names it.
    ///
    /// - Parameter keyPath: A key path of properties of the model, such as `\Venue.city?.name`.
    public convenience init<Root: NSManagedObject, Value>(forKeyPath keyPath: KeyPath<Root, Value>) {
        self.init(forKeyPath: nameOrStop(keyPath))
    }
}

/// The name of a key path, for initialisers that cannot fail: an error here is a fault of the program, not of its data.
private func nameOrStop(_ keyPath: AnyKeyPath) -> String {
    do {
        return try keyPath.predicateName()
    } catch {
        fatalError("\(error)")
    }
}

/// The name of a key path for a sort descriptor, nil for the objects themselves.
private func sortKey(_ keyPath: AnyKeyPath) -> String? {
    let name = nameOrStop(keyPath)
    return name == "SELF" ? nil : name
}
