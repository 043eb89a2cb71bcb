import CoreData
import Expectations
import StrataSQLiteStore
import StrataStoreChecks

#if canImport(CoreDataPostgreSQL)
import CoreDataPostgreSQL
#endif

/// All that a store shows, as lines of text: objects with their values and relationships, the history, external files,
/// metadata, and the problems that `strata verify` finds.
///
/// A test takes the state before and after an operation, and expects exactly the differences that the operation
/// promises. So it also notices a change of something else.
///
/// ```swift
/// let before = try stack.state()
/// …
/// try expectEqual(
///     stack.state().differences(from: before),
///     ["+ City Porto.population = 2", "- City Porto.population = 1"]
/// )
/// ```
///
/// Keys are not part of it, so states of stores of different kinds can be compared. Objects are called by their first
/// attribute of these: `name`, `title`, `email`, `number`, `n`. Objects that are called the same get a number, in the
/// order of their keys.
package struct StoreState: Equatable {
    package var lines: [String]

    /// The lines that another state does not have, after a plus, and those that only the other one has, after a minus.
    ///
    /// - Parameters:
    ///   - former: The other state.
    ///   - ignored: The beginnings of lines that do not count.
    /// - Returns: The differences, sorted.
    package func differences(from former: StoreState, ignoring ignored: [String] = []) -> [String] {
        var counts: [String: Int] = [:]
        for line in lines { counts[line, default: 0] += 1 }
        for line in former.lines { counts[line, default: 0] -= 1 }
        return counts.flatMap { line, count -> [String] in
            guard !ignored.contains(where: line.hasPrefix) else { return [] }
            return Array(repeating: (count > 0 ? "+ " : "- ") + line, count: abs(count))
        }.sorted()
    }

    /// The beginnings of the metadata that a store makes itself; two stores with the same contents differ there.
    package static let identity = ["metadata NS", "metadata _NS", "metadata Strata"]

    /// The beginnings of the history's lines.
    package static let history = ["transaction "]
}

extension Stack {
    /// The state of the only store.
    package func state() throws -> StoreState { try coordinator.state() }
}

extension NSManagedObjectContext {
    /// The state of the only store of the context's coordinator, without what is not saved.
    package func storeState() throws -> StoreState { try require(persistentStoreCoordinator).state() }
}

extension NSPersistentStoreCoordinator {
    /// The state of a store.
    ///
    /// A new coordinator reads the stored state. A new context of this coordinator has to show the same.
    ///
    /// - Parameter store: The store; `nil` for the only one.
    /// - Returns: The state.
    /// - Throws: Errors of the store.
    package func state(of store: NSPersistentStore? = nil) throws -> StoreState {
        let store = try require(store ?? persistentStores.first)
        let shown = try contents(of: store)
        var lines = shown
        if store.type != NSInMemoryStoreType {
            let other = NSPersistentStoreCoordinator(managedObjectModel: managedObjectModel)
            let copy = try other.addPersistentStore(
                type: NSPersistentStore.StoreType(rawValue: store.type),
                configuration: store.configurationName,
                at: require(store.url),
                options: store.options
            )
            defer { try? other.remove(copy) }
            lines = try other.contents(of: copy)
            let stale = StoreState(lines: shown).differences(from: StoreState(lines: lines))
            expectEqual(stale, [], "the coordinator shows what is stored")
        }
        lines += Self.lines(ofMetadata: metadata(for: store))
        lines += try problems(of: store).map { "problem: \($0)" }
        if store.type == NSSQLiteStoreType, let url = store.url { lines += try Self.lines(ofFilesBeside: url) }
        return StoreState(lines: lines.sorted())
    }

    /// Objects and history, as a new context reads them.
    private func contents(of store: NSPersistentStore) throws -> [String] {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = self
        return try context.performAndWait {
            let names = try ObjectNames(context, store)
            var lines: [String] = []
            for (object, name) in names.objects { lines += [name] + names.lines(of: object, name) }
            if store.options?[NSPersistentHistoryTrackingKey] as? Bool == true {
                lines += try names.history(context, store)
            }
            return lines
        }
    }

    private func problems(of store: NSPersistentStore) throws -> [String] {
        guard let url = store.url else { return [] }
        if store.type == NSSQLiteStoreType {
            return try StoreVerifier(storeURL: url, model: managedObjectModel).problems()
        }
        #if canImport(CoreDataPostgreSQL)
        if store.type == NSPersistentStore.StoreType.postgreSQL.rawValue {
            return try PostgreSQLStore.problems(at: TestDatabase.url(for: url), managedObjectModel)
        }
        #endif
        return []
    }

    private static func lines(ofMetadata metadata: [String: Any]) -> [String] {
        metadata.flatMap { key, value -> [String] in
            guard let values = value as? [String: Any] else { return ["metadata \(key) = \(storedText(value))"] }
            return values.map { "metadata \(key).\($0) = \(storedText($1))" }
        }
    }

    /// The external files of a SQLite store; their names are left out, as each store draws new ones.
    private static func lines(ofFilesBeside url: URL) throws -> [String] {
        let name = ".\(url.deletingPathExtension().lastPathComponent)_SUPPORT/_EXTERNAL_DATA"
        let folder = url.deletingLastPathComponent().appendingPathComponent(name)
        guard FileManager.default.fileExists(atPath: folder.path) else { return [] }
        return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil).map {
            try "file of \(storedText(Data(contentsOf: $0)))"
        }
    }
}

/// The objects of a store, and how a ``StoreState`` calls them.
private struct ObjectNames {
    /// The objects with their names.
    private(set) var objects: [(object: NSManagedObject, name: String)] = []
    private var names: [URL: String] = [:]

    /// Reads all objects of a store.
    init(_ context: NSManagedObjectContext, _ store: NSPersistentStore) throws {
        var counts: [String: Int] = [:]
        for entity in context.persistentStoreCoordinator?.managedObjectModel.entities ?? [] where !entity.isAbstract {
            let request = NSFetchRequest<NSManagedObject>(entityName: entity.name ?? "")
            request.includesSubentities = false
            request.affectedStores = [store]
            for object in try context.fetch(request).sorted(by: { $0.objectID.key < $1.objectID.key }) {
                var name = entity.name ?? ""
                if let own = Self.ownName(object) { name += " " + own }
                counts[name, default: 0] += 1
                if let count = counts[name], count > 1 { name += " #\(count)" }
                objects.append((object, name))
                names[object.objectID.uriRepresentation()] = name
            }
        }
    }

    private static func ownName(_ object: NSManagedObject) -> String? {
        let key = ["name", "title", "email", "number", "n"].first { key in
            object.entity.attributesByName[key].map { $0.type == .string && !$0.isTransient } ?? false
        }
        return key.flatMap { object.value(forKey: $0) as? String }
    }

    /// One line for each property that has a value.
    func lines(of object: NSManagedObject, _ name: String) -> [String] {
        var lines: [String] = []
        for (key, attribute) in object.entity.attributesByName where !attribute.isTransient {
            guard let value = object.value(forKey: key) else { continue }
            lines.append("\(name).\(key) = \(storedText(value))")
        }
        for (key, relationship) in object.entity.relationshipsByName where !relationship.isTransient {
            switch object.value(forKey: key) {
            case let target as NSManagedObject: lines.append("\(name).\(key) -> \(self.name(target.objectID))")
            case let members as NSOrderedSet where members.count > 0:
                lines.append("\(name).\(key) -> \(described(members.array))")
            case let members as Set<NSManagedObject> where !members.isEmpty:
                lines.append("\(name).\(key) -> \(described(Array(members), isSorted: true))")
            case let members as NSSet where members.count > 0:
                lines.append("\(name).\(key) -> \(described(members.allObjects, isSorted: true))")
            default: break
            }
        }
        return lines
    }

    private func described(_ members: [Any], isSorted: Bool = false) -> String {
        let names = members.compactMap { ($0 as? NSManagedObject).map { name($0.objectID) } }
        return "[" + (isSorted ? names.sorted() : names).joined(separator: ", ") + "]"
    }

    private func name(_ id: NSManagedObjectID) -> String {
        names[id.uriRepresentation()] ?? "\(id.entity.name ?? "") that is gone"
    }

    /// One line for each transaction, and one for each of its changes.
    func history(_ context: NSManagedObjectContext, _ store: NSPersistentStore) throws -> [String] {
        let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
        request.affectedStores = [store]
        let result = try require(try context.execute(request) as? NSPersistentHistoryResult)
        let transactions = try require(result.result as? [NSPersistentHistoryTransaction])
        return transactions.enumerated().flatMap { index, transaction -> [String] in
            let head = "transaction \(index + 1)"
            let author = [transaction.author.map { " by \($0)" }, transaction.contextName.map { " in \($0)" }]
            return [head + author.compactMap { $0 }.joined()]
                + (transaction.changes ?? []).map { "\(head): \(described($0))" }
        }
    }

    private func described(_ change: NSPersistentHistoryChange) -> String {
        let name = name(change.changedObjectID)
        switch change.changeType {
        case .insert: return "inserts \(name)"
        case .update:
            return "updates \(name) " + (change.updatedProperties?.map(\.name).sorted() ?? []).joined(separator: ", ")
        case .delete:
            let kept = (change.tombstone ?? [:]).map { "\($0.key) = \(storedText($0.value))" }.sorted()
            return "deletes \(name) " + kept.joined(separator: ", ")
        }
    }
}

/// A value as text that is the same on each store.
private func storedText(_ value: Any) -> String {
    switch value {
    case let data as Data:
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in data { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return "\(data.count) bytes, \(String(hash, radix: 16))"
    case let date as Date: return "\(date.timeIntervalSinceReferenceDate)"
    case let values as [String: Any]:
        return "{" + values.map { "\($0): \(storedText($1))" }.sorted().joined(separator: ", ") + "}"
    default: return "\(value)"
    }
}
