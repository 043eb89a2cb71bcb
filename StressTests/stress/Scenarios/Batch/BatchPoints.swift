import CoreData
import StrataLocks

/// Arranged races: a change is held at a point on its way into the store, and others read and save meanwhile.
///
/// They need the fault points of the library.
struct BatchPoints {
    private enum Change: CaseIterable {
        case save
        case batchUpdate
        case batchDelete
    }

    private let run: Run
    private let stack: NSPersistentStoreCoordinator

    /// Runs all arranged races.
    static func run(_ run: Run, _ stack: NSPersistentStoreCoordinator) throws {
        guard FaultPoints.areBuiltIn else { return }
        defer { FaultPoints.clear() }
        let points = BatchPoints(run: run, stack: stack)
        for change in Change.allCases {
            for name in points.names(change) { try points.holdWriter(change, name) }
            try points.holdReader(change)
        }
    }

    /// The points of a change at which others can do something.
    private func names(_ change: Change) -> [String] {
        // A store in memory holds its lock while it changes.
        let inside = ["began", "written", "committed"]
        switch change {
        case .save:
            return ["save.validated", "save.announcing"]
                + (run.kind == .sqlite ? (inside + ["published"]).map { "save." + $0 } : [])
        case .batchUpdate, .batchDelete:
            return ["batch.announcing"] + (run.kind == .sqlite ? inside : ["began"]).map { "batch." + $0 }
        }
    }

    /// Makes a row for one race.
    private func makeRow() throws -> NSManagedObjectID {
        try BatchProgram.clear(stack)
        let context = stack.context()
        return try context.performAndWait {
            let parcel = Parcel(context: context)
            (parcel.code, parcel.value, parcel.region) = (1, 1, 1)
            try context.save()
            return parcel.objectID
        }
    }

    /// Changes the value to 2, or deletes the row.
    private func make(_ change: Change, _ id: NSManagedObjectID) throws {
        let context = stack.context()
        try context.performAndWait {
            switch change {
            case .save:
                (try context.existingObject(with: id) as? Parcel)?.value = 2
                try context.save()
            case .batchUpdate:
                let request = NSBatchUpdateRequest(entityName: "Parcel")
                request.propertiesToUpdate = ["value": Int64(2)]
                try context.execute(request)
            case .batchDelete: try context.execute(NSBatchDeleteRequest(objectIDs: [id]))
            }
        }
    }

    /// The value that a new context sees; `nil` if there is no row.
    private func seen(_ id: NSManagedObjectID) throws -> Int64? {
        let context = stack.context()
        return try context.performAndWait {
            do { return (try context.existingObject(with: id) as? Parcel)?.value } catch let error as CocoaError
                where error.code == .managedObjectReferentialIntegrity
            { return nil }
        }
    }

    /// Holds a change at a point, while others read, and a context that has loaded the row saves it.
    private func holdWriter(_ change: Change, _ name: String) throws {
        run.watchdog.beat(0, "a change that is held")
        let id = try makeRow()
        let other = stack.context()
        let loaded = Loaded()
        try other.performAndWait {
            loaded.parcel = try other.existingObject(with: id) as? Parcel
            loaded.parcel?.value = 10
        }
        let held = FaultPoints.hold(at: name)
        let outcomes = Locked<[String]>([])
        let group = DispatchGroup()
        thread(group) {
            do { try make(change, id) } catch { outcomes.withLock { $0.append("the change gave \(describe(error))") } }
        }
        guard held.waitForArrival() else { return run.find("a \(change) never comes to \(name)") }
        let old: Int64 = 1
        let new: Int64? = change == .batchDelete ? nil : 2
        let meanwhile = try seen(id)
        let isDone = name.hasSuffix("announcing") || name.hasSuffix("published")
        let isOpen = name.hasSuffix("committed")
        if meanwhile != (isDone ? new : old), !(isOpen && meanwhile == new) {
            run.find("at \(name) of a \(change) a new context sees \(meanwhile.map { "\($0)" } ?? "no row")")
        }
        // If the change is held after its validation, then the other save comes first, and the change conflicts.
        let comesFirst = name == "save.validated" || (run.kind == .memory && name == "batch.began")
        let conflict = Locked(false)
        thread(group) {
            other.performAndWait {
                do { try other.save() } catch let error as CocoaError where error.code == .managedObjectMerge {
                    conflict.withLock { $0 = true }
                } catch { outcomes.withLock { $0.append("the other's save gave \(describe(error))") } }
            }
        }
        // The other save waits for the writer, or has done what it can.
        if comesFirst { _ = waitUntil { (try? seen(id)) == 10 } }
        held.release()
        if group.wait(timeout: .now() + run.options.stall) == .timedOut {
            return run.find("a \(change) that was held at \(name), or the save beside it, does not end")
        }
        FaultPoints.clear()
        let hasConflict = conflict.withLock { $0 }
        let final = try seen(id)
        if comesFirst {
            let wanted: Int64? = change == .save ? 10 : new
            if hasConflict { run.find("at \(name) of a \(change) the save that comes first conflicts") }
            if final != wanted {
                run.find("after \(name) of a \(change) the value is \(text(final)), not \(text(wanted))")
            }
            let refusals = outcomes.withLock { $0 }
            if change == .save, refusals.count != 1 { run.find("a save that comes second is not refused") }
            if change != .save { for refusal in refusals { run.find(refusal) } }
        } else {
            if !hasConflict {
                run.find("at \(name) of a \(change) a save of an older row does not conflict: lost update")
            }
            if final != new { run.find("after \(name) of a \(change) the value is \(text(final)), not \(text(new))") }
            for refusal in outcomes.withLock({ $0 }) { run.find(refusal) }
        }
        other.performAndWait { loaded.parcel = nil }
        run.count("arranged-races")
    }

    /// Holds a reader that has just read an old row, while the row changes.
    ///
    /// The old row must not enter the row cache.
    private func holdReader(_ change: Change) throws {
        run.watchdog.beat(0, "a reader that is held")
        let id = try makeRow()
        // Nothing may be cached, as otherwise there would be no read.
        let cold = try run.kind == .sqlite ? run.open([NSPersistentHistoryTrackingKey: true]) : stack
        defer { if cold !== stack { try? run.close(cold) } }
        guard let own = cold.managedObjectID(forURIRepresentation: id.uriRepresentation()) else {
            throw StressError("\(id) is unknown to a second coordinator")
        }
        let there = BatchPoints(run: run, stack: cold)
        let held = FaultPoints.hold(at: "fault.read")
        let group = DispatchGroup()
        thread(group) {
            // With this interval it reads from the store, even if the row is cached.
            let context = cold.context()
            context.stalenessInterval = 0
            context.performAndWait { _ = try? context.existingObject(with: own) }
        }
        guard held.waitForArrival() else { return run.find("no reader comes to fault.read") }
        try there.make(change, own)
        held.release()
        if group.wait(timeout: .now() + run.options.stall) == .timedOut {
            return run.find("a reader that was held beside a \(change) does not end")
        }
        FaultPoints.clear()
        let new: Int64? = change == .batchDelete ? nil : 2
        let final = try there.seen(own)
        if final != new {
            run.find("after a \(change) beside a reader a new context sees \(text(final)), not \(text(new))")
        }
        run.count("arranged-races")
    }

    private func text(_ value: Int64?) -> String { value.map { "\($0)" } ?? "no row" }

    private func thread(_ group: DispatchGroup, _ body: @escaping @Sendable () -> Void) {
        group.enter()
        Thread.detachNewThread {
            body()
            group.leave()
        }
    }

    /// Checks a condition again and again for a few seconds.
    private func waitUntil(_ isTrue: () -> Bool) -> Bool {
        for _ in 0..<1_000 {
            if isTrue() { return true }
            usleep(2_000)
        }
        return false
    }

    /// Keeps an object of another context alive.
    private final class Loaded: @unchecked Sendable {
        // @unchecked Sendable: it is used on the context's queue only.
        var parcel: Parcel?
    }
}
