import CoreData

/// Contexts are pinned one after the other, while others save, replace portraits and delete. Each must read its own
/// version.
extension SocietyProgram {
    func pin(_ stream: inout SeededStream) throws -> String? {
        guard run.kind == .sqlite else { return nil }
        var pinned: [(desk: SocietyDesk, society: Society, ids: [Int64: NSManagedObjectID])] = []
        for _ in 0..<(4 + stream.below(5)) {
            switch stream.below(4) {
            case 0, 1:
                _ = try letOthersSave(3, .all, &stream)
                // Portraits in separate files come and go with the versions that name them.
                let serial = stream.pick(stored.people.keys.sorted())
                let number = Int64(4 + stream.below(100))
                if number == stored.people[serial]?.portrait { continue }
                let painter = desk()
                var seen = stored
                try make(.portrait(serial, number), at: painter, &seen)
                try painter.perform { try painter.context.save() }
                settle(seen, painter)
            case 2 where pinned.count < 3:
                note("pin")
                let desk = desk()
                try desk.perform {
                    if !run.isSabotaged("lost-pin") { try desk.context.setQueryGenerationFrom(.current) }
                    // The first read determines the version.
                    _ = try desk.context.count(for: NSFetchRequest<Tool>(entityName: "Tool"))
                }
                pinned.append((desk, stored, ids))
            default:
                guard !pinned.isEmpty else { continue }
                let one = pinned.remove(at: stream.below(pinned.count))
                note("read and unpin")
                if let trouble = try check(one.desk, one.society, "in a pinned context") { return trouble }
                try one.desk.perform {
                    one.desk.context.reset()
                    try one.desk.context.setQueryGenerationFrom(nil)
                }
            }
        }
        note("read all that are pinned")
        for one in pinned {
            if let trouble = try check(one.desk, one.society, "in a pinned context") { return trouble }
        }
        return try checkStore("beside pins")
    }
}
