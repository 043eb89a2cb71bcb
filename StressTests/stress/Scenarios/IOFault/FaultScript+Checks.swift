import CoreData
import StrataSQLiteStore
import StrataStoreChecks

extension FaultScript {
    /// Opens the store again, and demands that everything acknowledged is there, and nothing by half.
    func look() throws {
        let stack: NSPersistentStoreCoordinator
        do { stack = try open() } catch { return find("opening again gave \(describe(error))") }
        let context = stack.context()
        context.performAndWait {
            do {
                let all = try context.fetch(NSFetchRequest<Node>(entityName: "Node"))
                let groups = Dictionary(grouping: all) { Int($0.serial) }
                compare(groups)
                let rows = try rows(context)
                if !batches.possible.contains(rows) {
                    find("after closing the accounts are \(rows), not one of \(batches.possible)")
                }
                try compareHistory(context, (groups.keys.max() ?? -1) + 1)
            } catch { find("fetching afterwards gave \(describe(error))") }
        }
        try close(stack)
        for suffix in ["-wal", "-shm"] where FileManager.default.fileExists(atPath: url.path + suffix) {
            find("\(suffix) is left behind by a store that was closed")
        }
        do {
            // A fault may leave a file of external data that no row names, as the file could not be removed.
            for problem in try StoreVerifier(storeURL: url, model: Self.model).problems()
            where faults == 0 || !problem.hasSuffix("belongs to no row") {
                find(problem)
            }
        } catch { find("checking the file gave \(describe(error))") }
    }

    /// Demands that the saves up to some number are stored, including all acknowledged ones, and nothing of later
    /// saves.
    private func compare(_ groups: [Int: [Node]]) {
        let saves = (groups.keys.max() ?? -1) + 1
        if saves < acknowledged { return find("\(saves) saves are there, acknowledged were \(acknowledged)") }
        for save in 0..<saves {
            let group = groups[save] ?? []
            let isCut = save + 2 < saves
            let places: [Int64] = isCut ? [0, 1, 2] : [0, 1, 2, 3]
            if group.map(\.first).sorted() != places { find("save \(save) is \(group.map(\.first).sorted())") }
            let parent = save > 0 ? Int64(save - 1) : nil
            for node in group {
                if node.second != (isCut && node.first == 1 ? 1 : 0) { find("a change of save \(save) is torn") }
                if node.parent?.serial != parent { find("the parent of a node of save \(save) is wrong") }
                let mark = node.marks.first
                if mark?.serial != Int64(save) { find("the mark of a node of save \(save) is missing") }
                if mark?.image != Self.image(of: save, after: saves) { find("the image of save \(save) is wrong") }
            }
        }
    }
}
