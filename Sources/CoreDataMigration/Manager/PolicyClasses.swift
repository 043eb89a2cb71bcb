import CoreDataEssentials
import Foundation
import StrataArchives
import StrataLocks

/// Finds the classes of policies, which mapping models name as text.
///
/// Any thread may call any member.
enum PolicyClasses {
    private static let registered = Locked<[String: NSEntityMigrationPolicy.Type]>([:])

    static func register(_ type: NSEntityMigrationPolicy.Type, as name: String?) {
        registered.withLock { known in
            known[String(describing: type)] = type
            if let name { known[name] = type }
        }
    }

    /// The class that a mapping names.
    ///
    /// - Throws: `entityMigrationPolicy` (134170), with a text that says what to add to the program.
    static func policy(for mapping: NSEntityMapping) throws -> NSEntityMigrationPolicy.Type {
        guard let name = mapping.entityMigrationPolicyClassName,
            !["", "NSEntityMigrationPolicy", "CoreData.NSEntityMigrationPolicy"].contains(name)
        else { return NSEntityMigrationPolicy.self }
        let bare = name.split(separator: ".").last.map(String.init) ?? name
        if let known = registered.withLock({ $0[name] }) { return known }
        let all = ClassRecords.classes(named: bare)
        let candidates = all.compactMap { $0 as? NSEntityMigrationPolicy.Type }
        if let found = candidates.first(where: { String(reflecting: $0) == name }) { return found }
        if let known = registered.withLock({ $0[bare] }) { return known }
        // The module of the app for which the mapping model was made may have another name here.
        if candidates.count == 1 { return candidates[0] }
        guard candidates.isEmpty else {
            let names = candidates.map { String(reflecting: $0) }.sorted().joined(separator: ", ")
            throw failure(
                mapping,
                "The policy class \(name) may be any of \(names). Name the class with the module it is in, or register one of them."
            )
        }
        if name.contains("."), !name.hasPrefix("."),
            let found = FoundationClasses.named(name) as? NSEntityMigrationPolicy.Type
        {
            return found
        }
        guard all.isEmpty else {
            throw failure(mapping, "The class \(name) is no subclass of NSEntityMigrationPolicy.")
        }
        throw failure(
            mapping,
            """
            There is no policy class \(name). Add NSEntityMigrationPolicy.register(\(bare).self, as: "\(name)") \
            before the store is opened, or name the class with the module it is in.
            """
        )
    }

    private static func failure(_ mapping: NSEntityMapping, _ reason: String) -> CocoaError {
        MigrationFailure.error(.entityMigrationPolicy, "Mapping \(mapping.effectiveName): \(reason)", mapping: mapping)
    }
}
