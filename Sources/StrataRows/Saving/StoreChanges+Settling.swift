extension StoreChanges {
    /// Enters the results of a commit into the rows: permanent keys, new versions, and references to new rows.
    ///
    /// - Returns: The permanent keys of the rows that had temporary ones.
    @discardableResult
    package func settle(_ result: StoreSaveResult) -> PermanentKeys {
        var keys = PermanentKeys(minimumCapacity: inserted.count)
        for (row, key) in zip(inserted, result.insertedKeys) where row.key < 0 { keys.set(key, for: row.key) }
        let stamp = CoarseClock.now
        func settle(_ row: Row, version: Int64) {
            row.setVersion(version)
            row.setStamp(stamp)
            for slot in row.layout.referenceSlots {
                guard let reference = row.reference(slot), reference.key < 0, let key = keys[reference.key] else {
                    continue
                }
                row.setReference(ObjectReference(key: key, entity: reference.entity), slot)
            }
        }
        for (row, key) in zip(inserted, result.insertedKeys) {
            row.setKey(key)
            settle(row, version: result.version(after: row.version))
        }
        for update in updated { settle(update.row, version: result.version(after: update.baseVersion)) }
        return keys
    }
}
