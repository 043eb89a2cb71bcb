import CoreData
import Expectations
import StrataRows
import Testing

/// The five policies, as tests take them for arguments.
package enum Policy: String, CaseIterable, Sendable {
    case error
    case storeTrump
    case objectTrump
    case overwrite
    case rollback

    package var policy: NSMergePolicy {
        switch self {
        case .error: .error
        case .storeTrump: .mergeByPropertyStoreTrump
        case .objectTrump: .mergeByPropertyObjectTrump
        case .overwrite: .overwrite
        case .rollback: .rollback
        }
    }

    /// Those that resolve.
    package static let resolving: [Policy] = [.storeTrump, .objectTrump, .overwrite, .rollback]
    /// Whether what is in memory counts where both sides have changed something.
    package var memoryWins: Bool { self == .objectTrump || self == .overwrite }
}

extension Stack {
    /// A context with a merge policy.
    package func context(_ policy: Policy, _ name: String? = nil) -> NSManagedObjectContext {
        let context = context(name ?? policy.rawValue)
        context.mergePolicy = policy.policy
        return context
    }
}

extension NSManagedObjectContext {
    /// A save that must fail with conflicts.
    package func conflictsOfSave(_ code: CocoaError.Code = .managedObjectMerge) throws -> [NSObject] {
        let error = expectThrows(CocoaError.self) { try self.save() }
        expectEqual(error?.code, code)
        return try require(error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSObject])
    }

    /// A save that must fail with conflicts of versions.
    package func versionConflictsOfSave() throws -> [NSMergeConflict] {
        try conflictsOfSave().map { try require($0 as? NSMergeConflict) }
    }

    /// A save that must fail with conflicts of constraints.
    package func constraintConflictsOfSave() throws -> [NSConstraintConflict] {
        try conflictsOfSave(.managedObjectConstraintMerge).map { try require($0 as? NSConstraintConflict) }
    }
}

extension Int64 {
    /// The count in the version of a row: without the random bits that a version on a server has.
    package var versionCount: Int64 { self >> RowVersion.markBits == 0 ? self : self >> RowVersion.markBits }
}

extension NSMergeConflict {
    /// How often the row was saved that the object was read from.
    package var oldCount: Int64 { Int64(oldVersionNumber).versionCount }
    /// How often the stored row was saved; 0 for none.
    package var newCount: Int64 { Int64(newVersionNumber).versionCount }
}
