import CoreData

/// The rows that a file must hold, and no others, after some saves of `crash`.
struct CrashedRows {
    /// The nodes of a save, which differ only in their places.
    private struct Group {
        var value: Int64 = 0
        /// The save whose first node is their parent.
        var parent: Int64?
    }

    /// The marks of a save.
    private struct Marks {
        let count: Int
        /// The save whose image they have.
        var image: Int64?
        /// The save whose nodes they are on.
        var nodes: Int64?
    }

    private var groups: [Int64: Group] = [:]
    private var marks: [Int64: Marks] = [:]
    /// The number of saves that have counted themselves.
    private var count: Int64 = 0
    /// The saves whose objects were deleted, each with the save that deleted them.
    private var deleted: [Int64: Int64] = [:]
    private let acknowledged: Set<Int64>

    /// Computes the rows from a ledger.
    ///
    /// - Parameters:
    ///   - log: The ledger.
    ///   - told: The saves in the history. A save that was not acknowledged counts if it is among them.
    init(_ log: Ledger, told: Set<Int64>) {
        acknowledged = log.acknowledged
        for entry in log.entries where acknowledged.contains(entry.save) || told.contains(entry.save) {
            for step in entry.words.compactMap(CrashStep.init) { apply(step, entry.save) }
        }
    }

    private mutating func apply(_ step: CrashStep, _ save: Int64) {
        switch step.kind {
        case .insert:
            groups[save] = Group()
            count += 1
        case .insertMarks: marks[save] = Marks(count: CrashStep.size(of: save))
        case .delete:
            groups[step.target] = nil
            deleted[step.target] = save
            for (other, group) in groups where group.parent == step.target { groups[other]?.parent = nil }
            for (other, mark) in marks where mark.nodes == step.target { marks[other]?.nodes = nil }
        case .deleteMarks:
            marks[step.target] = nil
            deleted[step.target] = save
        case .update: groups[step.target]?.value = save
        case .adopt: groups[step.target]?.parent = save
        case .follow: groups[save]?.parent = step.target
        case .mark: marks[save] = Marks(count: 1, nodes: step.target)
        case .move: marks[step.target]?.nodes = save
        case .picture: marks[step.target]?.image = save
        }
    }

    // MARK: - Comparing

    /// Compares the rows with those that a context reads.
    ///
    /// - Parameters:
    ///   - context: The context. This runs on its queue.
    ///   - moment: The beginning of each finding.
    ///   - tally: Collects the findings.
    /// - Throws: Errors of fetching.
    func compare(_ context: NSManagedObjectContext, _ moment: String, _ tally: inout Tally) throws {
        let nodes = Dictionary(
            grouping: try context.fetch(NSFetchRequest<Node>(entityName: "Node")),
            by: \.serial
        )
        let request = NSFetchRequest<Mark>(entityName: "Mark")
        request.relationshipKeyPathsForPrefetching = ["nodes"]
        let found = Dictionary(grouping: try context.fetch(request), by: \.serial)
        comparePresence(Set(groups.keys), Set(nodes.keys), "nodes", moment, &tally)
        comparePresence(Set(marks.keys), Set(found.keys), "marks", moment, &tally)
        for (save, group) in nodes {
            guard let wanted = groups[save] else { continue }
            let places = group.map(\.first).sorted()
            if places != (0..<CrashStep.size(of: save)).map(Int64.init) {
                tally.find("\(moment): save \(save) is torn: \(places)")
            }
            for value in Set(group.map(\.second)) where value != wanted.value {
                tally.find("\(moment): nodes of save \(save) have the value \(value), not \(wanted.value)")
            }
            let parents = group.map { $0.parent?.objectID }
            let parent = wanted.parent.flatMap { serial in nodes[serial]?.first { $0.first == 0 }?.objectID }
            if parents.contains(where: { $0 != parent }) {
                tally.find("\(moment): nodes of save \(save) have other parents than save \(wanted.parent ?? 0)")
            }
        }
        for (save, group) in found {
            guard let wanted = marks[save] else { continue }
            if group.count != wanted.count {
                tally.find("\(moment): the marks of save \(save) are torn: \(group.count) of \(wanted.count)")
            }
            let owners = Set(wanted.nodes.flatMap { nodes[$0] } ?? [])
            for mark in group {
                if mark.nodes != owners {
                    let (count, others) = (mark.nodes.count, owners.count)
                    tally.find("\(moment): a mark of save \(save) is on \(count) nodes, not on the \(others) it should")
                }
                if mark.image != wanted.image.map(CrashStep.image) {
                    tally.find("\(moment): a mark of save \(save) has not the image of save \(wanted.image ?? 0)")
                }
            }
        }
        // Each save adds one to the same object.
        let counted = try context.fetch(NSFetchRequest<Account>(entityName: "Account")).first?.balance ?? 0
        if counted != count { tally.find("\(moment): \(counted) saves counted, not \(count)") }
    }

    private func comparePresence(
        _ wanted: Set<Int64>,
        _ there: Set<Int64>,
        _ what: String,
        _ moment: String,
        _ tally: inout Tally
    ) {
        for save in wanted.subtracting(there).sorted() {
            let why = acknowledged.contains(save) ? "acknowledged" : "of which the history tells"
            tally.find("\(moment): the \(what) of save \(save), \(why), are missing")
        }
        for save in there.subtracting(wanted).sorted() {
            let why = deleted[save].map { "though save \($0) deleted them" } ?? "though it is not in the history"
            tally.find("\(moment): the \(what) of save \(save) are there, \(why)")
        }
    }
}
