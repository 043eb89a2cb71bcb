import CoreDataEssentials
import Foundation
import StrataPredicates

/// The reads of one block of a context: it keeps to the context's rules, and finds reads that are made one by one.
///
/// It lives as long as the block runs. It is used by the thread of the block, and by threads for which that one waits.
package final class BlockReads: ReadWatch {
    /// The objects of one entity, or the owners of one relationship, that were read one by one.
    private struct Kind: Hashable {
        let root: Int
        let relationship: String?
    }

    private struct Fetch {
        let root: Int
        let entity: String
        let predicate: NSPredicate?
    }

    /// The steps of a key path that are looked for.
    private static let pathLimit = 4
    /// The most fetches of a block that are remembered.
    private static let fetchLimit = 100

    private unowned let context: NSManagedObjectContext
    private let rules: ReadRules?
    private let threshold: Int?
    private var list = StatementList()
    private var single: [Kind: Set<Int64>] = [:]
    /// The kinds that were reported, and need not be counted any more.
    private var reported: Set<Kind> = []
    private var fetches: [Fetch] = []
    /// The values of fetches that differ in nothing else.
    private var families: [FetchFamily: Set<[String]>] = [:]
    /// The families that were reported, and need not be counted any more.
    private var reportedFamilies: Set<FetchFamily> = []

    /// Begins to watch a block of a context.
    package init(_ context: NSManagedObjectContext) {
        self.context = context
        rules = context.readRules
        threshold = RepeatedReadLog.threshold
    }

    /// Counts a read, refuses it if the rules forbid it, and reports it if it repeats others.
    package func willRead(_ read: StoreRead, in innermost: NSManagedObjectContext?) throws {
        // The reads of a save, and of the end of an event, cannot be left out.
        let isForItself = context.readsForItself || innermost?.readsForItself == true
        if let rules { try keep(to: rules, read, isForItself: isForItself) }
        // The block of another context that this one waits for reports its reads itself.
        guard innermost === context, !isForItself, let threshold else { return }
        look(at: read, threshold)
    }

    // MARK: - Rules

    private func keep(to rules: ReadRules, _ read: StoreRead, isForItself: Bool) throws {
        // A row that others have changed since it was fetched has to be read again, whatever the block has fetched.
        if rules.refusesLazyReads, !isForItself, read.kind == .row && !read.renewsRow || read.kind == .members,
            let lazy = context.lazyRead
        {
            throw Self.refusal(of: lazy, read, context)
        }
        guard let budget = rules.budget else { return }
        if list.count >= budget, !isForItself { throw Self.overdraft(budget, list, read, context) }
        list.append(read)
    }

    private static func overdraft(
        _ budget: Int,
        _ list: StatementList,
        _ read: StoreRead,
        _ context: NSManagedObjectContext
    ) -> CocoaError {
        CocoaError.described(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey: """
                A block of \(context.describedName) may read the stores \(budget) times (statementBudget), and this read would be one \
                more: \(StatementRecord(read)). Before that it has made these reads: \(list.summary).
                """
            ]
        ).marked(.request)
    }

    private static func refusal(of lazy: LazyRead, _ read: StoreRead, _ context: NSManagedObjectContext) -> CocoaError {
        let property = lazy.property.map { "property \"\($0)\"" } ?? "a property"
        return CocoaError.described(
            .persistentStoreOperation,
            userInfo: [
                NSLocalizedDescriptionKey: """
                A block of \(context.describedName) may not read lazily (raisesOnFault), and \(property) of \
                \(lazy.object.objectID) has to be read from the store: \(StatementRecord(read)). Prefetch it, or fetch the object \
                with its values.
                """,
                NSAffectedObjectsErrorKey: [lazy.object],
            ]
        ).marked(.request)
    }

    // MARK: - Repeated reads

    private func look(at read: StoreRead, _ threshold: Int) {
        switch read.kind {
        case .fetch:
            if fetches.count < Self.fetchLimit {
                fetches.append(Fetch(root: read.root, entity: read.entity, predicate: read.predicate))
            }
            look(atFetch: read, threshold)
        case .row where read.renewsRow:
            // A fetch has brought the row, and others have committed since. No other fetch could prevent that.
            return
        case .row, .members:
            // Without an access to a property the context reads for a merge or a refresh, or the program looks for one
            // object by its ID.
            guard let lazy = context.lazyRead, let key = read.key else { return }
            let kind = Kind(root: read.root, relationship: read.relationship)
            guard !reported.contains(kind) else { return }
            single[kind, default: []].insert(key)
            guard let keys = single[kind], keys.count >= threshold else { return }
            reported.insert(kind)
            single[kind] = nil
            report(read, keys, lazy)
        case .rows, .memberships: return
        }
    }

    private func look(atFetch read: StoreRead, _ threshold: Int) {
        guard let (family, values) = FetchFamily.of(read.entity, read.predicate),
            families.count < Self.fetchLimit || families[family] != nil, !reportedFamilies.contains(family)
        else { return }
        families[family, default: []].insert(values)
        guard let seen = families[family], seen.count >= threshold else { return }
        reportedFamilies.insert(family)
        families[family] = []
        // A value that is the same in all of these fetches stays where it is.
        let varying = family.keyPaths.indices.filter { place in Set(seen.map { $0[place] }).count > 1 }
        context.reportToInstrument(.repeatedReads, rows: seen.count, entity: read.entity)
        RepeatedReadLog.report(read.entity) { place, function in
            RepeatedReads(
                context: context.describedName,
                count: seen.count,
                entity: read.entity,
                relationship: nil,
                property: nil,
                origin: nil,
                prefetch: nil,
                fetchedEntity: read.entity,
                predicate: read.predicate?.shape,
                comparedKeyPaths: varying.map { family.keyPaths[$0] },
                place: place,
                function: function
            )
        }
    }

    private func report(_ read: StoreRead, _ keys: Set<Int64>, _ lazy: LazyRead) {
        var path = read.relationship.map { [$0] } ?? []
        var origin: String?
        var (root, owners, entity) = (read.root, keys, read.entity)
        var later: (keys: Set<Int64>, root: Int)?
        while path.count < Self.pathLimit {
            // A fetch of these objects is where the key path begins. Rows that it has brought are not read again.
            if !path.isEmpty, fetches.contains(where: { $0.root == root }) { break }
            guard let found = context.origin(ofObjects: owners, root: root, before: later) else { break }
            if path.isEmpty { origin = "\(found.entity).\(found.relationship)" }
            path.insert(found.relationship, at: 0)
            later = (owners, root)
            (root, owners, entity) = (found.root, found.owners, found.entity)
        }
        let fetch = fetches.last { $0.root == root }
        let name = read.relationship.map { "\(read.entity).\($0)" } ?? origin ?? read.entity
        context.reportToInstrument(.repeatedReads, rows: keys.count, entity: name)
        RepeatedReadLog.report(name) { place, function in
            RepeatedReads(
                context: context.describedName,
                count: keys.count,
                entity: read.entity,
                relationship: read.relationship,
                property: lazy.property,
                origin: origin,
                prefetch: path.isEmpty ? nil : path.joined(separator: "."),
                fetchedEntity: fetch?.entity ?? (path.isEmpty ? nil : entity),
                predicate: fetch?.predicate?.shape,
                comparedKeyPaths: [],
                place: place,
                function: function
            )
        }
    }
}
