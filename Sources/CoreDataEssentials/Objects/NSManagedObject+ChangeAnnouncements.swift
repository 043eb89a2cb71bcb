import Foundation

// Announcements of changes that code makes by primitive values, as key-value observing has them.

extension NSManagedObject {
    /// Begins a custom write.
    ///
    /// The object counts as changed from this call on.
    ///
    /// ```swift
    /// venue.willChangeValue(forKey: "price")
    /// venue.setPrimitiveValue(20, forKey: "price")
    /// venue.didChangeValue(forKey: "price")
    /// print(venue.hasChanges)
    /// ```
    ///
    /// - Parameter key: The name of the property.
    public final func willChangeValue(forKey key: String) {
        if !flags.isDisjoint(with: .slowRead) { prepareToRead() }
        if layout.places[key] != nil || !Swift.type(of: self).contextShouldIgnoreUnmodeledPropertyChanges {
            markUpdated()
        }
    }

    /// Ends a custom write.
    ///
    /// - Parameter key: The name of the property.
    public final func didChangeValue(forKey key: String) {}

    /// Begins a custom change of a to-many relationship.
    ///
    /// - Parameters:
    ///   - inKey: The name of the relationship.
    ///   - inMutationKind: Ignored.
    ///   - inObjects: Ignored.
    public final func willChangeValue(
        forKey inKey: String,
        withSetMutation inMutationKind: NSKeyValueSetMutationKind,
        using inObjects: Set<AnyHashable>
    ) { willChangeValue(forKey: inKey) }

    /// Ends a custom change of a to-many relationship.
    ///
    /// - Parameters:
    ///   - inKey: The name of the relationship.
    ///   - inMutationKind: Ignored.
    ///   - inObjects: Ignored.
    public final func didChangeValue(
        forKey inKey: String,
        withSetMutation inMutationKind: NSKeyValueSetMutationKind,
        using inObjects: Set<AnyHashable>
    ) {}

    /// Begins a custom change of an ordered relationship.
    ///
    /// The object counts as changed from this call on.
    ///
    /// ```swift
    /// final class Agenda: NSManagedObject {
    ///     func insert(_ job: NSManagedObject, at index: Int) {
    ///         willChange(.insertion, valuesAt: IndexSet(integer: index), forKey: "jobs")
    ///         let jobs = NSMutableOrderedSet(orderedSet: primitiveValue(forKey: "jobs") as? NSOrderedSet ?? [])
    ///         jobs.insert(job, at: index)
    ///         setPrimitiveValue(jobs, forKey: "jobs")
    ///         didChange(.insertion, valuesAt: IndexSet(integer: index), forKey: "jobs")
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - changeKind: Ignored.
    ///   - indexes: Ignored.
    ///   - key: The name of the relationship.
    public final func willChange(_ changeKind: NSKeyValueChange, valuesAt indexes: IndexSet, forKey key: String) {
        willChangeValue(forKey: key)
    }

    /// Ends a custom change of an ordered relationship.
    ///
    /// - Parameters:
    ///   - changeKind: Ignored.
    ///   - indexes: Ignored.
    ///   - key: The name of the relationship.
    public final func didChange(_ changeKind: NSKeyValueChange, valuesAt indexes: IndexSet, forKey key: String) {
        didChangeValue(forKey: key)
    }
}

/// The way in which an ordered relationship changes, for ``NSManagedObject/willChange(_:valuesAt:forKey:)``.
///
/// ```swift
/// venue.willChange(.removal, valuesAt: IndexSet(integer: 0), forKey: "photos")
/// ```
public enum NSKeyValueChange: UInt, Sendable {
    /// All members are replaced.
    case setting = 1
    /// Members are inserted.
    case insertion = 2
    /// Members are removed.
    case removal = 3
    /// Members are replaced.
    case replacement = 4
}

/// The way in which a to-many relationship changes, for
/// ``NSManagedObject/willChangeValue(forKey:withSetMutation:using:)``.
///
/// ```swift
/// let added: Set<AnyHashable> = [venue]
/// city.willChangeValue(forKey: "venues", withSetMutation: .union, using: added)
/// city.didChangeValue(forKey: "venues", withSetMutation: .union, using: added)
/// ```
public enum NSKeyValueSetMutationKind: UInt, Sendable {
    /// Members are added.
    case union = 1
    /// Members are removed.
    case minus = 2
    /// Members that are not among the given ones are removed.
    case intersect = 3
    /// The members are replaced.
    case set = 4
}
