import CoreData

extension FrameworkSide {
    // MARK: - W18

    /// Inserts all rows, with a save after each hundred, into a store with or without a history.
    static func insertKeepingHistory(_ isOn: Bool, in folder: String, scale: Scale) throws -> Sample {
        try withNewStore(isOn, folder) { stack in
            try insert(into: stack, scale: scale, venuesPerSave: Scale.venuesPerBatch)
        }
    }

    /// Loads, changes and saves rows of a store with or without a history.
    static func changeKeepingHistory(_ isOn: Bool, in folder: String, scale: Scale) throws -> Sample {
        try withNewStore(isOn, folder) { stack in
            _ = try insert(into: stack, scale: Scale(venues: scale.changes), venuesPerSave: scale.changes)
            stack.context.performAndWait { stack.context.reset() }
            return try change(stack, scale: scale)
        }
    }

    private static func withNewStore(
        _ keepsHistory: Bool,
        _ folder: String,
        _ work: (Stack) throws -> Sample
    ) throws -> Sample {
        let path = folder + "/history-\(keepsHistory).sqlite"
        defer { removeDatabase(at: path) }
        let stack = try Stack(path, model, options: keepsHistory ? [NSPersistentHistoryTrackingKey: true] : nil)
        defer { stack.close() }
        return try work(stack)
    }
}
