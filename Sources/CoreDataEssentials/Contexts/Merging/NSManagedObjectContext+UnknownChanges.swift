import StrataRows

extension NSManagedObjectContext {
    /// Brings all objects of a store up to date if it is not known what has changed in the store.
    ///
    /// Called on the context's queue. An error of the store is reported, and objects then become faults that are read
    /// again when they are next used. Objects with unsaved changes stay as they are; the next save finds their
    /// conflicts.
    package final func mergeUnknownChanges(of entry: OpenStore) {
        var keys: [Int: (layout: EntityLayout, keys: [Int64])] = [:]
        forEachRegistered { object in
            guard object.storeIndex == Int32(entry.index), object.key > 0, !object.isInserted else { return }
            keys[object.layout.rootNumber, default: (object.layout, [])].keys.append(object.key)
        }
        var message = ChangeMessage()
        for (layout, keys) in keys.values {
            do {
                // The store is asked for the root entity, and its rows come back with their own entities.
                let root = model.layouts[layout.rootNumber - 1]
                let found = Dictionary(
                    try entry.rows.rows(forKeys: keys, in: root).map { ($0.key, $0.layout) },
                    uniquingKeysWith: { first, _ in first }
                )
                for key in keys {
                    let change = ChangeMessage.Change(key: key, layout: found[key] ?? layout, store: entry)
                    if found[key] == nil { message.deleted.append(change) } else { message.updated.append(change) }
                }
            } catch {
                coordinator?.report(error, "bringing the objects of \(describedName) up to date")
                // These objects are not brought up to date later, so they become faults now.
                for key in keys {
                    guard let object = registered(key: key, layout: layout, storeIndex: Int32(entry.index)) else {
                        continue
                    }
                    if !object.isFault, !object.hasChanges, !object.flags.contains(.gone) { object.turnIntoFault() }
                    message.updated.append(ChangeMessage.Change(key: key, layout: object.layout, store: entry))
                }
            }
        }
        merge(message)
        observers.storesMayHaveChanged()
    }
}
