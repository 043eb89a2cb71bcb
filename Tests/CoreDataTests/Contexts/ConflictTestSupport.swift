import CoreData
import TestSupport
import Testing

/// The five policies, as tests take them for arguments.
enum Policy: String, CaseIterable, Sendable {
    case error
    case storeTrump
    case objectTrump
    case overwrite
    case rollback

    var policy: NSMergePolicy {
        switch self {
        case .error: .error
        case .storeTrump: .mergeByPropertyStoreTrump
        case .objectTrump: .mergeByPropertyObjectTrump
        case .overwrite: .overwrite
        case .rollback: .rollback
        }
    }

    /// Those that resolve.
    static let resolving: [Policy] = [.storeTrump, .objectTrump, .overwrite, .rollback]
    /// Whether what is in memory counts where both sides have changed something.
    var memoryWins: Bool { self == .objectTrump || self == .overwrite }
}

extension Stack {
    /// A context with a merge policy.
    func context(_ policy: Policy, _ name: String? = nil) -> NSManagedObjectContext {
        let context = context(name ?? policy.rawValue)
        context.mergePolicy = policy.policy
        return context
    }
}

extension NSManagedObjectContext {
    /// A save that must fail with conflicts.
    func conflictsOfSave(_ code: CocoaError.Code = .managedObjectMerge) throws -> [NSObject] {
        let error = #expect(throws: CocoaError.self) { try self.save() }
        #expect(error?.code == code)
        return try #require(error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSObject])
    }

    /// A save that must fail with conflicts of versions.
    func versionConflictsOfSave() throws -> [NSMergeConflict] {
        try conflictsOfSave().map { try #require($0 as? NSMergeConflict) }
    }

    /// A save that must fail with conflicts of constraints.
    func constraintConflictsOfSave() throws -> [NSConstraintConflict] {
        try conflictsOfSave(.managedObjectConstraintMerge).map { try #require($0 as? NSConstraintConflict) }
    }
}
