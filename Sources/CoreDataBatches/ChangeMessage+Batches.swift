import CoreDataEssentials
import StrataRows

extension ChangeMessage {
    /// Makes the message of the changes that batches have made.
    init(_ batches: [StoreBatch]) {
        self.init()
        for batch in batches {
            let changes = batch.changes
            let removals = Change.RemovalCount(batch.removals)
            inserted += Self.changes(changes.inserted, batch.store).map { change in
                var change = change
                change.note(removals)
                return change
            }
            updated += Self.changes(changes.changed + changes.followed + changes.related, batch.store)
            deleted += Self.changes(changes.deleted, batch.store)
        }
    }

    private static func changes(_ rows: [BatchRows], _ store: OpenStore) -> [Change] {
        rows.flatMap { group in group.keys.map { Change(key: $0, layout: group.layout, store: store) } }
    }
}
