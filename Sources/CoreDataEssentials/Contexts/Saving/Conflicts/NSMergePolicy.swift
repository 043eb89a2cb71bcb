import Foundation

/// Decides how a save resolves conflicts with changes that were saved elsewhere.
///
/// To write your own policy, make a subclass. Override ``resolve(optimisticLockingConflicts:)`` or
/// ``resolve(constraintConflicts:)``, change the conflicting objects as you like, and call `super` to apply the
/// policy's type. When the call returns without an error, the save tries again, based on the newer versions.
///
/// A context calls its policy inside its own scope. Contexts that share a policy may call it at the same time.
///
/// See <doc:Saving>.
///
/// ```swift
/// context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
/// venue.price += 1
/// try context.save()
/// ```
open class NSMergePolicy: NSObject, @unchecked Sendable {
    // @unchecked Sendable: the only state is constant; a subclass has to see to its own state.

    /// The way in which the policy itself resolves conflicts.
    public let mergeType: NSMergePolicyType
    /// Whether a new object gives its default values to the stored object into which it is merged, and keeps only nil.
    let countsDefaults: Bool

    /// Makes a policy of one of the five types.
    ///
    /// - Parameter ty: The way in which the policy resolves conflicts.
    public init(merge ty: NSMergePolicyType) {
        mergeType = ty
        countsDefaults = false
    }

    /// Makes a policy for objects whose initialisers set all values.
    ///
    /// - Parameters:
    ///   - type: The way in which the policy resolves conflicts.
    ///   - countsDefaults: Whether a new object gives its default values to the stored object into which it is merged.
    package init(merge type: NSMergePolicyType, countsDefaults: Bool) {
        mergeType = type
        self.countsDefaults = countsDefaults
    }

    /// A save with conflicts throws `managedObjectMerge` (133020) or `managedObjectConstraintMerge` (133021).
    ///
    /// The default.
    open class var error: NSMergePolicy { errorPolicy }
    /// Stored values win for properties that were changed on both sides; other changes are kept.
    open class var mergeByPropertyStoreTrump: NSMergePolicy { storeTrumpPolicy }
    /// Values in memory win for properties that were changed on both sides; other stored changes are kept.
    open class var mergeByPropertyObjectTrump: NSMergePolicy { objectTrumpPolicy }
    /// The object in memory is stored as a whole.
    open class var overwrite: NSMergePolicy { overwritePolicy }
    /// The object in memory is discarded in favour of the stored one.
    open class var rollback: NSMergePolicy { rollbackPolicy }

    private static let errorPolicy = NSMergePolicy(merge: .errorMergePolicyType)
    private static let storeTrumpPolicy = NSMergePolicy(merge: .mergeByPropertyStoreTrumpMergePolicyType)
    private static let objectTrumpPolicy = NSMergePolicy(merge: .mergeByPropertyObjectTrumpMergePolicyType)
    private static let overwritePolicy = NSMergePolicy(merge: .overwriteMergePolicyType)
    private static let rollbackPolicy = NSMergePolicy(merge: .rollbackMergePolicyType)

    /// Resolves conflicts of both kinds: those of versions first, then those of constraints.
    ///
    /// - Parameter list: ``NSMergeConflict`` and ``NSConstraintConflict`` objects; others are ignored.
    /// - Throws: `managedObjectMerge` (133020), or `managedObjectConstraintMerge` (133021) if there are only conflicts
    ///   of constraints. The error of the error policy lists the conflicts of both kinds.
    open func resolve(mergeConflicts list: [Any]) throws {
        let versions = list.compactMap { $0 as? NSMergeConflict }
        let constraints = list.compactMap { $0 as? NSConstraintConflict }
        if !versions.isEmpty {
            do {
                try resolve(optimisticLockingConflicts: versions)
            } catch let error as CocoaError where mergeType == .errorMergePolicyType && error.lists(versions) {
                // Nothing is resolved, so the conflicts of constraints are unresolved as well.
                throw Self.error(.managedObjectMerge, versions + constraints)
            }
        }
        if !constraints.isEmpty { try resolve(constraintConflicts: constraints) }
    }

    /// Resolves conflicts of versions by the policy's type.
    ///
    /// - Parameter list: The conflicts, each of which names its object.
    /// - Throws: `managedObjectMerge` (133020) with the conflicts under `NSPersistentStoreSaveConflictsErrorKey`.
    open func resolve(optimisticLockingConflicts list: [NSMergeConflict]) throws {
        guard mergeType != .errorMergePolicyType else { throw Self.error(.managedObjectMerge, list) }
        for conflict in list {
            guard let context = conflict.sourceObject.context else { continue }
            VersionResolution(of: conflict.sourceObject, by: mergeType, in: context).run(conflict.newerRow)
        }
    }

    /// Resolves conflicts of uniqueness constraints by the policy's type.
    ///
    /// - Parameter list: The conflicts, each with the objects that share the values.
    /// - Throws: `managedObjectConstraintMerge` (133021) with the conflicts under
    ///   `NSPersistentStoreSaveConflictsErrorKey`.
    open func resolve(constraintConflicts list: [NSConstraintConflict]) throws {
        guard mergeType != .errorMergePolicyType else { throw Self.error(.managedObjectConstraintMerge, list) }
        let unresolved = list.filter { conflict in
            guard let context = conflict.conflictingObjects.first?.context else { return true }
            return !ConstraintResolution(of: conflict, by: self, in: context).run()
        }
        if !unresolved.isEmpty { throw Self.error(.managedObjectConstraintMerge, unresolved) }
    }

    static func error(_ code: CocoaError.Code, _ conflicts: [NSObject]) -> CocoaError {
        // The text has no values: they are data of a user, and code that may see them finds them in the conflicts.
        let what = conflicts.prefix(3).map { ($0 as? NSConstraintConflict)?.summary ?? $0.description }
            .joined(separator: "; ")
        let more = conflicts.count > 3 ? "; and \(conflicts.count - 3) more" : ""
        let constraints = conflicts.compactMap { $0 as? NSConstraintConflict }
        var (reason, advice) = reason(constraints)
        if !constraints.isEmpty, constraints.count < conflicts.count {
            let (versions, refresh) = self.reason([])
            (reason, advice) = ("\(versions), and \(reason)", "\(refresh) \(advice)")
        }
        return CocoaError.described(
            code,
            userInfo: [
                NSLocalizedDescriptionKey: "Nothing was saved, because \(reason): \(what)\(more). \(advice)",
                NSPersistentStoreSaveConflictsErrorKey: conflicts,
            ]
        )
    }

    /// The reason why nothing was saved, and advice on what to do.
    private static func reason(_ constraints: [NSConstraintConflict]) -> (String, String) {
        guard !constraints.isEmpty else {
            return (
                "others have saved meanwhile", "Refresh the objects and save again, or choose another merge policy."
            )
        }
        let stored = constraints.count { $0.databaseObject != nil }
        if stored == 0 {
            return (
                "objects of this save have the same values where only one may have them",
                "Change or delete all but one, or choose another merge policy."
            )
        }
        return (
            stored == constraints.count
                ? "the store has objects with the same values, and only one may have them"
                : "the store, or this save, has several objects with the same values, and only one may have them",
            "Fetch and change those, or choose another merge policy."
        )
    }
}

extension CocoaError {
    /// Whether this is the error policy's error for exactly these conflicts.
    fileprivate func lists(_ conflicts: [NSMergeConflict]) -> Bool {
        code == .managedObjectMerge
            && (userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSObject])?.elementsEqual(conflicts, by: ===)
                == true
    }
}

/// The ways in which a merge policy resolves conflicts.
///
/// ```swift
/// context.mergePolicy = NSMergePolicy(merge: .mergeByPropertyStoreTrumpMergePolicyType)
/// ```
public enum NSMergePolicyType: UInt, Sendable {
    /// The save throws an error.
    case errorMergePolicyType = 0
    /// The store wins, property by property.
    case mergeByPropertyStoreTrumpMergePolicyType = 1
    /// Memory wins, property by property.
    case mergeByPropertyObjectTrumpMergePolicyType = 2
    /// Memory wins as a whole.
    case overwriteMergePolicyType = 3
    /// The store wins as a whole.
    case rollbackMergePolicyType = 4
}

/// The same as ``NSMergePolicy/error``.
public var NSErrorMergePolicy: AnyObject { NSMergePolicy.error }
/// The same as ``NSMergePolicy/mergeByPropertyStoreTrump``.
public var NSMergeByPropertyStoreTrumpMergePolicy: AnyObject { NSMergePolicy.mergeByPropertyStoreTrump }
/// The same as ``NSMergePolicy/mergeByPropertyObjectTrump``.
public var NSMergeByPropertyObjectTrumpMergePolicy: AnyObject { NSMergePolicy.mergeByPropertyObjectTrump }
/// The same as ``NSMergePolicy/overwrite``.
public var NSOverwriteMergePolicy: AnyObject { NSMergePolicy.overwrite }
/// The same as ``NSMergePolicy/rollback``.
public var NSRollbackMergePolicy: AnyObject { NSMergePolicy.rollback }
