import CoreData

extension FaultScript {
    /// Saves again and again.
    ///
    /// Changes whose save has failed are saved at once, or with the next ones.
    func work(_ context: NSManagedObjectContext) {
        var groups: [[Node]] = []
        for save in 0..<Self.saves {
            groups.append(insert(save, groups, context))
            // Each save deletes a part of the save before the last one, and replaces its image.
            if save >= 2 {
                context.delete(groups[save - 2][3])
                groups[save - 2][1].second = 1
                if let mark = groups[save - 2][0].marks.first, mark.image != nil { mark.image = Self.image(save) }
            }
            context.transactionAuthor = "\(save)"
            let saved: Void? = attempt(
                "saving",
                failed: { if !context.hasChanges { find("a failed save has taken the changes") } }
            ) { try context.save() }
            if saved != nil { noteSaved(save) }
            if let count = attempt("counting", { try context.count(for: NSFetchRequest<Node>(entityName: "Node")) }) {
                let wanted = Self.size(after: save + 1)
                if count != wanted { find("a context counts \(count) nodes, its own changes included, not \(wanted)") }
            }
            if let batch = FaultBatches.Step(after: save) { play(batch, context) }
            if save == 3 { readHistory(context) }
            if save == 4 {
                purgeHistory(context)
                readHistory(context)
            }
        }
    }

    /// Inserts the objects of a save, which refer to those of the save before.
    private func insert(_ save: Int, _ groups: [[Node]], _ context: NSManagedObjectContext) -> [Node] {
        let mark = Mark(context: context)
        mark.serial = Int64(save)
        if Self.hasImage(save) { mark.image = Self.image(save) }
        return (0..<4).map { place in
            let node = Node(context: context)
            node.serial = Int64(save)
            node.first = Int64(place)
            node.label = String(repeating: "y", count: save * 90)
            node.parent = groups.last?.first
            node.marks = [mark]
            return node
        }
    }

    /// Turns unchanged objects into faults, and reads them again.
    func read(_ context: NSManagedObjectContext) {
        context.refreshAllObjects()
        _ = attempt("fetching") {
            for node in try context.fetch(NSFetchRequest<Node>(entityName: "Node")) {
                let before = failures
                let (serial, label, marks) = (node.serial, node.label ?? "", node.marks)
                let image = marks.first?.image
                // An object that cannot be read was already reported.
                guard failures == before else { continue }
                if label.count != serial * 90 { find("a label of save \(serial) has \(label.count) characters") }
                if marks.count != 1 { find("a node of save \(serial) has \(marks.count) marks") }
                if image != Self.image(of: Int(serial), after: Self.saves) {
                    find("the image of save \(serial) is \(image?.count ?? -1) bytes of \(image?.first ?? 0)")
                }
            }
        }
    }

    // MARK: - The expected content

    /// The number of nodes after so many saves.
    private static func size(after saves: Int) -> Int { 4 * saves - max(saves - 2, 0) }

    /// Whether the mark of a save has external data.
    private static func hasImage(_ save: Int) -> Bool { save == 1 || save == 3 }

    /// Data that identifies its save, and is large enough to be kept in a file.
    private static func image(_ save: Int) -> Data { Data(repeating: UInt8(save), count: 140_000) }

    /// The image of the mark of a save after so many saves: the next save but one replaces it.
    static func image(of save: Int, after saves: Int) -> Data? {
        guard hasImage(save) else { return nil }
        return image(save + 2 < saves ? save + 2 : save)
    }
}
